# One bulk TCP transfer over a lossy link in ns-2, for comparison with Airlane.
#
#   ns bulk.tcl key=value ...      prints one line of key=value pairs
#
# `snoop=1` puts ns-2's Snoop at the base station of LAN1 and WAN1; world.tcl documents the other options.

source [file join [file dirname [info script]] world.tcl]
take_options {tcp Reno  segments 1000}

# Only the headers in use: ns-2 is twice as fast without the others.
remove-all-packet-headers
add-packet-header Common Flags IP TCP
if {$o(snoop)} { add-packet-header Snoop LL Mac ARP }
set ns [new Simulator]
$ns use-scheduler Heap                 ;# the fastest for so few events
$defaultRNG seed $o(seed)
build
tcp_of_1999

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
