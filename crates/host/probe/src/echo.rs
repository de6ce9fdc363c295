//! Echoes: round trips, the offset between two clocks, and finding the server.
//!
//! ```text
//! 0        4     8       24       32        40          48                             64
//! | magic  | seq | token | sent   | heard   | answered  | zeros                         |
//! ```
//!
//! A request has the magic "ECHO", and is answered with "OHCE" if it has the test's token. To find the server, "WHO?"
//! is sent to all hosts on the link, without a token, and answered with "HERE". A reply is never longer than its
//! request.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use crate::clock::{EchoTimes, LocalClock};
use crate::plan::Timetable;
use crate::report::EchoReport;
use crate::server_state::ServerState;
use crate::token::{TOKEN_LEN, TestToken};
use crate::{GLANCE, is_timeout, quantile};

pub(crate) const LENGTH: usize = 64;
pub(crate) const REQUEST: [u8; 4] = *b"ECHO";
const ANSWER: [u8; 4] = *b"OHCE";
pub(crate) const WHO: [u8; 4] = *b"WHO?";
const HERE: [u8; 4] = *b"HERE";

/// On the idle path.
const IDLE: Rhythm = Rhythm {
    count: 20,
    interval: Duration::from_millis(25),
    patience: Duration::from_secs(1),
};
/// Between echoes under load.
const LOADED: Duration = Duration::from_millis(100);

#[derive(Clone, Copy)]
struct Rhythm {
    count: u32,
    interval: Duration,
    /// How long to wait for the last replies.
    patience: Duration,
}

pub(crate) fn field(at: usize, packet: &[u8; LENGTH]) -> u64 {
    let bytes = packet[at..].first_chunk().copied();
    u64::from_be_bytes(bytes.unwrap_or_default())
}

fn set_field(at: usize, packet: &mut [u8; LENGTH], value: u64) {
    packet[at..at + 8].copy_from_slice(&value.to_be_bytes());
}

const SENT: usize = 24;
pub(crate) const HEARD: usize = 32;
const ANSWERED: usize = 40;

/// Replies to echoes until the server ends. With `welcoming` it also replies to "WHO?".
pub(crate) fn answer(socket: &UdpSocket, state: &ServerState<'_>, welcoming: bool) {
    let mut buffer = [0; LENGTH + 1];
    while !state.is_over() {
        let (length, from) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(e) if is_timeout(&e) => continue,
            Err(_) => {
                std::thread::sleep(GLANCE);
                continue;
            }
        };
        let heard_ns = state.watch.now_ns();
        let Ok(mut packet) = <[u8; LENGTH]>::try_from(&buffer[..length]) else {
            continue;
        };
        if !reply(&mut packet, state, welcoming, heard_ns) {
            continue;
        }
        set_field(ANSWERED, &mut packet, state.watch.now_ns());
        // A reply that cannot be sent is lost like any other.
        let _ = socket.send_to(&packet, from);
    }
}

/// Turns a request into its reply. Returns whether it is a valid request.
pub(crate) fn reply(
    packet: &mut [u8; LENGTH],
    state: &ServerState<'_>,
    welcoming: bool,
    heard_ns: u64,
) -> bool {
    let magic = packet.first_chunk().copied().unwrap_or_default();
    let answer = match magic {
        REQUEST if state.test_of(&packet[8..8 + TOKEN_LEN]).is_some() => ANSWER,
        WHO if welcoming => HERE,
        _ => return false,
    };
    packet[..4].copy_from_slice(&answer);
    set_field(HEARD, packet, heard_ns);
    true
}

/// The requesting end.
pub(crate) struct Echoes {
    socket: UdpSocket,
    server: SocketAddr,
    token: TestToken,
    watch: LocalClock,
    /// Number of the next request, across all rounds: a late reply never counts in a later round.
    seq: u32,
}

/// Requests by number, with their times once answered: a duplicate reply counts once.
#[derive(Debug, Default)]
pub(crate) struct Round(BTreeMap<u32, Option<EchoTimes>>);

