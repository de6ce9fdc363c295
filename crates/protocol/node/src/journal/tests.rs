//! Two ports over a lossy channel: replaying their journals gives the same outputs, and a changed journal
//! does not.

use std::cell::RefCell;
use std::rc::Rc;

use airlane_base::{Duration, Instant, Probability, QueueLimit, Streams};
use airlane_channel::{Channel, ChannelConfig, ErrorModel, ErrorModelConfig};
use airlane_link::wire::LIVE_HEADER_ROOM;
use airlane_link::{HeaderProfile, PortConfig};
use airlane_testkit::Setup;
use etherparse::PacketBuilder;

use super::format::{BLOCK_CRC, BLOCK_HEAD};
use super::*;
use crate::packet::{LivePacket, Pool};

/// A sink that keeps as many bytes as its limit allows.
#[derive(Clone, Debug, Default)]
struct Kept(Rc<RefCell<Vec<u8>>>, usize);

impl Kept {
    fn of(most: usize) -> Self {
        Self(Rc::default(), most)
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.borrow().clone()
    }
}

impl Sink for Kept {
    fn write(&mut self, bytes: Vec<u8>) -> bool {
        let fits = self.0.borrow().len() + bytes.len() <= self.1;
        if fits {
            self.0.borrow_mut().extend(bytes);
        }
        fits
    }
}

const MS: Duration = Duration::from_millis(1);

fn config() -> PortConfig {
    const ROOM: &str = "kind = \"fq-codel\", limit = \"60 packets\", flows = 8";
    let setup = Setup::new(HeaderProfile::Live)
        .rate("5 Mbit/s")
        .service(1, 0.4, "kind = \"sr-m2\", window = 64", ROOM)
        .service(2, 0.3, "kind = \"rlp-oos\", window = 32, retries = 2", ROOM)
        .service(3, 0.3, "kind = \"rse\", block = 4, parity = 2", ROOM);
    PortConfig {
        // A node draws all 64 bits; a float could not represent such a value.
        flow_salt: 0xfedc_ba98_7654_3211,
        ..setup.config
    }
}

fn packet(pool: &Pool, number: u64) -> LivePacket {
    let mut bytes = Vec::new();
    let body: Vec<u8> = (0..40 + number % 800).map(|i| (i * number) as u8).collect();
    PacketBuilder::ipv4([10, 7, 0, 1], [10, 7, 0, 2], 64)
        .udp(5_000 + (number % 5) as u16, 5_005)
        .write(&mut bytes, &body)
        .unwrap();
    // The DSCP chooses the service, the raw one included.
    bytes[1] = ((number % 4) as u8) << 2;
    let mut lease = pool.lease();
    lease.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
    LivePacket::from_kernel(lease, bytes.len()).unwrap()
}

/// The steps of a node after each input.
fn drain(
    port: &mut JournaledPort,
    now: Instant,
    channel: &mut Channel<Vec<u8>>,
    delivered: &mut u64,
) {
    while let Some(frame) = port.poll_transmit(now) {
        let mut header = [0; LIVE_HEADER_ROOM];
        let length = port.encode_header(&frame, 7, &mut header).unwrap();
        let mut bytes = header[..length].to_vec();
        bytes.extend_from_slice(frame.packet().map_or(&[], LivePacket::bytes));
        let len = bytes.len();
        let _full = channel.send(now, len, bytes);
    }
    while port.poll_deliver(now).is_some() {
        *delivered += 1;
    }
}

