//! Voice: a packet of 160 B every 20 ms, as from a G.711 codec, marked EF, in both directions.
//!
//! ```text
//! 0        4        8                16         32       33                         160
//! | "VOIC" | seq    | time sent, ns  | token    | counts | zeros                     |
//! ```
//!
//! `counts` is 1 in packets sent in the sender's measuring period. The receiver needs no other knowledge of that
//! period: the ends have no common clock.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use socket2::SockRef;

use crate::clock::LocalClock;
use crate::plan::{Times, Timetable};
use crate::report::VoiceReport;
use crate::token::{TOKEN_LEN, TestToken};
use crate::{GLANCE, is_timeout, quantile};

/// The DSCP of voice, EF (RFC 3246).
pub const VOICE_DSCP: u8 = 46;
/// The DSCP is in the upper six bits of the traffic class.
const EXPEDITED_FORWARDING: u32 = (VOICE_DSCP as u32) << 2;

/// A later packet is too late for playout.
const LATE_NS: u64 = 300_000_000;
const INTERVAL: Duration = Duration::from_millis(20);
const PACKET_LEN: usize = 160;
const MAGIC: [u8; 4] = *b"VOIC";

/// A voice packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VoiceArrival {
    seq: u32,
    /// Time of sending, by the sender's clock.
    sent_ns: u64,
    /// Time of arrival, by the receiver's clock.
    received_ns: u64,
    counts: bool,
}

/// A receiver's statistics on packets sent in the measuring period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Arrivals {
    received: u64,
    duplicates: u64,
    reordered: u64,
    delay_min_ns: u64,
    delay_p50_ns: u64,
    delay_p95_ns: u64,
    delay_p99_ns: u64,
    delay_max_ns: u64,
    late: u64,
}

impl Arrivals {
    /// Counts the packets of the measuring period, in the order of their arrival. `delay` computes a packet's delay
    /// from its time of sending and its time of arrival, which are of two clocks.
    pub(crate) fn count(arrivals: &[VoiceArrival], delay: impl Fn(u64, u64) -> u64) -> Self {
        let mut seen = std::collections::BTreeSet::new();
        let mut delays = Vec::new();
        let (mut duplicates, mut reordered, mut highest) = (0, 0, None);
        for a in arrivals.iter().filter(|a| a.counts) {
            if !seen.insert(a.seq) {
                duplicates += 1;
                continue;
            }
            delays.push(delay(a.sent_ns, a.received_ns));
            reordered += u64::from(highest > Some(a.seq));
            highest = highest.max(Some(a.seq));
        }
        delays.sort_unstable();
        Self {
            received: delays.len() as u64,
            duplicates,
            reordered,
            delay_min_ns: quantile(&delays, 0.0),
            delay_p50_ns: quantile(&delays, 0.5),
            delay_p95_ns: quantile(&delays, 0.95),
            delay_p99_ns: quantile(&delays, 0.99),
            delay_max_ns: quantile(&delays, 1.0),
            late: delays.iter().filter(|delay| **delay > LATE_NS).count() as u64,
        }
    }

    /// The report, given how many packets the sender has sent.
    pub(crate) fn report(&self, sent: u64) -> VoiceReport {
        let lost = sent.saturating_sub(self.received);
        VoiceReport {
            sent,
            received: self.received,
            lost,
            duplicates: self.duplicates,
            reordered: self.reordered,
            loss: lost as f64 / sent.max(1) as f64,
            delay_min_ns: self.delay_min_ns,
            delay_p50_ns: self.delay_p50_ns,
            delay_p95_ns: self.delay_p95_ns,
            delay_p99_ns: self.delay_p99_ns,
            delay_max_ns: self.delay_max_ns,
            late: self.late,
        }
    }
}

/// Marks the socket's packets as EF, over IPv4 or IPv6, or clears the mark.
pub(crate) fn mark(socket: &UdpSocket, marked: bool) -> std::io::Result<()> {
    let socket = SockRef::from(socket);
    let class = if marked { EXPEDITED_FORWARDING } else { 0 };
    // A dual-stack socket carries IPv4, too; a pure IPv4 socket has no traffic class.
    let v6 = socket.set_tclass_v6(class);
    let v4 = socket.set_tos_v4(class);
    v4.or(v6)
}

/// Sends from the plan's start to its end, or until it is over, to the address that `to` returns, if any. Returns the
/// number sent in the measuring period.
pub(crate) fn send(
    socket: &UdpSocket,
    to: impl Fn() -> Option<SocketAddr>,
    token: TestToken,
    plan: &Timetable,
    is_over: impl Fn() -> bool,
) -> u64 {
    let mut packet = [0; PACKET_LEN];
    packet[..4].copy_from_slice(&MAGIC);
    packet[16..16 + TOKEN_LEN].copy_from_slice(&token.0);
    let mut counted = 0;
    for seq in 0u32.. {
        let due = plan.start_ns + u64::from(seq) * INTERVAL.as_nanos() as u64;
        if due >= plan.end_ns || is_over() {
            break;
        }
        plan.watch.sleep_until(due);
        let Some(to) = to() else { continue };
        let sent_ns = plan.watch.now_ns();
        let counts = plan.measures(sent_ns);
        packet[4..8].copy_from_slice(&seq.to_be_bytes());
        packet[8..16].copy_from_slice(&sent_ns.to_be_bytes());
        packet[32] = u8::from(counts);
        // A full device queue or an unreachable peer is a loss like any other.
        let _ = socket.send_to(&packet, to);
        counted += u64::from(counts);
    }
    counted
}

