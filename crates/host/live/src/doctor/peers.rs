//! Checks whether the peers of a link that does not run answer calls with the right keys.

use std::io;
use std::os::fd::AsFd as _;

use airlane_base::{Duration, Instant};
use airlane_node::{Guard, Reason, RefusedCallers, rounded};
use airlane_secure::PeerAddress;
use rustix::event::{PollFd, PollFlags};

use super::arrivals::Arrivals;
use super::causes::{cause, kept_in, look, nobody_listens, who};
use super::findings::{Findings, Grade};
use crate::clock;
use crate::config::PeerConfig;
use crate::daemon::UpError;
use crate::device::DeviceError;
use crate::security::{Keys, random, secrets_of};
use crate::underlay::{Udp, Underlay};

/// Time for the peers' answers: two attempts of a handshake.
pub(super) const PATIENCE: Duration = Duration::from_secs(8);
/// Longer than any handshake message, bytes.
const DATAGRAM: usize = 2048;

/// Checks that the peers answer and have the right keys. All are tested at the same time.
pub(super) fn check_peers(
    keys: &Keys,
    underlay: &Underlay,
    peers: &[PeerConfig],
    findings: &mut Findings<'_>,
) {
    let begun = clock::now();
    let guard = match guard(begun, keys, peers, underlay.anyone()) {
        Ok(guard) => guard,
        Err(error) => return findings.bad("peer", error),
    };
    let everywhere = underlay.anyone().is_some();
    let (calling, asked): (Vec<_>, Vec<_>) = peers
        .iter()
        .partition(|peer| peer.address.is_none() && !everywhere);
    let (asked, sought): (Vec<_>, Vec<_>) =
        asked.into_iter().partition(|peer| peer.host().is_none());
    for peer in sought {
        let found = format!("{} cannot be asked: its address is unknown", peer.name);
        findings.add("peer", Grade::Warning, found, "");
    }
    let mut arrivals = underlay.local().ok().and_then(Arrivals::at);
    let mut asking = Asking {
        guard,
        underlay,
        begun,
        patience: PATIENCE,
        asked,
        awaits_call: !calling.is_empty() && arrivals.is_some(),
        heard: false,
        refused: Vec::new(),
        callers: RefusedCallers::default(),
    };
    asking.run(findings);
    let heard = asking.heard;
    let mut kept_out = |who: &str, at, findings: &mut Findings<'_>| {
        let arrivals = arrivals.as_mut().filter(|_| !heard);
        let found = arrivals.and_then(|arrivals| arrivals.kept_out(who, at));
        if let Some((found, help)) = &found {
            findings.add("peer", Grade::Bad, found, help);
        }
        found.is_some()
    };
    for peer in calling {
        if !kept_out(&peer.name, None, findings) {
            let found = format!("{} calls, from any address", peer.name);
            findings.good("peer", found);
        }
    }
    // A filter may block only this end's port; the calls from a fresh port below would then pass and mislead.
    let Asking { asked, refused, .. } = &mut asking;
    asked.retain(|peer| {
        let Some(at) = peer.fixed_address() else {
            return true;
        };
        let who = who(&peer.name, Some(at));
        let is_kept_in = refused.contains(&at);
        if is_kept_in {
            let (found, help) = kept_in(&who);
            findings.add("peer", Grade::Bad, found, &help);
        }
        !is_kept_in && !kept_out(&who, Some(at), findings)
    });
    if asking.callers.report(clock::now()).is_empty() {
        let elsewhere = answering_elsewhere(keys, underlay, &asking.asked, peers);
        asking
            .asked
            .retain(|peer| !elsewhere.contains(&&*peer.name));
        let port = match underlay.local() {
            Ok(PeerAddress::Udp(local)) => local.port(),
            _ => 0,
        };
        for name in elsewhere {
            findings.add(
                "peer",
                Grade::Warning,
                format!("{name} answers another port of this end, and not {port}: the path drops datagrams to \
                     that one"),
                "a running link leaves the port after 30 s; port 0 in link.underlay.listen takes a free one at once",
            );
        }
    }
    let callers = asking.callers.report(clock::now());
    let ours = asking.guard.public_key().to_string();
    for peer in &asking.asked {
        let who = who(&peer.name, peer.fixed_address());
        let at = peer.fixed_address();
        let (found, help) = cause(&who, at, &callers, Some(&ours), &look);
        findings.add("peer", Grade::Bad, found, &help);
    }
}

/// Creates the secure sessions with these peers; no handshake has begun.
fn guard(
    now: Instant,
    keys: &Keys,
    peers: &[PeerConfig],
    anyone: Option<PeerAddress>,
) -> Result<Guard, UpError> {
    let seed = random().map_err(|e| DeviceError::new("random numbers", "draw a seed", e))?;
    let secrets = secrets_of(keys, peers)?;
    let mut guard = Guard::new(now, &secrets, peers, anyone, seed)?;
    guard.only_ask();
    Ok(guard)
}

