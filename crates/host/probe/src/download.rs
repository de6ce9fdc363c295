//! A QUIC-like download over UDP: packets of 1200 B, a window that grows until packets are lost and then shrinks
//! (NewReno of RFC 9002, with CUBIC's factor), packet numbers that are never reused, acknowledgments with ranges,
//! pacing, and probes after silence. Lost data is retransmitted under another number.
//!
//! ```text
//! server, data:            0 "QDAT" | 4 number (8) | 12 chunk (8) | 20 proof (8) | zeros, to 1200
//! client, acknowledgment:  0 "QACK" | 4 token (16) | 20 largest number (8) | 28 its proof (8) | 36 ones below it (16)
//! ```
//!
//! Data is sent only to the address that ordered the test, and to addresses proven by a TCP connection with the
//! test's token (on a link, to any address of the peer), and for no longer than [`SILENCE`] after an acknowledgment.
//! The proof is random: only a host that received a packet can acknowledge it. Left out: encryption, which does not
//! change the size or time of packets; streams; flow control; more than one client.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use crate::is_timeout;
use crate::plan::Timetable;
use crate::report::DownloadReport;
use crate::server_state::{ServerState, Test};
use crate::token::{TOKEN_LEN, TestToken};

const DATA: [u8; 4] = *b"QDAT";
const ACK: [u8; 4] = *b"QACK";
const PACKET_LEN: usize = 1200;
const ACK_LEN: usize = 52;
/// Packet numbers below the largest that an acknowledgment covers.
const RANGE: u64 = 128;
/// An acknowledgment is sent after this many packets, or after this time.
const EVERY: u32 = 2;
const ACK_DELAY: Duration = Duration::from_millis(25);
/// A packet is lost when one with a number this much larger has arrived (RFC 9002, section 6.1.1).
const REORDERED: u64 = 3;
/// How long a client may be silent.
const SILENCE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(1);
const INITIAL_WINDOW: f64 = 10.0;
const LEAST_WINDOW: f64 = 2.0;
const DECREASE: f64 = 0.7;
const INITIAL_RTT_NS: u64 = 333_000_000;
/// Chunks that a client tracks: far more than a test of a slow link has.
const MOST_CHUNKS: usize = 1 << 24;

fn field(at: usize, bytes: &[u8]) -> u64 {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk());
    u64::from_be_bytes(field.copied().unwrap_or_default())
}

/// The content of an acknowledgment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acknowledgment {
    /// The largest number received, and the proof in that packet; 0 and 0 before any.
    largest: u64,
    proof: u64,
    /// Bitmap of the numbers below, the nearest in the lowest bit.
    below: u128,
}

impl Acknowledgment {
    pub(crate) fn write(&self, token: TestToken) -> [u8; ACK_LEN] {
        let mut bytes = [0; ACK_LEN];
        bytes[..4].copy_from_slice(&ACK);
        bytes[4..4 + TOKEN_LEN].copy_from_slice(&token.0);
        bytes[20..28].copy_from_slice(&self.largest.to_be_bytes());
        bytes[28..36].copy_from_slice(&self.proof.to_be_bytes());
        bytes[36..].copy_from_slice(&self.below.to_be_bytes());
        bytes
    }

    /// Parses an acknowledgment and its token.
    pub(crate) fn read(bytes: &[u8]) -> Option<(&[u8], Self)> {
        let bytes: &[u8; ACK_LEN] = bytes.try_into().ok()?;
        let below = bytes.last_chunk()?;
        let said = Self {
            largest: field(20, bytes),
            proof: field(28, bytes),
            below: u128::from_be_bytes(*below),
        };
        bytes
            .starts_with(&ACK)
            .then_some((&bytes[4..4 + TOKEN_LEN], said))
    }

    /// Records a number that was received.
    const fn note(&mut self, number: u64, proof: u64) {
        if number > self.largest {
            let gap = number - self.largest;
            self.below = match gap {
                1..=RANGE => {
                    let shifted = if gap < 128 { self.below << gap } else { 0 };
                    // The previous largest number, if any, is now below.
                    if self.largest > 0 {
                        shifted | 1 << (gap - 1)
                    } else {
                        shifted
                    }
                }
                _ => 0,
            };
            (self.largest, self.proof) = (number, proof);
        } else if let Some(back @ 1..=RANGE) = self.largest.checked_sub(number) {
            self.below |= 1 << (back - 1);
        }
    }

