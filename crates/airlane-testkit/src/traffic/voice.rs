//! Voice: a packet of 160 B every 20 ms, as of a G.711 codec, marked EF, both ways.
//!
//! ```text
//! 0        4        8                16                                            160
//! | "VOIC" | seq    | time sent, ns  | zeros                                         |
//! ```

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use socket2::SockRef;

use super::report::VoiceReport;
use super::{EXPEDITED_FORWARDING, GLANCE, Plan, is_timeout, now_ns, quantile, sleep_until};

const INTERVAL: Duration = Duration::from_millis(20);
const PACKET_LEN: usize = 160;
const MAGIC: [u8; 4] = *b"VOIC";

/// A voice packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrival {
    seq: u32,
    sent_ns: u64,
    received_ns: u64,
}

/// What a receiver knows in the end about packets sent in the measuring period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Arrivals {
    received: u64,
    duplicates: u64,
    reordered: u64,
    delay_p50_ns: u64,
    delay_p99_ns: u64,
    delay_max_ns: u64,
}

impl Arrivals {
    /// Counts the packets of the measuring period, in the order of their arrival.
    fn count(arrivals: &[Arrival], plan: &Plan) -> Self {
        let mut seen = std::collections::BTreeSet::new();
        let mut delays = Vec::new();
        let (mut duplicates, mut reordered, mut highest) = (0, 0, None);
        for a in arrivals.iter().filter(|a| plan.measures(a.sent_ns)) {
            if !seen.insert(a.seq) {
                duplicates += 1;
                continue;
            }
            delays.push(a.received_ns.saturating_sub(a.sent_ns));
            reordered += u64::from(highest > Some(a.seq));
            highest = highest.max(Some(a.seq));
        }
        delays.sort_unstable();
        Self {
            received: delays.len() as u64,
            duplicates,
            reordered,
            delay_p50_ns: quantile(&delays, 0.5),
            delay_p99_ns: quantile(&delays, 0.99),
            delay_max_ns: quantile(&delays, 1.0),
        }
    }

    /// Together with what the sender says it has sent.
    pub(super) fn report(&self, sent: u64) -> VoiceReport {
        let lost = sent.saturating_sub(self.received);
        VoiceReport {
            sent,
            received: self.received,
            lost,
            duplicates: self.duplicates,
            reordered: self.reordered,
            loss: lost as f64 / sent.max(1) as f64,
            delay_p50_ns: self.delay_p50_ns,
            delay_p99_ns: self.delay_p99_ns,
            delay_max_ns: self.delay_max_ns,
        }
    }
}

/// Marks what the socket sends as EF, over IPv4 or IPv6.
pub(super) fn mark(socket: &UdpSocket) -> std::io::Result<()> {
    let socket = SockRef::from(socket);
    // A socket for both families carries IPv4 too; a pure IPv4 one knows no traffic class.
    let v6 = socket.set_tclass_v6(EXPEDITED_FORWARDING);
    let v4 = socket.set_tos_v4(EXPEDITED_FORWARDING);
    v4.or(v6)
}

/// Sends from the plan's start to its end. Gives the number sent in the measuring period.
pub(super) fn send(socket: &UdpSocket, to: SocketAddr, plan: &Plan) -> u64 {
    let mut packet = [0; PACKET_LEN];
    packet[..4].copy_from_slice(&MAGIC);
    let mut counted = 0;
    for seq in 0u32.. {
        let due = plan.start_ns + u64::from(seq) * INTERVAL.as_nanos() as u64;
        if due >= plan.end_ns {
            break;
        }
        sleep_until(due);
        let sent_ns = now_ns();
        packet[4..8].copy_from_slice(&seq.to_be_bytes());
        packet[8..16].copy_from_slice(&sent_ns.to_be_bytes());
        // A full device queue or an unreachable peer is a loss like any other.
        let _ = socket.send_to(&packet, to);
        counted += u64::from(plan.measures(sent_ns));
    }
    counted
}

/// Receives until the plan's end; `arrived` is called for each packet.
pub(super) fn receive(
    socket: &UdpSocket,
    plan: &Plan,
    arrived: impl Fn(),
) -> std::io::Result<Arrivals> {
    socket.set_read_timeout(Some(GLANCE))?;
    let mut arrivals = Vec::new();
    let mut buffer = [0; 2048];
    while !plan.is_over() {
        match socket.recv_from(&mut buffer) {
            Ok((len, _)) => {
                if let Some(arrival) = parse(&buffer[..len], now_ns()) {
                    arrivals.push(arrival);
                    arrived();
                }
            }
            Err(e) if is_timeout(&e) => {}
            // ICMP unreachable, while the other end starts: it may yet come.
            Err(_) => std::thread::sleep(INTERVAL),
        }
    }
    Ok(Arrivals::count(&arrivals, plan))
}

fn parse(packet: &[u8], received_ns: u64) -> Option<Arrival> {
    let packet: &[u8; PACKET_LEN] = packet.try_into().ok()?;
    let (head, rest) = packet.split_first_chunk::<4>()?;
    let (seq, rest) = rest.split_first_chunk::<4>()?;
    let (sent, _) = rest.split_first_chunk::<8>()?;
    (*head == MAGIC).then_some(Arrival {
        seq: u32::from_be_bytes(*seq),
        sent_ns: u64::from_be_bytes(*sent),
        received_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_in_the_period_counts_once_however_late_it_comes() {
        let plan = Plan {
            start_ns: 0,
            from_ns: 100,
            until_ns: 200,
            end_ns: 300,
        };
        let arrival = |seq, sent_ns, received_ns| Arrival {
            seq,
            sent_ns,
            received_ns,
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
        let counted = Arrivals::count(&arrivals, &plan);
        let report = counted.report(5);
        assert_eq!((report.received, report.lost), (4, 1));
        assert_eq!((report.duplicates, report.reordered), (1, 1));
        assert_eq!((report.delay_p50_ns, report.delay_max_ns), (40, 91));
    }

    #[test]
    fn foreign_packets_are_not_voice() {
        assert_eq!(parse(&[0; PACKET_LEN], 0), None);
        assert_eq!(parse(b"VOIC", 0), None);
    }
}
