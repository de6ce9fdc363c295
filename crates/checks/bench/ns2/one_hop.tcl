# Stations of 802.11b that send to one receiver in ns-2, for crates/checks/bench/src/ns3/setting.rs:
#
#   ns one_hop.tcl stations=7.2:0,0:7.2 kbps=8000 rts=0 sense_w=5.011872e-12 from=2 seconds=20 seed=1999 run=0
#
# The receiver stands at 0:0. The script prints how many packets of each station arrived after `from`.

source [file join [file dirname [info script]] radio.tcl]
array set opt {stations 7.2:0 kbps 8000 rts 0 sense_w 5.011872e-12 from 2 seconds 20 seed 1 run 0}
take_options
radio 1 7 4 [expr $opt(rts) ? 0 : 3000] $opt(sense_w)
set stations [split $opt(stations) ,]
set count [expr [llength $stations] + 1]
network $count 3000 3000

for {set i 1} {$i < $count} {incr i} { set got($i) 0 }
Agent/MessagePassing instproc recv {source sport size data} {
  global ns got opt
  if {[$ns now] >= $opt(from)} { incr got($data) }
}

set i 0
foreach at [concat 0:0 $stations] {
  lassign [split $at :] x y
  set node($i) [station [expr 1000 + $x] [expr 1000 + $y]]
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