/// Runs two ports with journals of at most `most` bytes and returns the journals.
fn journals(most: usize) -> [Vec<u8>; 2] {
    let kept = [most; 2].map(Kept::of);
    let mut ports = kept.each_ref().map(|kept| {
        let mut port = JournaledPort::new(config()).unwrap();
        port.keep_journal(Box::new(kept.clone())).unwrap();
        port
    });
    let streams = Streams::new(3, 0);
    let mut channels = ["out", "back"].map(|name| {
        let rate = Probability::new(0.1).unwrap();
        let channel = ChannelConfig {
            rate: config().rate,
            delay: MS * 5,
            queue: QueueLimit::Packets(100),
        };
        let model = ErrorModelConfig::Uniform { rate };
        Channel::new(
            channel,
            ErrorModel::new(&model, config().rate, streams, name),
        )
    });
    let pool = Pool::new(2_048, 64);
    let (mut delivered, mut number) = ([0, 0], 0);
    // A machine that has been up for a day.
    let start = Instant::ORIGIN + Duration::from_secs(86_400);
    let mut now = start;
    let mut next_packet = start;
    while now < start + Duration::from_secs(5) {
        for end in [0, 1] {
            let port = &mut ports[end];
            if now >= next_packet {
                port.handle_packet(now, packet(&pool, number));
                number += 1;
                drain(port, now, &mut channels[end], &mut delivered[end]);
            }
            while let Some(bytes) = channels[1 - end].poll_deliver(now) {
                let mut lease = pool.lease();
                lease.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
                let decoded = port.decode(&bytes).unwrap();
                let at = decoded.payload_at;
                let payload = (bytes.len() > at)
                    .then(|| LivePacket::from_link(lease.share(), at, bytes.len()));
                port.handle_frame(now, decoded.frame(payload));
                drain(port, now, &mut channels[end], &mut delivered[end]);
            }
            if port.poll_timeout().is_some_and(|due| due <= now) {
                port.handle_timeout(now);
            }
            // A new session in between.
            if end == 0 && number == 1_500 {
                port.reset(now);
            }
            drain(port, now, &mut channels[end], &mut delivered[end]);
        }
        if now >= next_packet {
            next_packet = now + MS * 2;
        }
        let due = ports.iter().filter_map(|port| port.poll_timeout());
        let arrivals = channels.iter().filter_map(Channel::poll_timeout);
        let next = due.chain(arrivals).chain([next_packet]).min().unwrap();
        now = next.max(now + Duration::from_nanos(1));
    }
    assert!(delivered.iter().all(|d| *d > 1_000), "{delivered:?}");
    let lost = ports.each_ref().map(JournaledPort::has_lost_journal);
    assert_eq!(lost, [most < 1_000_000; 2]);
    drop(ports);
    kept.map(|kept| kept.bytes())
}

/// Applies `change` to each block and corrects its checksum.
fn blocks(bytes: &mut [u8], mut change: impl FnMut(&mut [u8])) {
    let head = u32::from_be_bytes(bytes[9..13].try_into().unwrap()) as usize;
    let mut at = 17 + head;
    while at < bytes.len() {
        let len = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let records = &mut bytes[at + BLOCK_HEAD..][..len];
        change(records);
        let crc = BLOCK_CRC.checksum(records).to_be_bytes();
        bytes[at + 4..at + 8].copy_from_slice(&crc);
        at += BLOCK_HEAD + len;
    }
}

#[test]
fn replayed_ports_repeat_their_outputs() {
    let journals = journals(1 << 30);
    let replayed = journals.each_ref().map(|bytes| replay(bytes).unwrap());
    for end in replayed {
        assert!(end.packets_in > 1_000 && end.frames_in > 1_000, "{end:?}");
        assert!(end.packets_out > 1_000 && end.frames_out > 1_000, "{end:?}");
        assert!(end.checks > 5 && end.cut_at_byte.is_none(), "{end:?}");
        assert!(end.duration_ns.abs_diff(5_000_000_000) < 10_000_000);
    }
    assert_ne!(replayed[0].outputs_crc64, replayed[1].outputs_crc64);
    // Replaying twice gives the same.
    assert_eq!(replay(&journals[0]), Ok(replayed[0]));

    // A truncated journal is valid up to the cut.
    let cut = &journals[0][..journals[0].len() / 2 + 1];
    let half = replay(cut).unwrap();
    assert!(half.cut_at_byte.is_some() && half.checks > 0 && half.checks < replayed[0].checks);

    // A corrupted byte.
    let mut bad = journals[0].clone();
    let middle = bad.len() / 2;
    bad[middle] ^= 1;
    let said = replay(&bad).unwrap_err().to_string();
    assert!(said.contains("checksum of the block"), "{said}");

    // A changed byte in a packet.
    let mut bad = journals[0].clone();
    let mut at_once = true;
    blocks(&mut bad, |records| {
        // The first packet record: type, time, length (one or two bytes), and the bytes.
        if std::mem::take(&mut at_once) {
            records[40] ^= 1;
        }
    });
    let error = replay(&bad).unwrap_err();
    assert!(matches!(error, JournalError::Diverged { .. }), "{error}");
    assert!(error.to_string().contains("another version"), "{error}");

    // A port with another configuration.
    let mut bad = journals[0].clone();
    let len = u32::from_be_bytes(bad[9..13].try_into().unwrap()) as usize;
    let text = String::from_utf8(bad[17..17 + len].to_vec()).unwrap();
    let at = 17 + text.find("5 Mbit/s").unwrap();
    bad[at] = b'4';
    let said = replay(&bad).unwrap_err().to_string();
    assert!(said.contains("head"), "{said}");
    let crc = BLOCK_CRC.checksum(&bad[17..17 + len]).to_be_bytes();
    bad[13..17].copy_from_slice(&crc);
    let error = replay(&bad).unwrap_err();
    assert!(matches!(error, JournalError::Diverged { .. }), "{error}");
}

