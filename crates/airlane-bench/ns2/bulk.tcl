# One bulk TCP transfer over a lossy link in ns-2, for comparison with Airlane.
#
#   ns bulk.tcl key=value ...      prints one line of key=value pairs
#
# LAN1   sender --wired-- base --wireless-- receiver
# WAN1   the same with a slow wired link
# WAN2   sender --wireless-- base --wired-- base --wireless-- receiver
#
# Errors act behind the transmitter, so a lost frame uses air time. They are independent for each
# direction of each wireless link:
#   pkt        every packet is lost with probability `loss`, data and acknowledgments alike
#   byteexp    each byte is bad with probability `ber`; any bad byte loses the packet
#   time2      exponential good and bad periods; what arrives in a bad one is lost; and as byteexp
#
# TCP is set as ns-2 had it in 1999; Airlane's profile is the same.

array set o {
    topology LAN1  tcp Reno  window 20  queue 1000
    rate 2Mb  delay 3ms  segment 1000  segments 1000
    errors none  loss 0  ber 0  good 10  bad 0.1
    seed 1  run 0
}
foreach argument $argv {
    if {![regexp {^(\w+)=(.*)$} $argument -> key value] || ![info exists o($key)]} {
        puts stderr "bulk.tcl: what is `$argument'? The keys are: [lsort [array names o]]"
        exit 2
    }
    set o($key) $value
}

# Only the headers that are used: ns-2 is twice as fast without the others.
remove-all-packet-headers
add-packet-header Common Flags IP TCP
set ns [new Simulator]
$ns use-scheduler Heap                 ;# the fastest for so few events

# Repetition k is substream k of every stream: seeds that follow each other give correlated runs.
$defaultRNG seed $o(seed)
proc substream {rng} {
    global o
    for {set k 0} {$k < $o(run)} {incr k} { $rng next-substream }
    return $rng
}
proc variable_of {class} {
    set variable [new RandomVariable/$class]
    $variable use-rng [substream [new RNG]]
    return $variable
}

# A loss module behind a simplex link's transmitter and delay.
proc lossy {from to unit rate} {
    global ns
    set model [new ErrorModel]
    $model unit $unit
    $model set rate_ $rate
    $model ranvar [variable_of Uniform]
    set pipe [[$ns link $from $to] link]
    $model target [$pipe target]
    $pipe target $model
    $model drop-target [new Agent/Null]
    return $model
}
# Everything that arrives in a bad period is lost; periods follow the clock, not the traffic.
proc fade {model durations bad} {
    global ns o
    $model set rate_ $bad
    $durations set avg_ [expr {$bad ? $o(bad) : $o(good)}]
    $ns at [expr {[$ns now] + [$durations value]}] "fade $model $durations [expr {!$bad}]"
}
proc wireless {a b} {
    global ns o
    $ns duplex-link $a $b $o(rate) $o(delay) DropTail
    foreach {from to} [list $a $b $b $a] {
        $ns queue-limit $from $to $o(queue)
        switch $o(errors) {
            none {}
            pkt { lossy $from $to pkt $o(loss) }
            byteexp { lossy $from $to byte $o(ber) }
            time2 {
                if {$o(ber) > 0} { lossy $from $to byte $o(ber) }
                fade [lossy $from $to pkt 0] [variable_of Exponential] 0
            }
            default { puts stderr "bulk.tcl: errors are none, pkt, byteexp or time2"; exit 2 }
        }
    }
}
proc wired {a b rate delay} {
    global ns
    $ns duplex-link $a $b $rate $delay DropTail
    $ns queue-limit $a $b 1000
    $ns queue-limit $b $a 1000
}

foreach i {0 1 2 3} { set n($i) [$ns node] }
switch $o(topology) {
    LAN1 { wired $n(0) $n(1) 10Mb 1ms; wireless $n(1) $n(2); set last $n(2) }
    WAN1 { wired $n(0) $n(1) 2Mb 50ms; wireless $n(1) $n(2); set last $n(2) }
    WAN2 { wireless $n(0) $n(1); wired $n(1) $n(2) 2Mb 50ms; wireless $n(2) $n(3); set last $n(3) }
    default { puts stderr "bulk.tcl: topologies are LAN1, WAN1 and WAN2"; exit 2 }
}

Agent/TCP set syn_ false
Agent/TCP set delay_growth_ false
Agent/TCP set windowInitOption_ 1
Agent/TCP set windowInit_ 1
Agent/TCP set singledup_ 0              ;# no limited transmit
Agent/TCP set useHeaders_ false         ;# a segment is its user data
Agent/TCP set tcpTick_ 0.5
Agent/TCP set rfc2988_ false
Agent/TCP set rtxcur_init_ 6.0          ;# before the first sample
Agent/TCP set srtt_init_ 0
Agent/TCP set rttvar_init_ 12
Agent/TCP set minrto_ 0                 ;# two ticks are the least anyway
Agent/TCP set maxrto_ 64
Agent/TCP set updated_rttvar_ false
Agent/TCP set timerfix_ false           ;# the timer restarts before the sample is taken
Agent/TCP set precisionReduce_ false    ;# windows are halved in whole segments

set class Agent/TCP
if {$o(tcp) ne "Tahoe"} { append class /$o(tcp) }
set tcp [new $class]
set sink [new [expr {$o(tcp) eq "Sack1" ? "Agent/TCPSink/Sack1" : "Agent/TCPSink"}]]
$tcp set packetSize_ $o(segment)
$tcp set window_ $o(window)
$sink set packetSize_ 40
$ns attach-agent $n(0) $tcp
$ns attach-agent $last $sink
$ns connect $tcp $sink
substream $defaultRNG

# Called with the acknowledgment of the last segment.
$tcp proc done {} {
    global ns o
    $self instvar ndatapack_ nrexmitpack_ nrexmit_ ncwndcuts_
    set seconds [$ns now]
    puts [format "seconds=%.9f throughput_bps=%.6f sent=%d retransmissions=%d timeouts=%d window_cuts=%d" \
        $seconds [expr {$o(segments) * $o(segment) * 8.0 / $seconds}] \
        $ndatapack_ $nrexmitpack_ $nrexmit_ $ncwndcuts_]
    exit 0
}
$ns at 0 "$tcp advance $o(segments)"
$ns run