/// Names the peers that answer calls from a fresh port.
fn answering_elsewhere<'a>(
    keys: &Keys,
    underlay: &Underlay,
    silent: &[&'a PeerConfig],
    peers: &[PeerConfig],
) -> Vec<&'a str> {
    let begun = clock::now();
    let (Ok(PeerAddress::Udp(mut listen)), Ok(guard)) =
        (underlay.local(), guard(begun, keys, peers, None))
    else {
        return Vec::new();
    };
    listen.set_port(0);
    let may = |peer: &&&PeerConfig| peer.fixed_address().is_some_and(|at| !nobody_listens(at));
    let asked: Vec<_> = silent.iter().filter(may).copied().collect();
    let Some(fresh) = Udp::bind(listen).ok().filter(|_| !asked.is_empty()) else {
        return Vec::new();
    };
    let fresh = Underlay::Udp(fresh);
    let mut asking = Asking {
        guard,
        underlay: &fresh,
        begun,
        patience: PATIENCE / 2,
        asked: asked.clone(),
        awaits_call: false,
        heard: false,
        refused: Vec::new(),
        callers: RefusedCallers::default(),
    };
    asking.run(&mut Findings(&mut |_| {}));
    let still: Vec<&str> = asking.asked.iter().map(|peer| &*peer.name).collect();
    let names = asked.iter().map(|peer| &*peer.name);
    names.filter(|name| !still.contains(name)).collect()
}

/// Handshakes with all peers at once.
struct Asking<'a> {
    guard: Guard,
    underlay: &'a Underlay,
    begun: Instant,
    patience: Duration,
    /// Peers that have not answered yet.
    asked: Vec<&'a PeerConfig>,
    /// Whether to wait for a datagram from peers that call.
    awaits_call: bool,
    /// Whether any datagram was delivered to this end.
    heard: bool,
    /// Addresses that a packet filter of this machine blocks.
    refused: Vec<PeerAddress>,
    callers: RefusedCallers,
}

impl Asking<'_> {
    /// Removes each peer that answers from `asked`, and reports how long that took.
    fn run(&mut self, findings: &mut Findings<'_>) {
        let (mut received, mut plain) = (self.underlay.room(), [0; DATAGRAM]);
        let end = self.begun + self.patience;
        loop {
            let now = clock::now();
            self.take_answers(now, findings);
            let awaits_call = self.awaits_call && !self.heard;
            if self.asked.is_empty() && !awaits_call || now >= end {
                return;
            }
            if self.guard.poll_timeout().is_some_and(|due| due <= now) {
                self.guard.handle_timeout(now, clock::wall());
            }
            self.send(findings);
            let wait = self.guard.poll_timeout().unwrap_or(end).min(end);
            let mut fds = [PollFd::from_borrowed_fd(
                self.underlay.as_fd(),
                PollFlags::IN,
            )];
            let timeout = clock::timeout(clock::now(), wait);
            let _woken = rustix::event::poll(&mut fds, Some(&timeout));
            while self.underlay.receive(&mut received).is_ok() {
                self.heard = true;
                received.for_each(|datagram, addressing, _| {
                    let now = clock::now();
                    if let Err(refused) =
                        self.guard.open(now, addressing.from, datagram, &mut plain)
                    {
                        let reason = Reason::from(refused).or_keys_at_one_end(true, datagram);
                        self.refuse(now, addressing.from, reason);
                    }
                });
            }
        }
    }

    fn take_answers(&mut self, now: Instant, findings: &mut Findings<'_>) {
        let (guard, after) = (&self.guard, rounded(now.saturating_since(self.begun)));
        self.asked.retain(|peer| {
            let session = peer.key.and_then(|key| guard.peer(&key));
            let answered = session.and_then(|session| guard.keys_age(now, session));
            if answered.is_some() {
                let (name, file) = (&peer.name, peer.fixed_address());
                let is = session.and_then(|session| guard.address(session)).or(file);
                match file.zip(is).filter(|(file, is)| file != is) {
                    None => findings.good(
                        "peer",
                        format!("{} answered in {after}, with the right key", who(name, file)),
                    ),
                    Some((file, is)) => findings.add(
                        "peer",
                        Grade::Warning,
                        format!("{name} has the right key and is at {is}, not at {file} as the file says"),
                        "if the peer's file has that address, write it here; a peer that moves, that is behind a \
                         translator or that got no answers for 30 s has another for a while",
                    ),
                }
            }
            answered.is_none()
        });
    }

    fn send(&mut self, findings: &mut Findings<'_>) {
        while let Some(message) = self.guard.poll_transmit() {
            let Err(error) = self.underlay.send_to(message.to, None, message.bytes()) else {
                continue;
            };
            // Reported later, for peers that never answer.
            if error.kind() == io::ErrorKind::PermissionDenied {
                self.refused.push(message.to);
                continue;
            }
            let anyone = self.underlay.anyone();
            let to = |p: &&PeerConfig| p.fixed_address().or(anyone) == Some(message.to);
            if let Some(at) = self.asked.iter().position(to) {
                let peer = self.asked.remove(at);
                let who = who(&peer.name, peer.fixed_address());
                let found = format!("{who} cannot be asked yet: {error}");
                findings.add(
                    "peer",
                    Grade::Warning,
                    found,
                    "the link would come up and retry",
                );
            }
        }
    }

    fn refuse(&mut self, now: Instant, source: PeerAddress, reason: Reason) {
        let expected = self
            .asked
            .iter()
            .any(|peer| peer.fixed_address() == Some(source));
        let key = self.guard.last_stranger();
        self.callers.note(now, source, (reason, key), expected);
    }
}
