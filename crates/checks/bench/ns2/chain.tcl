# A saturating flow over a chain of 802.11b stations in ns-2, for crates/checks/bench/src/ns2/chain.rs:
#
#   ns chain.tcl hops=3 seed=1999 run=0
#
# Debian's ns-2 has no static routing for wireless nodes, and a routing protocol would send packets of its own, so each
# relay has an agent that forwards packets. The MAC header of ns-2 2.35 has 34 bytes, Airlane's has 28, and Airlane's
# packets include a routing header of 20 bytes: 1014 bytes here and 1020 bytes there make frames of the same length.

array set opt {hops 1 seed 1 run 0 spacing 200 from 2 seconds 40}
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

# Each run of a seed draws different numbers.
ns-random [expr $opt(seed) * 1000 + $opt(run)]
set ns [new Simulator]
$ns trace-all [open /dev/null w]
set topo [new Topography]
$topo load_flatgrid 3000 500
set count [expr $opt(hops) + 1]
create-god $count
$ns node-config -adhocRouting DumbAgent -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 100 \
  -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy -topoInstance $topo \
  -agentTrace OFF -routerTrace OFF -macTrace OFF -channel [new Channel/WirelessChannel]

set got 0
Agent/MessagePassing instproc recv {source sport size data} {
  global ns got opt
  $self instvar next last
  if {!$last} {
    $self sendto $size $data $next 42
  } elseif {[$ns now] >= $opt(from)} {
    incr got
  }
}

for {set i 0} {$i < $count} {incr i} {
  set node($i) [$ns node]
  $node($i) random-motion 0
  $node($i) set X_ [expr 10 + $i * $opt(spacing)]
  $node($i) set Y_ 10
  $node($i) set Z_ 0
  set agent($i) [new Agent/MessagePassing]
  $node($i) attach $agent($i) 42
}
for {set i 0} {$i < $count} {incr i} {
  $agent($i) set last [expr $i == $opt(hops)]
  if {$i < $opt(hops)} { $agent($i) set next [$node([expr $i + 1]) node-addr] }
}

# One packet per millisecond, more than the channel carries.
proc send {} {
  global ns agent
  $agent(0) sendto 1014 x [$agent(0) set next] 42
  $ns after 0.001 send
}
proc done {} {
  global got opt
  puts "throughput_bps=[expr $got * 8000.0 / $opt(seconds)] timeouts=0"
  exit 0
}
$ns at 0.0 send
$ns at [expr $opt(from) + $opt(seconds)] done
$ns run
