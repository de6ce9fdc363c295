# Web pages over lossy links in ns-2, one after the other, for comparison with Airlane.
#
#   ns web.tcl draws=FILE tables=FOLDER key=value ...      prints one line of key=value pairs
#
# Imitates ns-2's older HTTP module, which Debian does not ship: a client and a server with a pair of one-way agents
# for each of four slots; a request is one packet of its length; its agents are reset for each transfer; a reply
# begins after the last acknowledgment of its request and fills whole packets; a draw of zero stands for 1000 bytes.
#
# Sizes come from the tables, by the numbers from 0 to 1 in `draws`, one per line, in the order in which they are
# needed, so that both simulators fetch the same pages.

source [file join [file dirname [info script]] world.tcl]
take_options {duration 2000  draws ""  tables ""  slots 4}

remove-all-packet-headers
add-packet-header Common Flags IP TCP
set ns [new Simulator]
$ns use-scheduler Heap
$defaultRNG seed $o(seed)
build
tcp_of_1999

set draws [open $o(draws)]
foreach {what file} {request HttpRequestLength reply HttpReplyLength files HttpConnections} {
    set table [open [file join $o(tables) $file.cdf]]
    foreach {value count below} [read $table] { lappend values($what) $value; lappend belows($what) $below }
    close $table
}
# The smallest value whose cumulative probability exceeds the next number.
proc draw {what} {
    global draws values belows
    if {[gets $draws u] < 0} { puts stderr "web.tcl: there are too few draws"; exit 2 }
    set low 0
    set high [expr {[llength $belows($what)] - 1}]
    while {$low < $high} {
        set middle [expr {($low + $high) / 2}]
        if {[lindex $belows($what) $middle] > $u} { set high $middle } else { set low [expr {$middle + 1}] }
    }
    return [expr {round([lindex $values($what) $low])}]
}
proc or_for_zero {drawn} { expr {$drawn == 0 ? 1000 : $drawn} }

foreach slot [lsearch -all [lrepeat $o(slots) x] x] {
    foreach {side from to done} [list request $last $n(0) answer reply $n(0) $last on_reply] {
        set agent [new Agent/TCP/Reno]
        set sink [new Agent/TCPSink]
        $agent set packetSize_ $o(segment)
        $agent set window_ $o(window)
        $sink set packetSize_ 40
        $ns attach-agent $from $agent
        $ns attach-agent $to $sink
        $ns connect $agent $sink
        $agent proc done {} "$done $slot"
        set sends($side,$slot) [list $agent $sink]
    }
}
substream $defaultRNG

set timeouts 0
proc transmit {side slot packets} {
    global sends timeouts
    lassign $sends($side,$slot) agent sink
    incr timeouts [$agent set nrexmit_]
    $agent reset
    $sink reset
    $agent advance $packets
}
proc begin {} {
    global page
    array set page {here 0  to_request 0  to_come 1  bytes 0}
    ask 0
}
proc ask {slot} {
    global sends
    [lindex $sends(request,$slot) 0] set packetSize_ [or_for_zero [draw request]]
    transmit request $slot 1
}
proc answer {slot} {
    global o page
    set packets [expr {int(ceil(double([or_for_zero [draw reply]]) / $o(segment)))}]
    incr page(bytes) [expr {$packets * $o(segment)}]
    transmit reply $slot $packets
}
proc on_reply {slot} {
    global o page
    incr page(to_come) -1
    set idle $slot
    if {!$page(here)} {
        set page(here) 1
        set page(to_request) [set page(to_come) [draw files]]
        set idle [lsearch -all [lrepeat $o(slots) x] x]
    }
    if {$page(to_come) == 0} {
        complete
        return
    }
    foreach slot $idle {
        if {$page(to_request) > 0} {
            incr page(to_request) -1
            ask $slot
        }
    }
}
set pages 0
set bytes 0
set seconds 0
proc complete {} {
    global ns page pages bytes seconds
    incr pages
    incr bytes $page(bytes)
    set seconds [$ns now]
    begin
}
proc finish {} {
    global o sends pages bytes seconds timeouts
    foreach pair [array names sends] { incr timeouts [[lindex $sends($pair) 0] set nrexmit_] }
    puts [format "seconds=%.9f throughput_bps=%.6f pages=%d timeouts=%d" \
        $seconds [expr {$seconds > 0 ? $bytes * 8.0 / $seconds : 0}] $pages $timeouts]
    exit 0
}
$ns at 0 begin
$ns at $o(duration) finish
$ns run
