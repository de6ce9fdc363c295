# Files over TCP from stations of 802.11b to one of them, in ns-2, for crates/checks/bench/src/ns2/air.rs:
#
#   ns air.tcl tcp=Reno stations=5 attempts=1 seed=1999 run=0
#
# Headers are as in radio.tcl: 14 bytes in addition to a segment's 1,000 and 40 make a frame as long as Airlane's. TCP
# is that of July 2002, as in studies/gopal-2007. It prints the bits of all files over the time until the last was
# complete.

source [file join [file dirname [info script]] radio.tcl]
array set opt {tcp Reno stations 1 attempts 7 seed 1 run 0 segments 1000}
take_options
radio 1 $opt(attempts) $opt(attempts)
set count [expr $opt(stations) + 1]
network $count 100 100

Agent/TCP set syn_ false
Agent/TCP set delay_growth_ false
Agent/TCP set windowInitOption_ 1
Agent/TCP set windowInit_ 1
Agent/TCP set window_ 16384
Agent/TCP set singledup_ 1
Agent/TCP set tcpTick_ 0.01
Agent/TCP set rfc2988_ false
Agent/TCP set rtxcur_init_ 6.0
Agent/TCP set srtt_init_ 0
Agent/TCP set rttvar_init_ 12
Agent/TCP set minrto_ 1
Agent/TCP set maxrto_ 64
Agent/TCP set updated_rttvar_ false
Agent/TCP set timerfix_ false
Agent/TCP set precisionReduce_ false
Agent/TCP set useHeaders_ true
Agent/TCP set tcpip_base_hdr_size_ 54
Agent/TCP set packetSize_ 1000
Agent/TCPSink set packetSize_ 54
Agent/TCPSink/Sack1 set packetSize_ 54

set class Agent/TCP
if {$opt(tcp) ne "Tahoe"} { append class /$opt(tcp) }
set sinkclass Agent/TCPSink
if {$opt(tcp) eq "Sack1"} { append sinkclass /Sack1 }

set left $opt(stations)
for {set i 0} {$i < $count} {incr i} {
  # The station in the middle has the sinks; the others are around it.
  set angle [expr $i * 6.283185307179586 / $opt(stations)]
  set off [expr $i == 0 ? 0 : 7.2]
  set node($i) [station [expr 20 + $off * cos($angle)] [expr 20 + $off * sin($angle)]]
}
for {set i 1} {$i < $count} {incr i} {
  set tcp($i) [new $class]
  set sink($i) [new $sinkclass]
  $ns attach-agent $node($i) $tcp($i)
  $ns attach-agent $node(0) $sink($i)
  $ns connect $tcp($i) $sink($i)
  $tcp($i) proc done {} {
    global left ns opt
    incr left -1
    if {$left == 0} {
      puts "throughput_bps=[expr $opt(stations) * $opt(segments) * 8000.0 / [$ns now]] timeouts=0"
      exit 0
    }
  }
  $ns at [expr ($i - 1) * 0.1] "$tcp($i) advance $opt(segments)"
}
$ns at 1000.0 "exit 1"
$ns run
