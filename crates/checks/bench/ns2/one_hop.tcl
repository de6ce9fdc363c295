# Stations of 802.11b that send to one receiver in ns-2, for crates/checks/bench/src/ns3/setting.rs:
#
#   ns one_hop.tcl stations=7.2:0,0:7.2 kbps=8000 rts=0 sense_w=5.011872e-12 from=2 seconds=20 seed=1999 run=0
#
# The receiver stands at 0:0. The script prints how many packets of each station arrived after `from`. The MAC header of
# ns-2 2.35 has 34 bytes, that of Airlane 28: 1014 bytes here and 1020 bytes there make frames of the same length.

array set opt {stations 7.2:0 kbps 8000 rts 0 sense_w 5.011872e-12 from 2 seconds 20 seed 1 run 0}
foreach pair $argv { set opt([lindex [split $pair =] 0]) [lindex [split $pair =] 1] }

Mac/802_11 set dataRate_ 11Mb
Mac/802_11 set basicRate_ 1Mb
Mac/802_11 set RTSThreshold_ [expr $opt(rts) ? 0 : 3000]
Mac/802_11 set ShortRetryLimit_ 7
Mac/802_11 set LongRetryLimit_ 4
Mac/802_11 set PreambleLength_ 144
Mac/802_11 set PLCPDataRate_ 1.0e6
Phy/WirelessPhy set Pt_ 0.2818
Phy/WirelessPhy set freq_ 2.472e9
Phy/WirelessPhy set RXThresh_ 3.652e-10
Phy/WirelessPhy set CSThresh_ $opt(sense_w)
Phy/WirelessPhy set CPThresh_ 10
Agent/MessagePassing set packetSize_ 3000

# Each run of a seed draws different numbers.
ns-random [expr $opt(seed) * 1000 + $opt(run)]
set ns [new Simulator]
$ns trace-all [open /dev/null w]
set topo [new Topography]
$topo load_flatgrid 3000 3000
set stations [split $opt(stations) ,]
set count [expr [llength $stations] + 1]
create-god $count
$ns node-config -adhocRouting DumbAgent -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 100 \
  -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy -topoInstance $topo \
  -agentTrace OFF -routerTrace OFF -macTrace OFF -channel [new Channel/WirelessChannel]

for {set i 1} {$i < $count} {incr i} { set got($i) 0 }
Agent/MessagePassing instproc recv {source sport size data} {
  global ns got opt
  if {[$ns now] >= $opt(from)} { incr got($data) }
}

set i 0
foreach at [concat 0:0 $stations] {
  set node($i) [$ns node]
  $node($i) random-motion 0
  $node($i) set X_ [expr 1000 + [lindex [split $at :] 0]]
  $node($i) set Y_ [expr 1000 + [lindex [split $at :] 1]]
  $node($i) set Z_ 0
  set agent($i) [new Agent/MessagePassing]
  $node($i) attach $agent($i) 42
  incr i
}

proc send {i} {
  global ns agent node opt
  $agent($i) sendto 1014 $i [$node(0) node-addr] 42
  $ns after [expr 8.0 / $opt(kbps)] "send $i"
}
proc done {} {
  global got count
  for {set i 1} {$i < $count} {incr i} { puts "packets=$got($i)" }
  exit 0
}
# First a packet of each alone: ns-2's broadcast requests for addresses are not repeated after a collision.
for {set i 1} {$i < $count} {incr i} {
  $ns at [expr $i * 0.02] "$agent($i) sendto 1014 $i [$node(0) node-addr] 42"
  $ns at 0.5 "send $i"
}
$ns at [expr $opt(from) + $opt(seconds)] done
$ns run
