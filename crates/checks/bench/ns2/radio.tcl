# Shared by all scripts about 802.11b: options, ns-2's radio at Airlane's parameters, and stations that stand still.
#
# The MAC header of ns-2 2.35 has 34 bytes, Airlane's has 28, and Airlane's packets include a source header of 20 bytes:
# 1014 bytes of a message here and 1020 bytes there make frames of the same length.

# Takes `key=value ...` into `opt`, which has the defaults.
proc take_options {} {
  global opt argv
  foreach pair $argv { set opt([lindex [split $pair =] 0]) [lindex [split $pair =] 1] }
}

# Answers and headers have `basic` Mbit/s and data 11; short and long frames are tried so often. RTS precedes frames that
# are longer than `rts` bytes, and frames of `sense` watts are sensed.
proc radio {basic short long {rts 3000} {sense 5.011872e-12}} {
  Mac/802_11 set dataRate_ 11Mb
  Mac/802_11 set basicRate_ ${basic}Mb
  Mac/802_11 set RTSThreshold_ $rts
  Mac/802_11 set ShortRetryLimit_ $short
  Mac/802_11 set LongRetryLimit_ $long
  Mac/802_11 set PreambleLength_ 144
  Mac/802_11 set PLCPDataRate_ $basic.0e6
  Phy/WirelessPhy set Pt_ 0.2818
  Phy/WirelessPhy set freq_ 2.472e9
  Phy/WirelessPhy set RXThresh_ 3.652e-10
  Phy/WirelessPhy set CSThresh_ $sense
  Phy/WirelessPhy set CPThresh_ 10
  Agent/MessagePassing set packetSize_ 3000
}

# A simulator `ns` for so many stations on so many metres. Each run of a seed draws different numbers.
proc network {count width height} {
  global ns opt
  ns-random [expr $opt(seed) * 1000 + $opt(run)]
  set ns [new Simulator]
  $ns trace-all [open /dev/null w]
  set topo [new Topography]
  $topo load_flatgrid $width $height
  create-god $count
  $ns node-config -adhocRouting DumbAgent -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 100 \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy -topoInstance $topo \
    -agentTrace OFF -routerTrace OFF -macTrace OFF -channel [new Channel/WirelessChannel]
}

proc station {x y} {
  global ns
  set node [$ns node]
  $node random-motion 0
  $node set X_ $x
  $node set Y_ $y
  $node set Z_ 0
  return $node
}
