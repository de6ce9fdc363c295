//! The fields of a TCP segment that Snoop needs (RFC 9293, section 3.1), with the first SACK block (RFC
//! 2018). Other options are skipped.

use airlane_link::TcpView;

use super::headers::Headers;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// Option kinds (RFC 9293, section 3.1; RFC 2018, section 3).
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const SACK: u8 = 5;

/// The TCP segment in an IP packet; `None` for another protocol, a fragment, or a truncated header.
pub(super) fn view(packet: &[u8]) -> Option<TcpView> {
    let (start, end) = Headers::parse(packet)?.tcp()?;
    let tcp = packet.get(start..end)?;
    let fixed: &[u8; 20] = tcp.first_chunk()?;
    let header = usize::from(fixed[12] >> 4) * 4;
    let data = tcp.len().checked_sub(header).filter(|_| header >= 20)?;
    let u32_at =
        |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let flag = |bit: u8| fixed[13] & bit != 0;
    let numbers = data as u32 + u32::from(flag(SYN)) + u32::from(flag(FIN));
    Some(TcpView {
        connection: 0,
        endpoints: 0,
        seq: u32_at(4),
        end: u32_at(4).wrapping_add(numbers),
        ack: flag(ACK).then(|| u32_at(8)),
        window: u16::from_be_bytes([fixed[14], fixed[15]]),
        block: tcp.get(20..header).and_then(first_block),
        syn: flag(SYN),
        rst: flag(RST),
    })
}

/// The first SACK block among the options of a header; `None` if there is none, or the options before it are
/// malformed.
fn first_block(mut options: &[u8]) -> Option<[u32; 2]> {
    loop {
        let (kind, rest) = options.split_first()?;
        match *kind {
            END => return None,
            NO_OPERATION => options = rest,
            kind => {
                let len = usize::from(*rest.first()?);
                let option = options.get(2..len)?;
                if kind == SACK {
                    let [start, end] = *option.as_chunks::<4>().0.first_chunk()?;
                    return Some([start, end].map(u32::from_be_bytes));
                }
                options = &options[len..];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{PacketBuilder, TcpHeader};
    use proptest::prelude::*;

    fn packet(v6: bool, tcp: TcpHeader, data: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let ip = if v6 {
            PacketBuilder::ipv6([0xfd; 16], [0xfc; 16], 64)
        } else {
            PacketBuilder::ipv4([10, 7, 0, 1], [10, 7, 0, 2], 64)
        };
        ip.tcp_header(tcp).write(&mut bytes, data).unwrap();
        bytes
    }

    proptest! {
        #[test]
        fn segments_are_read_as_they_were_written(
            v6: bool, seq: u32, ack: u32, window: u16, flags in any::<[bool; 4]>(), len in 0usize..100,
            options in 0usize..10,
        ) {
            let mut tcp = TcpHeader::new(443, 50_000, seq, window);
            [tcp.syn, tcp.fin, tcp.rst, tcp.ack] = flags;
            tcp.acknowledgment_number = ack;
            tcp.set_options_raw(&vec![1; options * 4]).unwrap();
            let bytes = packet(v6, tcp.clone(), &vec![7; len]);
            let numbers = len as u32 + u32::from(tcp.syn) + u32::from(tcp.fin);
            prop_assert_eq!(view(&bytes), Some(TcpView {
                connection: 0,
                endpoints: 0,
                seq,
                end: seq.wrapping_add(numbers),
                ack: tcp.ack.then_some(ack),
                window,
                block: None,
                syn: tcp.syn,
                rst: tcp.rst,
            }));
            // The IP header states more bytes than are present.
            prop_assert_eq!(view(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn the_first_sack_block_is_found_after_other_options() {
        let timestamps = [8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let sack = [5, 18, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0];
        let options = [&[1, 1], &timestamps[..], &sack].concat();
        assert_eq!(first_block(&options), Some([0x100, 0x200]));
        for cut in 0..22 {
            assert_eq!(first_block(&options[..cut]), None, "{cut}");
        }
        for none in [
            &[0, 5, 10][..],
            &[5, 0],
            &[5, 1],
            &[5, 6, 0, 0, 0, 0],
            &[8, 1, 5],
        ] {
            assert_eq!(first_block(none), None, "{none:?}");
        }
    }

    proptest! {
        #[test]
        fn no_options_make_it_panic(options in prop::collection::vec(any::<u8>(), 0..60)) {
            let _block = first_block(&options);
        }
    }

    #[test]
    fn a_header_longer_than_its_segment_is_refused() {
        let mut bytes = packet(false, TcpHeader::new(1, 2, 3, 4), &[]);
        bytes[20 + 12] = 0xf0;
        assert_eq!(view(&bytes), None);
        bytes[20 + 12] = 0x40;
        assert_eq!(view(&bytes), None);
    }
}