    const fn has(&self, number: u64) -> bool {
        match self.largest.checked_sub(number) {
            Some(0) => true,
            Some(back @ 1..=RANGE) => self.below >> (back - 1) & 1 == 1,
            _ => false,
        }
    }
}

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
struct OnWay {
    number: u64,
    chunk: u64,
    sent_ns: u64,
}

/// The sender: decides which packet leaves when. Times are ns of its own clock.
#[derive(Debug)]
pub(crate) struct Sender {
    next: u64,
    next_chunk: u64,
    on_way: VecDeque<OnWay>,
    /// Lost chunks.
    again: VecDeque<u64>,
    window: f64,
    threshold: f64,
    /// Losses of smaller numbers belong to the current loss event.
    recovery: u64,
    rtt_ns: Option<u64>,
    heard_ns: u64,
    probes: u32,
    /// When the pacer allows the next packet.
    free_ns: u64,
    /// Generates the proofs.
    keys: RandomState,
}

impl Sender {
    pub(crate) fn new(now_ns: u64) -> Self {
        Self {
            next: 1,
            next_chunk: 0,
            on_way: VecDeque::new(),
            again: VecDeque::new(),
            window: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            recovery: 0,
            rtt_ns: None,
            heard_ns: now_ns,
            probes: 0,
            free_ns: now_ns,
            keys: RandomState::new(),
        }
    }

    fn proof(&self, number: u64) -> u64 {
        self.keys.hash_one(number)
    }

    fn rtt_ns(&self) -> u64 {
        self.rtt_ns.unwrap_or(INITIAL_RTT_NS)
    }

    /// The number and chunk of the next packet, if one may leave now.
    pub(crate) fn poll(&mut self, now_ns: u64) -> Option<(u64, u64)> {
        let patience = 3 * self.rtt_ns() + 2 * ACK_DELAY.as_nanos() as u64;
        let silent = now_ns.saturating_sub(self.heard_ns) >= patience << self.probes.min(6);
        if silent && let Some(oldest) = self.on_way.pop_front() {
            // The reply to this probe shows whether the packet or its acknowledgment was lost.
            self.heard_ns = now_ns;
            self.probes += 1;
            if self.probes >= 2 {
                self.on_loss(self.next);
                self.window = LEAST_WINDOW;
            }
            return Some(self.packet(now_ns, oldest.chunk));
        }
        if self.on_way.len() as f64 >= self.window || now_ns < self.free_ns {
            return None;
        }
        // 25 % faster than the window's rate (RFC 9002, section 7.7), in bursts of a tick.
        let gap = self.rtt_ns() as f64 / self.window / 1.25;
        let earliest = now_ns.saturating_sub(2 * TICK.as_nanos() as u64);
        self.free_ns = self.free_ns.max(earliest) + gap as u64;
        let chunk = self.again.pop_front().unwrap_or_else(|| {
            self.next_chunk += 1;
            self.next_chunk - 1
        });
        Some(self.packet(now_ns, chunk))
    }

    fn packet(&mut self, sent_ns: u64, chunk: u64) -> (u64, u64) {
        let number = self.next;
        self.next += 1;
        self.on_way.push_back(OnWay {
            number,
            chunk,
            sent_ns,
        });
        (number, chunk)
    }

    /// Handles an acknowledgment. Returns whether its proof is valid.
    pub(crate) fn handle_ack(&mut self, now_ns: u64, said: &Acknowledgment) -> bool {
        if said.largest >= self.next || said.proof != self.proof(said.largest) {
            return false;
        }
        let (mut acknowledged, mut lost, mut fresh) = (0, None, None);
        let again = &mut self.again;
        self.on_way.retain(|packet| {
            if said.has(packet.number) {
                acknowledged += 1;
                if packet.number == said.largest {
                    fresh = Some(packet.sent_ns);
                }
                return false;
            }
            if packet.number + REORDERED <= said.largest {
                again.push_back(packet.chunk);
                lost = Some(packet.number);
                return false;
            }
            true
        });
        if let Some(sent_ns) = fresh {
            let sample = now_ns.saturating_sub(sent_ns);
            self.rtt_ns = Some(self.rtt_ns.map_or(sample, |rtt| (rtt * 7 + sample) / 8));
        }
        if acknowledged > 0 {
            (self.heard_ns, self.probes) = (now_ns, 0);
        }
        for _ in 0..acknowledged {
            self.window += match self.window < self.threshold {
                true => 1.0,
                false => 1.0 / self.window,
            };
        }
        if let Some(number) = lost {
            self.on_loss(number);
        }
        true
    }

