# Shared by transfers and pages: options, random streams, lossy links, topologies, Snoop, and TCP as in ns-2 of 1999.
#
# LAN1, WAN1   server --wired-- base --wireless-- client, over a fast and a slow wired link
# LAN2, WAN2   server --wireless-- base --wired-- base --wireless-- client
#
# Errors act after the transmitter, so a lost frame uses air time. They are independent for each
# direction of each wireless link:
#   pkt        every packet is lost with probability `loss`, data and acknowledgments alike
#   byteexp    each byte is bad with probability `ber`; any bad byte loses the packet
#   time2      exponential good and bad periods; packets that arrive in a bad one are lost; and as byteexp

array set o {
    topology LAN1  window 20  queue 1000
    rate 2Mb  delay 3ms  segment 1000
    errors none  loss 0  ber 0  good 10  bad 0.1
    seed 1  run 0  snoop 0  maxrto 64
}
# Takes `key=value ...`; `own` are the additional options of one script.
proc take_options {own} {
    global o argv
    array set o $own
    foreach argument $argv {
        if {![regexp {^(\w+)=(.*)$} $argument -> key value] || ![info exists o($key)]} {
            puts stderr "what is `$argument'? The keys are: [lsort [array names o]]"
            exit 2
        }
        set o($key) $value
    }
}

# Repetition k is substream k of every stream: consecutive seeds give correlated runs.
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

# A loss module after a simplex link's transmitter and delay.
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
# Packets that arrive in a bad period are lost; periods follow the clock, not the traffic.
proc fade {model durations bad} {
    global ns o
    $model set rate_ $bad
    $durations set avg_ [expr {$bad ? $o(bad) : $o(good)}]
    $ns at [expr {[$ns now] + [$durations value]}] "fade $model $durations [expr {!$bad}]"
}

# ns-2's Snoop at the base station's end of a wireless link, above the queue: copies and repairs both wait at its tail.
# The module is made for a local network, where the link layer marks downlink packets and the channel uplink packets; so
# the reverse direction ends in such a network, without delay.
proc snoop {base client} {
    global ns
    set down [$ns link $base $client]
    set module [new LL/LLSnoop]
    $module set delay_ 0
    $module mac [new Mac]
    $module ifq [$down queue]
    $module down-target [$down queue]
    $module up-target [$base entry]
    $module drop-target [new Agent/Null]
    [$down head] target $module
    set channel [new Channel]
    $channel set delay_ 0
    foreach {side node above} [list near $base $module far $client [new Agent/Null]] {
        set $side [new Phy/WiredPhy]
        [set $side] node $node
        [set $side] channel $channel
        [set $side] up-target $above
        $channel addif [set $side]
    }
    set marks [new LL]
    $marks set delay_ 0
    $marks mac [new Mac]
    $marks down-target $far
    $marks up-target [new Agent/Null]
    [[$ns link $client $base] set ttl_] target $marks
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
            default { puts stderr "errors are none, pkt, byteexp or time2"; exit 2 }
        }
    }
}
proc wired {a b rate delay} {
    global ns
    $ns duplex-link $a $b $rate $delay DropTail
    $ns queue-limit $a $b 1000
    $ns queue-limit $b $a 1000
}

# The nodes from server to client, with all links between them.
proc build {} {
    global ns o n last
    foreach i {0 1 2 3} { set n($i) [$ns node] }
    set at [lsearch {LAN1 WAN1 LAN2 WAN2} $o(topology)]
    if {$at < 0} { puts stderr "topologies are LAN1, WAN1, LAN2 and WAN2"; exit 2 }
    set wide [lindex {{10Mb 1ms} {2Mb 50ms}} [expr {$at % 2}]]
    if {$at < 2} {
        wired $n(0) $n(1) {*}$wide
        wireless $n(1) $n(2)
        set last $n(2)
        if {$o(snoop)} { snoop $n(1) $n(2) }
    } else {
        wireless $n(0) $n(1)
        wired $n(1) $n(2) {*}$wide
        wireless $n(2) $n(3)
        set last $n(3)
    }
}

proc tcp_of_1999 {} {
    global o
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
    Agent/TCP set maxrto_ $o(maxrto)
    Agent/TCP set updated_rttvar_ false
    Agent/TCP set timerfix_ false           ;# the timer restarts before the sample is taken
    Agent/TCP set precisionReduce_ false    ;# windows are halved in whole segments
}
