#!/bin/sh
# The experiments of docs/lab/experiments.md: sh studies/experiments.sh RUNS OUT [NAME...]
#
# AIRLANE is the program, with what else it is to be told. FIGURES takes the place of the figures, those of the paper too,
# as in FIGURES="F5.8 F5.10" sh studies/experiments.sh 2 OUT pcs-timers. What a folder already has is not simulated again.
set -e
runs=$1 out=$2
shift 2
names=${*:-"snoop pcs-timers pcs-mix conference conference-first conference-unpaced web go-back-n windows late-repairs draws"}

# run NAME STUDIES-AND-OPTIONS
run() {
  name=$1
  shift
  case " $names " in
    *" $name "*) ${AIRLANE:-airlane} study run --figure-only --traffic-seed "$traffic" --runs "$runs" --out "$out/$name" "$@" > "$out/$name.txt" ;;
  esac
}
# Studies of a work: of WORK FIGURE...
of() {
  work=$1
  shift
  if [ -z "$FIGURES" ]; then
    printf "$work/%s " "$@"
  elif [ "$work" = xylomenos-1999 ]; then
    printf "$work/%s " $FIGURES
  fi
}
mkdir -p "$out"
# Whatever is compared meets the same traffic, where the traffic itself is not the question.
traffic=1

scheme='links.*.services[*].scheme'
tcp='flows[*].transport(kind=tcp)'
web='flows[*].app(kind=web)'

run snoop $(of xylomenos-1999 F4.2 F4.3 F4.13 F4.15) \
  --grid 'links.radio*.pacing=framed,off' --grid 'links.radio*.handed-over=2,unlimited' \
  --grid "$scheme(kind=snoop).variant=ns2-connections,ns2-agents,ns2"

# T_ka of 3, 6, 12 and 24 R_busy, T_rto of 1, 2 and 4 T_ka.
timers=
for ka in 491 982 1963 3926; do
  for times in 1 2 4; do
    timers="$timers,{ ack = \"63 ms\", nak = \"1 s\", keepalive = \"$ka ms\", rto = \"$((ka * times)) ms\" }"
  done
done
arq="$scheme(kind=rlp|rlp-oos|sr|sr-m1|sr-m2)"
run pcs-timers $(of xylomenos-1999 F4.5 F4.6 F4.14 F5.8 F5.10) \
  --grid "$arq.timers=${timers#,}" --grid "$arq.timers.nak=700 ms,1000 ms,1500 ms"
timers=
for ka in 491 1963 3926; do
  timers="$timers,{ ack = \"63 ms\", nak = \"1 s\", keepalive = \"$ka ms\", rto = \"$ka ms\" }"
done
run pcs-mix $(of xylomenos-1999 F7.15 F7.16) --grid "$arq.timers=${timers#,}" --grid "$arq.timers.nak=700 ms,1500 ms"

set -- --grid 'links.radio*.queue=10 packets,20 packets,50 packets' \
  --grid 'links.radio*(pacing=framed).pacing-overhead=0 B,1 B,3 B'
delays="F7.13 F7.14 F7.15 F7.17 F8.2 F8.3"
run conference $(of xylomenos-1999 $delays) "$@"
run conference-first $(of xylomenos-1999 $delays) --alternative conference-first "$@"
run conference-unpaced $(of xylomenos-1999 $delays) --set 'links.radio*.pacing=off' \
  --grid 'links.radio*.queue=10 packets,20 packets,50 packets'

traffic=each-run
run web $(of xylomenos-1999 F4.12 F7.7 F7.8 F7.10) \
  --grid "$tcp.max-rto=64 s,100000 s" --grid "$tcp.keep-rtt-mark=true,false" \
  --grid "$web.requests=segments,one" --grid "$web.empty=left-out,zero"

traffic=1
run go-back-n $(of xylomenos-1999 F4.2 F4.3) $(of xylomenos-polyzos F2 F4 F5) \
  --grid "$scheme(kind=gbn).timers=relaxed,tight,buffer"

run windows $(of xylomenos-1999 F4.2 F4.8) $(of xylomenos-polyzos F2) --grid "$tcp.window=10,20,40,80,128"

run late-repairs $(of xylomenos-1999 F5.9 F5.11 F5.13 F5.15) $(of xylomenos-polyzos F10) \
  --grid "$scheme(kind=rlp|rlp-oos|sr).timers=relaxed,tight,buffer" --grid 'flows[*].app(kind=conferencing).silence=1.35 s,0 s'

traffic=each-run
run draws $(of xylomenos-1999 F7.4 F7.7 F8.2-PCS F8.3-PCS) --grid 'flows[file].app.size=1 MB,10 MB'
