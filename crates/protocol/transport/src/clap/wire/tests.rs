//! Decoding returns what was encoded, and refuses everything else.

use airlane_base::Instant;
use proptest::prelude::*;

use super::*;

const NOW: fn() -> Stamp = || Stamp::of(Instant::ORIGIN);

fn bytes(packet: &Packet<'_>) -> Vec<u8> {
    let mut out = [0; 2_000];
    let len = encode([1, 2], packet, NOW(), &mut out).unwrap();
    out[..len].to_vec()
}

#[test]
fn a_nack_is_laid_out_as_specified() {
    let nack = Nack {
        kind: NackKind::Sweep,
        seq: 0x0102_0304,
        count: 11,
        bitmap: &[0x80, 0x20],
        stamp: NOW(),
    };
    let expected = [
        0, 1, 0, 2, 1, 2, 3, 4, 0, 2, 1, 0x68, 0, 0, 0, 1, 0, 0, 0, 0, 0x80, 0x20,
    ];
    let written = bytes(&Packet::Feedback(Feedback::Nack(nack)));
    assert_eq!(written, expected);
    let missing: Vec<u32> = nack
        .packets()
        .filter_map(|(n, missing)| missing.then_some(n))
        .collect();
    assert_eq!(missing, [0x0102_0304, 0x0102_0304 + 10]);
    assert_eq!(nack.packets().count(), 11);
}

#[test]
fn each_malformed_packet_has_its_reason() {
    let data = Data {
        seq: 7,
        stamp: NOW(),
        echo: None,
        again: false,
        solicits: false,
    };
    let whole = bytes(&Packet::Forward(Forward::Data(data), b"file"));
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        decode(&bytes).unwrap_err()
    };
    let flags = |flags: u16, bytes: &mut Vec<u8>| {
        bytes[10..12].copy_from_slice(&flags.to_be_bytes());
    };
    let empty = |bytes: &mut Vec<u8>| {
        bytes.truncate(HEADER);
        bytes[9] = 0;
    };
    use Malformed as M;
    assert_eq!(decode(&whole[..19]), Err(M::Short(19)));
    assert_eq!(changed(&|b| b.truncate(23)), M::Length { says: 4, has: 3 });
    assert_eq!(changed(&|b| b.push(0)), M::Length { says: 4, has: 5 });
    assert_eq!(changed(&|b| b[15] = 0), M::NoTime);
    assert_eq!(changed(&|b| empty(b)), M::Empty);
    assert_eq!(changed(&|b| flags(SYN | FIN, b)), M::Flags(3));
    assert_eq!(changed(&|b| flags(ACK, b)), M::Flags(4));
    assert_eq!(changed(&|b| flags(NACK | 512, b)), M::Flags(520));
    assert_eq!(changed(&|b| flags(FIN, b)), M::Payload(4));
    assert_eq!(changed(&|b| flags(SYN_ACK, b)), M::Payload(4));
    // The last byte is "e", 0x65: its last bit is set.
    assert_eq!(
        changed(&|b| flags(NACK | 1 << PADDING_SHIFT, b)),
        M::Padding
    );
    let empty_nack = changed(&|b| {
        flags(NACK, b);
        empty(b);
    });
    assert_eq!(empty_nack, M::Empty);
    let long_syn = changed(&|b| {
        flags(SYN, b);
        b.push(0);
        b[9] = 5;
    });
    assert_eq!(long_syn, M::SynPayload(5));
    let reasons = [long_syn, empty_nack, M::Padding, M::Payload(4), M::Flags(3)];
    let texts: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    assert!(texts.iter().all(|text| !text.is_empty()), "{texts:?}");
}

#[test]
fn a_short_buffer_error_names_the_length_needed() {
    let syn = Packet::Forward(Forward::Syn { first: 0, count: 9 }, &[]);
    assert_eq!(encode([1, 2], &syn, NOW(), &mut [0; 23]), Err(NoRoom(24)));
    let data = Data {
        seq: 0,
        stamp: NOW(),
        echo: None,
        again: false,
        solicits: false,
    };
    let long = vec![0; 65_536];
    let packet = Packet::Forward(Forward::Data(data), &long);
    let mut out = vec![0; 70_000];
    assert_eq!(
        encode([1, 2], &packet, NOW(), &mut out),
        Err(NoRoom(65_556))
    );
}

proptest! {
    #[test]
    fn any_packet_round_trips(
        which in 0..6,
        seq: u32,
        number: u32,
        stamp in 1..=u32::MAX,
        bits in prop::collection::vec(any::<u8>(), 1..1_000),
        spare in 0u32..8,
    ) {
        let stamp = Stamp::from_number(stamp).unwrap();
        let mut bitmap = bits.clone();
        *bitmap.last_mut().unwrap() &= 0xff << spare;
        let packet = match which {
            0 => Packet::Forward(Forward::Syn { first: seq, count: number }, &[]),
            1 => Packet::Forward(Forward::FinAck { first: seq }, &[]),
            2 => Packet::Feedback(Feedback::SynAck { first: seq }),
            3 => Packet::Feedback(Feedback::Fin { first: seq }),
            4 => {
                let echo = Stamp::from_number(number);
                Packet::Forward(Forward::Data(Data { seq, stamp, echo, again: false, solicits: seq % 2 == 0 }), &bits)
            }
            _ => Packet::Feedback(Feedback::Nack(Nack {
                kind: NackKind::Pivot,
                seq,
                count: bitmap.len() as u32 * 8 - spare,
                bitmap: &bitmap,
                stamp,
            })),
        };
        let written = bytes(&packet);
        prop_assert_eq!(decode(&written), Ok(([1, 2], packet)));
    }

    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..80), len: Option<u8>, flags: Option<u8>) {
        let mut bytes = bytes;
        if let (Some(place), Some(_)) = (bytes.get_mut(9), len) {
            *place = 0;
            let payload = bytes.len().saturating_sub(HEADER) as u16;
            bytes[8..10].copy_from_slice(&payload.to_be_bytes());
        }
        if let (Some(place), Some(flags)) = (bytes.get_mut(11), flags) {
            *place = flags;
            bytes[10] = 0;
        }
        match decode(&bytes) {
            Ok((ports, packet)) => {
                let mut out = [0; 200];
                let len = encode(ports, &packet, NOW(), &mut out).unwrap();
                prop_assert_eq!(decode(&out[..len]).map(|(ports, _)| ports), Ok(ports));
            }
            Err(reason) => prop_assert!(!reason.to_string().is_empty()),
        }
    }
}
