//! Round trips: ICMP echo requests one after the other, as `ping` sends them, with replies from the other end's
//! kernel.
//!
//! The kernel fills in identifier and checksum (an ICMP datagram socket). It allows the groups in
//! `net.ipv4.ping_group_range`, which in a new namespace is empty.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use airlane_probe::{is_timeout, quantile};
use socket2::{Domain, Protocol, Socket, Type};

const REQUEST: u8 = 8;
const REPLY: u8 = 0;
/// The ICMP header and `ping`'s payload.
const LENGTH: usize = 8 + 56;

/// The round trips of an idle link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EchoTally {
    /// Requests without a reply in time.
    pub lost: u64,
    /// Round trip times, sorted, ns.
    pub times_ns: Vec<u64>,
}

impl EchoTally {
    /// Median of the round trip times, ns; zero if there were none.
    pub fn p50_ns(&self) -> u64 {
        quantile(&self.times_ns, 0.5)
    }
}

/// Sends `count` echo requests to an IPv4 address, each `pause` after the previous reply.
///
/// # Errors
/// If there is no such socket, or the address cannot be reached.
pub fn echo(
    target: IpAddr,
    count: u16,
    pause: Duration,
    patience: Duration,
) -> io::Result<EchoTally> {
    let mut socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::ICMPV4))?;
    socket.connect(&SocketAddr::from((target, 0)).into())?;
    socket.set_read_timeout(Some(patience))?;
    let mut echoes = EchoTally::default();
    for seq in 0..count {
        let mut request = [0; LENGTH];
        request[0] = REQUEST;
        request[6..8].copy_from_slice(&seq.to_be_bytes());
        let sent = Instant::now();
        socket.send(&request)?;
        match answer(&mut socket, seq, patience)? {
            Some(received) => {
                let time = received.saturating_duration_since(sent);
                echoes.times_ns.push(time.as_nanos() as u64);
            }
            None => echoes.lost += 1,
        }
        std::thread::sleep(pause);
    }
    echoes.times_ns.sort_unstable();
    Ok(echoes)
}

/// When the reply to `seq` arrived; none if not within `patience`.
fn answer(socket: &mut Socket, seq: u16, patience: Duration) -> io::Result<Option<Instant>> {
    let deadline = Instant::now() + patience;
    let mut reply = [0; 2 * LENGTH];
    while Instant::now() < deadline {
        match socket.read(&mut reply) {
            Ok(n) if answers(&reply[..n], seq) => return Ok(Some(Instant::now())),
            // A late reply to an earlier request.
            Ok(_) => {}
            Err(e) if is_timeout(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(None)
}

fn answers(reply: &[u8], seq: u16) -> bool {
    reply.len() == LENGTH && reply[0] == REPLY && reply[6..8] == seq.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_reply_to_this_request_answers_it() {
        let mut reply = [0; LENGTH];
        reply[6..8].copy_from_slice(&[1, 2]);
        assert!(answers(&reply, 0x0102));
        assert!(!answers(&reply, 0x0103));
        assert!(!answers(&reply[..LENGTH - 1], 0x0102));
        reply[0] = REQUEST;
        assert!(!answers(&reply, 0x0102));
    }
}
