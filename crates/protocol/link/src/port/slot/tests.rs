use super::super::Port;
use super::super::agree::tests::To;
use super::*;
use crate::wire::{Bitmap, Body, FrameKind, HeaderProfile};
use airlane_base::Rate;

/// The frame kinds of each scheme.
const KINDS: [(&str, &str); 14] = [
    ("default", "data"),
    ("gbn", "data ack retransmission"),
    ("sr", "data ack nak keepalive copy retransmission"),
    ("sr-m1", "data ack nak keepalive copy retransmission"),
    ("sr-m2", "data ack nak keepalive copy retransmission"),
    ("sr-bitmap", "data retransmission bitmap"),
    ("rlp", "data nak keepalive copy retransmission"),
    ("rlp-oos", "data nak keepalive copy retransmission"),
    ("gsm-rlp", "data ack retransmission link"),
    ("xor", "data parity"),
    ("xor-ad", "data parity"),
    ("rse", "data parity"),
    ("rse-ad", "data nak keepalive parity"),
    ("snoop", "data retransmission"),
];

fn port(scheme: &str) -> Port<To> {
    let more = match scheme {
        "snoop" => ", base-station = \"here\"",
        "xor-ad" => ", silence = \"100 ms\"",
        _ => "",
    };
    let service =
        format!("number = 1\nname = \"one\"\nrate = 1\nscheme = {{ kind = \"{scheme}\"{more} }}");
    let (rate, delay) = (Rate::from_bps(1_000_000).unwrap(), Duration::ZERO);
    Port::new(PortConfig {
        services: vec![toml::from_str(&service).unwrap()],
        ..PortConfig::new(HeaderProfile::Live, rate, delay, 1400)
    })
    .unwrap()
}

#[test]
fn a_scheme_gets_frames_of_its_kinds_and_no_others() {
    let all = SchemeConfig::ALL.iter().map(|scheme| scheme.name);
    assert!(all.eq(KINDS.iter().map(|(scheme, _)| *scheme)));
    for (scheme, kinds) in KINDS {
        let mut has = vec![];
        for kind in FrameKind::ALL.iter().filter(|kind| !kind.is_of_ports()) {
            for packet in [None, Some(To(1))] {
                let mut port = port(scheme);
                let mut frame = Frame::new(Header::new(*kind, 0), packet);
                frame.header.service = 1;
                // GSM 04.22: frames without a number, and resets, are marked in the octets.
                frame.header.octets = match kind {
                    FrameKind::Ack => [0xf0, 0x01],
                    FrameKind::Link => [0xfb, 0x1f],
                    _ => [0; 2],
                };
                if *kind == FrameKind::Bitmap && frame.packet().is_none() {
                    frame.body = Body::Bitmap(Bitmap::EMPTY);
                }
                let whole = frame.packet().is_some() == kind.carries_packet();
                port.handle_frame(Instant::ORIGIN, frame);
                let ledger = *port.ledger(1).unwrap();
                let refused = ServiceLedger {
                    frames_received: 1,
                    frame_received_bytes: ledger.frame_received_bytes,
                    malformed: 1,
                    ..ServiceLedger::default()
                };
                if ledger.malformed == 0 {
                    assert!(whole, "{scheme}: {kind:?} without its packet");
                    has.push(kind.name());
                } else {
                    assert_eq!(ledger, refused, "{scheme}: {kind:?}");
                }
            }
        }
        let mut expected: Vec<_> = kinds.split(' ').collect();
        expected.sort_unstable();
        has.sort_unstable();
        assert_eq!(has, expected, "{scheme}");
    }
}
