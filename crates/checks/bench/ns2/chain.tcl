# A saturating flow over a chain of 802.11b stations in ns-2, for crates/checks/bench/src/ns2/chain.rs:
#
#   ns chain.tcl hops=3 seed=1999 run=0
#
# Debian's ns-2 has no static routing for wireless nodes, and a routing protocol would send packets of its own, so each
# relay has an agent that forwards packets.

source [file join [file dirname [info script]] radio.tcl]
array set opt {hops 1 seed 1 run 0 spacing 200 from 2 seconds 40}
take_options
radio 2 7 7
set count [expr $opt(hops) + 1]
network $count 3000 500

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
  set node($i) [station [expr 10 + $i * $opt(spacing)] 10]
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
