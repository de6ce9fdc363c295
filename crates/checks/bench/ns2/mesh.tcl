# A saturated grid of 4 by 4 stations of 802.11b in ns-2: one flow over three hops, and three over one hop next to it,
# for crates/checks/bench/src/mesh.rs:
#
#   ns mesh.tcl seconds=60 seed=1999 run=0
#
# Relays and headers are as in chain.tcl.

array set opt {seed 1 run 0 spacing 170 seconds 60}
foreach pair $argv { set opt([lindex [split $pair =] 0]) [lindex [split $pair =] 1] }

Mac/802_11 set dataRate_ 11Mb
Mac/802_11 set basicRate_ 2Mb
Mac/802_11 set RTSThreshold_ 3000
Mac/802_11 set ShortRetryLimit_ 7
Mac/802_11 set LongRetryLimit_ 7
Mac/802_11 set PreambleLength_ 144
Mac/802_11 set PLCPDataRate_ 2.0e6
Phy/WirelessPhy set Pt_ 0.2818
Phy/WirelessPhy set freq_ 2.472e9
Phy/WirelessPhy set RXThresh_ 3.652e-10
Phy/WirelessPhy set CSThresh_ 5.011872e-12
Phy/WirelessPhy set CPThresh_ 10
Agent/MessagePassing set packetSize_ 3000

ns-random [expr $opt(seed) * 1000 + $opt(run)]
set ns [new Simulator]
$ns trace-all [open /dev/null w]
set topo [new Topography]
$topo load_flatgrid 3000 3000
create-god 16
$ns node-config -adhocRouting DumbAgent -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 100 \
  -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy -topoInstance $topo \
  -agentTrace OFF -routerTrace OFF -macTrace OFF -channel [new Channel/WirelessChannel]

set got(14) 0
foreach end {12 15 0} { set got($end) 0 }
Agent/MessagePassing instproc recv {source sport size data} {
  global got
  $self instvar next last here
  if {$last} { incr got($here) } else { $self sendto $size $data $next 42 }
}

for {set i 0} {$i < 16} {incr i} {
  set node($i) [$ns node]
  $node($i) random-motion 0
  $node($i) set X_ [expr 10 + ($i % 4) * $opt(spacing)]
  $node($i) set Y_ [expr 10 + ($i / 4) * $opt(spacing)]
  $node($i) set Z_ 0
  set agent($i) [new Agent/MessagePassing]
  $node($i) attach $agent($i) 42
  $agent($i) set here $i
  $agent($i) set last 1
}
foreach {from to} {1 6  6 11  11 14  9 12  10 15  5 0} {
  $agent($from) set last 0
  $agent($from) set next [$node($to) node-addr]
}

# One packet per millisecond from each source, more than the channel carries.
proc send {} {
  global ns agent
  foreach source {1 9 10 5} { $agent($source) sendto 1014 x [$agent($source) set next] 42 }
  $ns after 0.001 send
}
proc done {} {
  global got
  foreach end {14 12 15 0} { puts "packets=$got($end)" }
  exit 0
}
$ns at 0.0 send
$ns at $opt(seconds) done
$ns run