impl Round {
    pub(crate) fn exchanges(&self) -> Vec<EchoTimes> {
        self.0.values().copied().flatten().collect()
    }

    pub(crate) fn report(&self) -> EchoReport {
        let answers = self.0.values().flatten();
        let mut rtts: Vec<u64> = answers.filter_map(EchoTimes::rtt_ns).collect();
        rtts.sort_unstable();
        EchoReport {
            sent: self.0.len() as u64,
            lost: (self.0.len() - rtts.len()) as u64,
            rtt_min_ns: quantile(&rtts, 0.0),
            rtt_p50_ns: quantile(&rtts, 0.5),
            rtt_p99_ns: quantile(&rtts, 0.99),
            rtt_max_ns: quantile(&rtts, 1.0),
        }
    }
}

impl Echoes {
    pub(crate) fn new(server: SocketAddr, token: TestToken, watch: LocalClock) -> io::Result<Self> {
        let any: IpAddr = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        Ok(Self {
            socket: UdpSocket::bind((any, 0))?,
            server,
            token,
            watch,
            seq: 0,
        })
    }

    /// Echoes on a path without other traffic of the test.
    pub(crate) fn idle(&mut self) -> io::Result<Round> {
        let mut round = Round::default();
        let begin_ns = self.watch.now_ns();
        let step = IDLE.interval.as_nanos() as u64;
        for i in 0..u64::from(IDLE.count) {
            round.0.insert(self.ask(), None);
            self.hear(&mut round, begin_ns + (i + 1) * step, false)?;
        }
        let end_ns = self.watch.now_ns() + IDLE.patience.as_nanos() as u64;
        self.hear(&mut round, end_ns, true)?;
        Ok(round)
    }

    /// Echoes until the plan's end; those in the measuring period count.
    pub(crate) fn loaded(&mut self, plan: &Timetable) -> io::Result<Round> {
        let mut round = Round::default();
        let mut due_ns = plan.start_ns;
        while due_ns < plan.end_ns {
            let counts = plan.measures(self.watch.now_ns());
            let seq = self.ask();
            if counts {
                round.0.insert(seq, None);
            }
            due_ns += LOADED.as_nanos() as u64;
            self.hear(&mut round, due_ns.min(plan.end_ns), false)?;
        }
        Ok(round)
    }

    /// Sends a request, and returns its number.
    fn ask(&mut self) -> u32 {
        let seq = self.seq;
        self.seq += 1;
        let mut packet = [0; LENGTH];
        packet[..4].copy_from_slice(&REQUEST);
        packet[4..8].copy_from_slice(&seq.to_be_bytes());
        packet[8..8 + TOKEN_LEN].copy_from_slice(&self.token.0);
        set_field(SENT, &mut packet, self.watch.now_ns());
        // A request that cannot be sent is lost like any other.
        let _ = self.socket.send_to(&packet, self.server);
        seq
    }

    /// Receives until the given time, or, if that suffices, until all requests of the round are answered.
    fn hear(&self, round: &mut Round, until_ns: u64, all_is_enough: bool) -> io::Result<()> {
        let mut buffer = [0; LENGTH + 1];
        loop {
            let left = self.watch.until(until_ns);
            let all = || round.0.values().all(Option::is_some);
            if left.is_zero() || (all_is_enough && all()) {
                return Ok(());
            }
            // A timeout of zero would mean none.
            let glance = left.clamp(Duration::from_micros(1), GLANCE);
            self.socket.set_read_timeout(Some(glance))?;
            match self.socket.recv_from(&mut buffer) {
                Ok((length, _)) => self.note(&buffer[..length], round),
                Err(e) if is_timeout(&e) => {}
                Err(_) => std::thread::sleep(glance),
            }
        }
    }