#[test]
fn a_journal_ends_where_it_must_and_its_port_goes_on() {
    for bytes in journals(200_000) {
        assert!(bytes.len() <= 200_000 && bytes.len() > 100_000);
        let replayed = replay(&bytes).unwrap();
        assert!(replayed.checks > 0 && replayed.cut_at_byte.is_none());
    }
}

#[test]
fn a_full_sink_ends_only_the_journal() {
    let mut port = JournaledPort::new(config()).unwrap();
    port.keep_journal(Box::new(Kept::of(10_000))).unwrap();
    let pool = Pool::new(2_048, 64);
    let mut sent = 0;
    for second in 0..100 {
        let now = Instant::ORIGIN + Duration::from_secs(2) * second;
        port.handle_packet(now, packet(&pool, second));
        while port.poll_transmit(now).is_some() {
            sent += 1;
        }
    }
    assert!(port.has_lost_journal());
    assert!(sent >= 80, "{sent}");
}

/// The salt that assigns flows to queues is drawn live and recorded, because it affects the outputs.
#[test]
fn replayed_flows_share_queues_as_recorded() {
    let kept = Kept::of(1 << 20);
    let mut port = JournaledPort::new(config()).unwrap();
    port.keep_journal(Box::new(kept.clone())).unwrap();
    let pool = Pool::new(2_048, 64);
    let mut now = Instant::ORIGIN;
    (0..100).for_each(|number| port.handle_packet(now, packet(&pool, number)));
    for _ in 0..1_000 {
        now += MS;
        while port.poll_transmit(now).is_some() {}
    }
    // The journal gets a checksum only after some time has passed.
    now += Duration::from_secs(2);
    port.handle_packet(now, packet(&pool, 0));
    while port.poll_transmit(now).is_some() {}
    drop(port);
    let journal = kept.bytes();
    assert!(replay(&journal).unwrap().checks > 0);

    let len = u32::from_be_bytes(journal[9..13].try_into().unwrap()) as usize;
    let text = std::str::from_utf8(&journal[17..17 + len]).unwrap();
    let salt = config().flow_salt.to_string();
    let at = 17 + text.find(&salt).expect("it is recorded") + salt.len() - 1;
    let others = (b'0'..=b'9').map(|digit| {
        let mut other = journal.clone();
        other[at] = digit;
        let crc = BLOCK_CRC.checksum(&other[17..17 + len]).to_be_bytes();
        other[13..17].copy_from_slice(&crc);
        replay(&other)
    });
    let diverged = others.filter(|other| matches!(other, Err(JournalError::Diverged { .. })));
    assert!(diverged.count() > 0, "some other salts are other queues");
}

#[test]
fn an_invalid_journal_is_refused() {
    let refusal = |bytes: &[u8]| replay(bytes).unwrap_err().to_string();
    assert!(refusal(b"airtrace").contains("no journal"));
    assert!(refusal(b"airjrnal\x09").contains("version 9"));
    assert!(refusal(b"airjrnal\x02\0\0\0\x05").contains("cut off"));
    let mut empty = b"airjrnal\x02\0\0\0\x02".to_vec();
    empty.extend_from_slice(&BLOCK_CRC.checksum(b"{}").to_be_bytes());
    empty.extend_from_slice(b"{}");
    let said = refusal(&empty);
    assert!(said.contains("head") && said.contains("header"), "{said}");
}
