# A saturated grid of 4 by 4 stations of 802.11b in ns-2: one flow over three hops, and three over one hop next to it,
# for crates/checks/bench/src/mesh.rs:
#
#   ns mesh.tcl seconds=60 seed=1999 run=0
#
# Relays are as in chain.tcl.

source [file join [file dirname [info script]] radio.tcl]
array set opt {seed 1 run 0 spacing 170 seconds 60}
take_options
radio 2 7 7
network 16 3000 3000

set got(14) 0
foreach end {12 15 0} { set got($end) 0 }
Agent/MessagePassing instproc recv {source sport size data} {
  global got
  $self instvar next last here
  if {$last} { incr got($here) } else { $self sendto $size $data $next 42 }
}

for {set i 0} {$i < 16} {incr i} {
  set node($i) [station [expr 10 + ($i % 4) * $opt(spacing)] [expr 10 + ($i / 4) * $opt(spacing)]]
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