    fn note(&self, packet: &[u8], round: &mut Round) {
        let returned_ns = self.watch.now_ns();
        let Ok(packet) = <&[u8; LENGTH]>::try_from(packet) else {
            return;
        };
        if !packet.starts_with(&ANSWER) || packet[8..8 + TOKEN_LEN] != self.token.0 {
            return;
        }
        let seq = packet[4..].first_chunk().copied().unwrap_or_default();
        if let Some(answer @ None) = round.0.get_mut(&u32::from_be_bytes(seq)) {
            *answer = Some(EchoTimes {
                sent_ns: field(SENT, packet),
                heard_ns: field(HEARD, packet),
                answered_ns: field(ANSWERED, packet),
                returned_ns,
            });
        }
    }
}

/// Finds a server on the link of this interface; none if there is no reply within a second.
///
/// The request goes to all hosts on the link (224.0.0.1), so it finds a server on a tunnel with IPv4 addresses.
///
/// # Errors
/// If there is no such interface, or it cannot send.
pub fn find_server(interface: &str, port: u16) -> io::Result<Option<IpAddr>> {
    const TIMES: u32 = 10;
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.bind_device(Some(interface.as_bytes()))?;
    // A server on this machine is not wanted.
    socket.set_multicast_loop_v4(false)?;
    socket.set_read_timeout(Some(GLANCE))?;
    let socket = UdpSocket::from(socket);
    let all_hosts = (Ipv4Addr::new(224, 0, 0, 1), port);
    let mut question = [0; LENGTH];
    question[..4].copy_from_slice(&WHO);
    for _ in 0..TIMES {
        socket.send_to(&question, all_hosts)?;
        let asked = Instant::now();
        let mut answer = [0; LENGTH + 1];
        while asked.elapsed() < GLANCE {
            match socket.recv_from(&mut answer) {
                Ok((LENGTH, from)) if answer.starts_with(&HERE) => return Ok(Some(from.ip())),
                Ok(_) => {}
                Err(e) if is_timeout(&e) => {}
                Err(e) => return Err(e),
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use proptest::prelude::*;

    use super::*;
    use crate::strangers;

    fn request(token: TestToken) -> [u8; LENGTH] {
        let mut packet = [0; LENGTH];
        packet[..4].copy_from_slice(&REQUEST);
        packet[8..8 + TOKEN_LEN].copy_from_slice(&token.0);
        packet
    }

    #[test]
    fn strangers_get_no_answer() {
        let stop = AtomicBool::new(false);
        let state = ServerState::new(LocalClock::default(), u64::MAX, &stop);
        let tokens = [TestToken([1; TOKEN_LEN]), TestToken([2; TOKEN_LEN])];
        assert!(
            !reply(&mut request(tokens[0]), &state, true, 7),
            "no test is on"
        );
        let _test = state.begin(tokens[0], None, u64::MAX, 0).unwrap();
        assert!(!reply(&mut request(tokens[1]), &state, true, 7));
        let mut packet = request(tokens[0]);
        assert!(reply(&mut packet, &state, false, 7));
        assert_eq!((field(HEARD, &packet), &packet[..4]), (7, &ANSWER[..]));
        assert!(
            !reply(&mut packet, &state, true, 7),
            "an answer is no request"
        );
        packet[..4].copy_from_slice(&WHO);
        assert!(!reply(&mut packet, &state, false, 7));
        assert!(reply(&mut packet, &state, true, 7));
    }

    proptest! {
        /// Only requests with the test's token are answered, and "WHO?" where that is enabled; a reply repeats the
        /// fields of its request.
        #[test]
        fn any_datagram_is_answered_only_if_permitted(
            bytes in prop::collection::vec(any::<u8>(), LENGTH),
            magic in prop::option::of(prop::sample::select(vec![REQUEST, ANSWER, WHO, HERE])),
            knows: bool,
            welcoming: bool,
            heard: u64,
        ) {
            let mut packet: [u8; LENGTH] = bytes.try_into().unwrap();
            if let Some(magic) = magic {
                packet[..4].copy_from_slice(&magic);
            }
            if knows {
                packet[8..8 + TOKEN_LEN].copy_from_slice(&strangers::TOKEN);
            }
            strangers::echo(&packet, welcoming, heard);
        }
    }
}