    fn on_loss(&mut self, number: u64) {
        if number >= self.recovery {
            self.window = (self.window * DECREASE).max(LEAST_WINDOW);
            self.threshold = self.window;
            self.recovery = self.next;
        }
    }
}

/// Serves clients with the token of the running test, until the server ends.
pub(crate) fn answer(socket: &UdpSocket, state: &ServerState<'_>) {
    let mut buffer = [0; 2048];
    while !state.is_over() {
        let Ok((len, from)) = socket.recv_from(&mut buffer) else {
            continue;
        };
        let Some((token, _)) = Acknowledgment::read(&buffer[..len]) else {
            continue;
        };
        if let Some(test) = state.test_of(token).filter(|test| test.may_send_to(from)) {
            // Whatever ends it, the client counts what has arrived.
            let _ended = socket
                .set_read_timeout(Some(TICK))
                .and_then(|()| send(socket, from, &test, state));
            let _best_effort = socket.set_read_timeout(Some(crate::GLANCE));
        }
    }
}

fn send(
    socket: &UdpSocket,
    to: SocketAddr,
    test: &Test,
    state: &ServerState<'_>,
) -> io::Result<()> {
    let watch = state.watch;
    let mut sender = Sender::new(watch.now_ns());
    let mut last_ns = watch.now_ns();
    let (mut packet, mut buffer) = ([0; PACKET_LEN], [0; 2048]);
    packet[..4].copy_from_slice(&DATA);
    while !test.is_over() && !state.is_over() {
        let now = watch.now_ns();
        if now.saturating_sub(last_ns) > SILENCE.as_nanos() as u64 {
            return Ok(());
        }
        while let Some((number, chunk)) = sender.poll(watch.now_ns()) {
            if !test.spend(PACKET_LEN as u64) {
                return Ok(());
            }
            packet[4..12].copy_from_slice(&number.to_be_bytes());
            packet[12..20].copy_from_slice(&chunk.to_be_bytes());
            packet[20..28].copy_from_slice(&sender.proof(number).to_be_bytes());
            // A full device queue is a loss like any other.
            let _ = socket.send_to(&packet, to);
        }
        match socket.recv_from(&mut buffer) {
            Ok((len, from)) if from == to => {
                let said = Acknowledgment::read(&buffer[..len]);
                if let Some((_, said)) = said.filter(|(token, _)| *token == test.token.0) {
                    let now = watch.now_ns();
                    if sender.handle_ack(now, &said) {
                        last_ns = now;
                    }
                }
            }
            Err(error) if !is_timeout(&error) => std::thread::sleep(TICK),
            _ => {}
        }
    }
    Ok(())
}

