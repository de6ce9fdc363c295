use super::layout::HELD_UNIT;
use super::*;
use proptest::prelude::*;

/// A frame without a body.
fn bare(header: Header) -> Frame<()> {
    Frame::new(header, None)
}

/// Headers are copied from queue to queue, and stored in tokens: fields of one kind of frame must not enlarge
/// all others.
#[test]
fn a_header_is_as_small_as_its_fields() {
    // 28 bytes of fields, in whole words.
    assert!(size_of::<Header>() <= 32, "{} B", size_of::<Header>());
    // A packet with a niche for `Option`.
    type Packet = (u64, [u32; 10], FrameKind);
    assert_eq!(
        size_of::<Frame<Packet>>(),
        size_of::<(Header, Option<Packet>)>()
    );
}

/// The layouts of services.
const LAYOUTS: [&Layout; 8] = [
    &Layout::BARE,
    &Layout::SEQ,
    &Layout::SEQ_ACK,
    &Layout::CODED,
    &Layout::BLOCK,
    &Layout::BITMAP,
    &Layout::LANES,
    &Layout::GSM,
];
const KINDS: [FrameKind; 7] = [
    FrameKind::Data,
    FrameKind::Parity,
    FrameKind::Ack,
    FrameKind::Nak,
    FrameKind::Keepalive,
    FrameKind::Retransmission,
    FrameKind::Bitmap,
];

fn codecs() -> [Codec; 4] {
    [
        Codec::new(HeaderProfile::Study).with_modulus(62),
        Codec::new(HeaderProfile::Study),
        Codec::new(HeaderProfile::Live),
        Codec::new(HeaderProfile::Sealed),
    ]
}

#[test]
fn study_headers_have_the_published_lengths() {
    // Section 6 of docs/spec/multi-service.md: Default 1 byte, RLP 2, selective repeat 3, XOR and XOR/Ad 2;
    // section 8.1. GSM 04.22: 2 octets.
    let codec = Codec::new(HeaderProfile::Study);
    let lens = LAYOUTS.map(|layout| codec.header_len(layout));
    assert_eq!(lens, [1, 2, 3, 2, 2, 2, 3, 3]);
}

/// The overhead of every live frame, which docs/lab/bench-live.md relies on.
#[test]
fn live_headers_have_the_documented_lengths() {
    let lens = |profile| LAYOUTS.map(|layout| Codec::new(profile).header_len(layout));
    assert_eq!(lens(HeaderProfile::Live), [9, 9, 17, 11, 12, 9, 19, 11]);
    assert_eq!(lens(HeaderProfile::Sealed), [5, 5, 11, 7, 8, 4, 13, 7]);
    for profile in [
        HeaderProfile::Study,
        HeaderProfile::Live,
        HeaderProfile::Sealed,
    ] {
        let longest = lens(profile).into_iter().max();
        assert_eq!(longest, Some(Codec::new(profile).header_max()));
        assert!(Codec::new(profile).header_max() + Bitmap::MAX_LEN <= LIVE_HEADER_ROOM);
    }
}

#[test]
fn live_fields_stand_where_the_table_says() {
    let header = Header {
        service: 5,
        ack: 0x0304_0506,
        echo: Echo::new(0x0708, HELD_UNIT * 0x090a),
        ..Header::new(FrameKind::Ack, 0x0102_0304)
    };
    let mut buf = [0; 32];
    let codec = Codec::new(HeaderProfile::Live);
    let len = codec.encode(&bare(header), &Layout::SEQ_ACK, 0x1112_1314, &mut buf);
    let live = [
        0x51, 0x11, 0x12, 0x13, 0x14, 1, 2, 3, 4, 3, 4, 5, 6, 7, 8, 9, 10,
    ];
    assert_eq!((len, &buf[..17]), (Some(17), &live[..]));
    // Numbers within the sealed profile's space.
    let (seq, ack) = (0x02_0304, 0x04_0506);
    let header = Header { seq, ack, ..header };
    let codec = Codec::new(HeaderProfile::Sealed);
    let len = codec.encode(&bare(header), &Layout::SEQ_ACK, 0x1112_1314, &mut buf);
    let sealed = [0x51, 2, 3, 4, 4, 5, 6, 7, 8, 9, 10];
    assert_eq!((len, &buf[..11]), (Some(11), &sealed[..]));
    let hello = Header::new(FrameKind::Hello, 0);
    assert_eq!(
        codec.encode(&bare(hello), &Layout::BARE, 0, &mut buf),
        Some(5)
    );
    let read = codec.decode(&buf[..5], |_| None).map(|read| read.header);
    assert_eq!(read, Ok(hello), "it belongs to no service");
}

#[test]
fn byte_0_has_the_service_and_the_type_or_an_adaptive_block() {
    let codec = Codec::new(HeaderProfile::Study);
    // Section 7.9 of docs/spec/multi-service.md: 3 bits of block and the parity flag, then the index.
    let parity = Header {
        index: 9,
        ..Header::new(FrameKind::Parity, 6)
    };
    let nak = Header::new(FrameKind::Nak, 200);
    for (header, layout, bytes) in [
        (parity, &Layout::BLOCK, [0x5d, 9]),
        (nak, &Layout::SEQ, [0x52, 200]),
    ] {
        let mut buf = [0; 4];
        let frame = bare(Header {
            service: 5,
            ..header
        });
        assert_eq!(codec.encode(&frame, layout, 0, &mut buf), Some(2));
        assert_eq!(buf[..2], bytes);
    }
}