/// The most arrivals that are kept: each packet twice.
pub(crate) fn most_arrivals(times: &Times) -> usize {
    let packets = times.total().as_nanos() / INTERVAL.as_nanos();
    2 * usize::try_from(packets + 1).unwrap_or(usize::MAX / 2)
}

/// Receives until it is over; calls `arrived` for each packet with its source address.
pub(crate) fn receive(
    socket: &UdpSocket,
    token: TestToken,
    (watch, most): (LocalClock, usize),
    is_over: impl Fn() -> bool,
    arrived: impl Fn(SocketAddr) -> bool,
) -> std::io::Result<Vec<VoiceArrival>> {
    socket.set_read_timeout(Some(GLANCE))?;
    let mut arrivals = Vec::new();
    let mut buffer = [0; 2048];
    while !is_over() {
        match socket.recv_from(&mut buffer) {
            Ok((len, from)) => {
                if let Some(arrival) = parse(&buffer[..len], token, watch.now_ns())
                    && arrivals.len() < most
                    && arrived(from)
                {
                    arrivals.push(arrival);
                }
            }
            Err(e) if is_timeout(&e) => {}
            // ICMP unreachable, while the other end starts: packets may still arrive.
            Err(_) => std::thread::sleep(INTERVAL),
        }
    }
    Ok(arrivals)
}

pub(crate) fn parse(packet: &[u8], token: TestToken, received_ns: u64) -> Option<VoiceArrival> {
    let packet: &[u8; PACKET_LEN] = packet.try_into().ok()?;
    let (head, rest) = packet.split_first_chunk::<4>()?;
    let (seq, rest) = rest.split_first_chunk::<4>()?;
    let (sent, rest) = rest.split_first_chunk::<8>()?;
    let (theirs, rest) = rest.split_first_chunk::<TOKEN_LEN>()?;
    (*head == MAGIC && *theirs == token.0).then_some(VoiceArrival {
        seq: u32::from_be_bytes(*seq),
        sent_ns: u64::from_be_bytes(*sent),
        received_ns,
        counts: rest[0] == 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: TestToken = TestToken([7; TOKEN_LEN]);

    #[test]
    fn packets_of_the_period_count_once_however_late() {
        let arrival = |seq, sent_ns: u64, received_ns| VoiceArrival {
            seq,
            sent_ns,
            received_ns,
            counts: (100..200).contains(&sent_ns),
        };
        let arrivals = [
            arrival(1, 99, 120),
            arrival(2, 100, 130),
            arrival(4, 150, 190),
            arrival(3, 120, 199),
            arrival(4, 150, 210),
            arrival(5, 199, 290),
            arrival(6, 200, 210),
        ];
        let counted = Arrivals::count(&arrivals, |sent, received| received - sent);
        let report = counted.report(5);
        assert_eq!((report.received, report.lost), (4, 1));
        assert_eq!((report.duplicates, report.reordered), (1, 1));
        assert_eq!((report.delay_min_ns, report.delay_p50_ns), (30, 40));
        assert_eq!(report.delay_max_ns, 91);
    }

    #[test]
    fn late_packets_are_counted_apart_from_lost_ones() {
        let arrivals: Vec<_> = (1..=20)
            .map(|seq| VoiceArrival {
                seq,
                sent_ns: 0,
                received_ns: u64::from(seq) * LATE_NS / 18,
                counts: true,
            })
            .collect();
        let counted = Arrivals::count(&arrivals, |sent, received| received - sent);
        let report = counted.report(25);
        assert_eq!((report.late, report.lost), (2, 5));
        assert_eq!(report.delay_p95_ns, 19 * LATE_NS / 18);
    }

    #[test]
    fn only_packets_of_the_test_are_accepted() {
        let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let times = Times {
            warmup: INTERVAL,
            measure: 2 * INTERVAL,
            grace: INTERVAL,
        };
        let plan = Timetable::starting_now(LocalClock::default(), &times);
        let to = far.local_addr().unwrap();
        near.send_to(&[0; PACKET_LEN], to).unwrap();
        near.send_to(b"VOIC", to).unwrap();
        send(
            &near,
            || Some(to),
            TestToken([8; TOKEN_LEN]),
            &plan,
            || true,
        );
        let sent = send(&near, || Some(to), TOKEN, &plan, || false);
        let over = plan.end_ns + 50_000_000;
        let is_over = || plan.watch.now_ns() > over;
        let most = most_arrivals(&times);
        let arrivals = receive(&far, TOKEN, (plan.watch, most), is_over, |_| true).unwrap();
        assert_eq!(arrivals.len(), 4, "{arrivals:?}");
        let counted = arrivals.iter().filter(|a| a.counts).count() as u64;
        assert_eq!((counted, sent), (sent, 2));
    }
}