/// Receives until the plan's end.
pub(crate) fn receive(
    server: SocketAddr,
    token: TestToken,
    plan: &Timetable,
) -> io::Result<DownloadReport> {
    let any: std::net::IpAddr = match server {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(ACK_DELAY))?;
    let (mut said, mut unsaid, mut chunks) = (Acknowledgment::default(), 0, Vec::<bool>::new());
    let (mut received, mut packets, mut buffer) = (0u64, 0u64, [0; 2048]);
    while !plan.is_over() {
        // The first packet requests the download; the server may not be ready yet.
        let quiet = match socket.recv(&mut buffer) {
            Ok(PACKET_LEN) if buffer.starts_with(&DATA) => {
                said.note(field(4, &buffer), field(20, &buffer));
                unsaid += 1;
                let chunk = field(12, &buffer) as usize;
                if chunk < MOST_CHUNKS && plan.measures(plan.watch.now_ns()) {
                    packets += 1;
                }
                if chunk < MOST_CHUNKS {
                    chunks.resize(chunks.len().max(chunk + 1), false);
                    let new = !std::mem::replace(&mut chunks[chunk], true);
                    if new && plan.measures(plan.watch.now_ns()) {
                        received += (PACKET_LEN - 28) as u64;
                    }
                }
                false
            }
            Ok(_) => false,
            Err(error) if is_timeout(&error) => true,
            Err(_) => {
                std::thread::sleep(ACK_DELAY);
                true
            }
        };
        if unsaid >= EVERY || quiet {
            unsaid = 0;
            let _ = socket.send(&said.write(token));
        }
    }
    let measured_ns = plan.until_ns - plan.from_ns;
    Ok(DownloadReport {
        received_bytes: received,
        packets,
        goodput_bps: received as f64 * 8e9 / measured_ns.max(1) as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn an_acknowledgment_has_what_arrived_and_nothing_else() {
        let mut said = Acknowledgment::default();
        for number in [1, 2, 5, 4, 200, 199, 70, 330] {
            said.note(number, number * 10);
        }
        let (token, read) = (
            TestToken([7; TOKEN_LEN]),
            said.write(TestToken([7; TOKEN_LEN])),
        );
        assert_eq!(Acknowledgment::read(&read), Some((&token.0[..], said)));
        assert!(said.has(330) && !said.has(329) && !said.has(331));
        let mut near = Acknowledgment::default();
        for number in [1, 2, 5, 4, 100, 99] {
            near.note(number, 0);
        }
        let has: Vec<u64> = (0..110).filter(|n| near.has(*n)).collect();
        assert_eq!(has, [1, 2, 4, 5, 99, 100]);
        assert_eq!(Acknowledgment::read(&read[..50]), None);
    }

    /// A link of one packet per millisecond with 20 ms in each direction, which loses the packets in `lost`: goodput
    /// after some seconds, in packets per second.
    fn goodput(lost: impl Fn(u64) -> bool, queue: u64) -> (u64, usize) {
        let (mut sender, mut said) = (Sender::new(0), Acknowledgment::default());
        let mut arriving = VecDeque::new();
        let mut answers = VecDeque::new();
        let (mut free, mut chunks) = (0, std::collections::BTreeSet::new());
        for now in (0..20_000).map(|ms| ms * MS) {
            while let Some((number, chunk)) = sender.poll(now) {
                let leaves = free.max(now) + MS;
                if leaves > now + queue * MS {
                    continue;
                }
                free = leaves;
                if !lost(number) {
                    arriving.push_back((leaves + 20 * MS, number, chunk));
                }
            }
            while arriving.front().is_some_and(|(at, ..)| *at <= now) {
                let Some((at, number, chunk)) = arriving.pop_front() else {
                    break;
                };
                said.note(number, sender.proof(number));
                chunks.insert(chunk);
                answers.push_back((at + 20 * MS, said));
            }
            while answers.front().is_some_and(|(at, _)| *at <= now) {
                if let Some((_, said)) = answers.pop_front() {
                    assert!(sender.handle_ack(now, &said) || said.largest == 0);
                }
            }
        }
        // All chunks arrive in the end, except for those in flight.
        let missing = (0..sender.next_chunk).filter(|chunk| !chunks.contains(chunk));
        (chunks.len() as u64 / 20, missing.count())
    }

    #[test]
    fn the_link_is_filled_and_what_is_lost_comes_again() {
        let (clean, missing) = goodput(|_| false, 50);
        assert!((900..=1_000).contains(&clean), "{clean}");
        assert!(missing < 150, "{missing}");
        let (lossy, missing) = goodput(|number| number % 33 == 0, 50);
        assert!((100..clean).contains(&lossy), "{lossy}");
        assert!(missing < 150, "{missing}");
    }

    #[test]
    fn a_sender_stops_in_an_outage_and_resumes_after_it() {
        let mut sender = Sender::new(0);
        let sent = (0..60_000).map(|ms| {
            let mut sent = 0;
            while sender.poll(ms * MS).is_some() {
                sent += 1;
            }
            sent
        });
        assert!(sent.sum::<u64>() < 30);
        let largest = sender.next - 1;
        let said = Acknowledgment {
            largest,
            proof: sender.proof(largest),
            below: 0,
        };
        // A host that did not receive the packet cannot acknowledge it.
        let forged = Acknowledgment { proof: 7, ..said };
        assert!(!sender.handle_ack(60_000 * MS, &forged));
        assert!(sender.poll(60_000 * MS).is_none());
        assert!(sender.handle_ack(60_000 * MS, &said));
        assert!(sender.poll(60_000 * MS).is_some());
    }
}