#[test]
fn a_bitmap_takes_a_byte_for_each_eight_numbers() {
    // Section 8.1: byte 0, base, ceil(span / 8) bytes.
    let codec = Codec::new(HeaderProfile::Study);
    for (span, len) in [(0, 2), (1, 3), (8, 3), (9, 4), (127, 18)] {
        let mut bits = Bitmap::EMPTY;
        if span > 0 {
            bits.set(span - 1);
        }
        let frame = Frame::<()> {
            header: Header::new(FrameKind::Bitmap, 250),
            body: Body::Bitmap(bits),
        };
        let mut buf = [0; 32];
        let written = codec.encode(&frame, &Layout::BITMAP, 0, &mut buf);
        assert_eq!(written, Some(len), "{span}");
        assert_eq!(buf[..2], [0x08, 250]);
    }
    let endless = codec.decode(&[0x08; 20], |_| Some(&Layout::BITMAP));
    assert_eq!(endless, Err(FrameError::Bitmap { got: 18 }));
    let padded = codec.decode(&[0x08, 1, 1, 0], |_| Some(&Layout::BITMAP));
    assert_eq!(padded, Err(FrameError::Bitmap { got: 2 }));
}

proptest! {
    #[test]
    fn decode_undoes_encode(
        which in 0usize..4, layout in 0usize..8, kind in 0usize..7, service in 0u8..16,
        ones: [bool; 128], seq: u32, ack: u32, session: u32, low: u16, units in 0u64..65535, payload in 0usize..100,
        index: u8, coded_len: u16, back: u16, octets: [u8; 2],
    ) {
        let (codec, layout) = (codecs()[which], LAYOUTS[layout]);
        let (live, space) = (codec.profile().is_live(), codec.space(layout));
        let mut header = Header { service, ..Header::new(KINDS[kind], space.reduce(seq)) };
        let (mut payload, mut body) = (payload, Body::<()>::Empty);
        if layout == &Layout::BITMAP && header.kind == FrameKind::Bitmap {
            let mut bits = Bitmap::EMPTY;
            (0..128).filter(|at| ones[*at as usize]).for_each(|at| bits.set(at));
            body = Body::Bitmap(bits);
            payload = 0;
        }
        if layout.acknowledges(header.kind) {
            let same = layout == &Layout::BITMAP && !live;
            header.ack = if same { header.seq } else { space.reduce(ack) };
            header.echo = live.then(|| Echo::new(low, HELD_UNIT * units)).flatten();
        }
        if matches!(layout, &Layout::BARE | &Layout::GSM) && !live {
            header.seq = 0;
        }
        if layout == &Layout::GSM {
            header.octets = octets;
        }
        if layout == &Layout::BLOCK {
            header.index = index;
            if !live {
                header.seq %= STUDY_BLOCKS;
                header.kind = KINDS[kind % 2];
            }
        }
        if matches!(layout, &Layout::CODED | &Layout::BLOCK) && live {
            header.coded_len = coded_len;
        }
        if layout == &Layout::LANES && live {
            header.back = back;
        }
        let mut buf = [0u8; 128];
        let frame = Frame { header, body };
        let len = codec.encode(&frame, layout, session, &mut buf).unwrap();
        let back = codec.decode(&buf[..len + payload], |_| Some(layout)).unwrap();
        prop_assert_eq!(back.frame(None), frame);
        prop_assert_eq!(back.payload_at, len);
        let named = codec.profile() == HeaderProfile::Live;
        prop_assert_eq!(back.session, if named { session } else { 0 });
    }

    #[test]
    fn reports_round_trip_for_every_service(which in 0usize..4, number: u32, received: u32, at_us: u32) {
        let codec = codecs()[which];
        let number = codec.space(&Layout::BARE).reduce(number);
        for body in [Body::<()>::Empty, Body::Report(Report { received, at_us })] {
            let kind = match body {
                Body::Empty => FrameKind::Mark,
                _ => FrameKind::Report,
            };
            let frame = Frame { header: Header::new(kind, number), body };
            let mut buf = [0u8; 128];
            let len = codec.encode(&frame, &Layout::SEQ_ACK, 0, &mut buf).unwrap();
            let back = codec.decode(&buf[..len], |_| Some(&Layout::LANES));
            if !codec.profile().is_live() {
                let back = codec.decode(&[kind as u8; 8], |_| Some(&Layout::LANES));
                prop_assert_eq!(back, Err(FrameError::UnknownType { code: kind as u8 }));
                continue;
            }
            prop_assert_eq!(back.unwrap().frame(None), frame);
            for short in 0..len {
                let cut = codec.decode(&buf[..short], |_| Some(&Layout::LANES));
                let truncated = matches!(cut, Err(FrameError::Truncated { .. }));
                prop_assert!(truncated, "{} of {} B", short, len);
            }
        }
    }

    #[test]
    fn any_bytes_decode_or_are_refused(which in 0usize..4, bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let codec = codecs()[which];
        if let Ok(decoded) = codec.decode(&bytes, |s| (s < 8).then_some(&Layout::SEQ_ACK)) {
            prop_assert!(decoded.payload_at <= bytes.len());
            let layout = match decoded.header.kind.is_of_services() {
                true => &Layout::SEQ_ACK,
                false => &Layout::PORTS,
            };
            prop_assert!(codec.space(layout).contains(decoded.header.seq));
        }
    }
}
