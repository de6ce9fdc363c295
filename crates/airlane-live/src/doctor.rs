//! `airlane doctor`: whether a link can come up, and what to do where it cannot. Everything is tried as
//! `airlane up` does it and undone again.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsFd as _;

use airlane_base::{Duration, Instant};
use airlane_link::wire::LIVE_HEADER_MAX;
use rustix::event::{PollFd, PollFlags};
use serde::Serialize;

use crate::clock;
use crate::config::{IPV4_MIN_MTU, IPV6_MIN_MTU, LiveConfig, Mtu, UnderlayConfig};
use crate::control;
use crate::netlink::{Cidr, Netlink};
use crate::node::Guard;
use crate::security::{Keys, Security};
use crate::tun::Tun;
use crate::underlay::{Received, Underlay};

/// How long the peer has for an answer: two attempts of a handshake.
const PATIENCE: Duration = Duration::from_secs(8);
/// Longer than any message of a handshake.
const DATAGRAM: usize = 2048;

/// How one check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// It may work all the same.
    Warning,
    /// The link will not come up.
    Bad,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub what: &'static str,
    /// How it ended.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// Where findings go, in order.
struct Findings<'a>(&'a mut dyn FnMut(Check));

impl Findings<'_> {
    fn add(&mut self, what: &'static str, verdict: Verdict, found: impl Into<String>, help: &str) {
        (self.0)(Check {
            what,
            verdict,
            found: found.into(),
            help: (!help.is_empty()).then(|| help.to_owned()),
        });
    }

    fn good(&mut self, what: &'static str, found: impl Into<String>) {
        self.add(what, Verdict::Good, found, "");
    }

    fn bad(&mut self, what: &'static str, found: impl ToString) {
        self.add(what, Verdict::Bad, found.to_string(), "");
    }
}

/// Checks everything that `airlane up` needs, and tells each finding as soon as there is one: the
/// peer may take its time.
pub fn examine(file: &LiveConfig, tell: &mut dyn FnMut(Check)) {
    let mut findings = Findings(tell);
    if let Ok(status) = control::status(&file.socket()) {
        let state = &status.session.state;
        let found = format!("the link is up already, its session is {state}");
        findings.add(
            "running",
            Verdict::Good,
            found,
            "`airlane status` tells more; stop it to check the rest",
        );
        return;
    }
    let UnderlayConfig::Udp { listen, peer } = file.link.underlay;
    let secured = matches!(file.link.security, Some(Security::Keys(_)));
    let keys = check_security(file, &mut findings);
    match Tun::create(&file.tun.name) {
        Ok(_removed_again) => {
            findings.good("interface", format!("{} can be made", file.tun.name));
        }
        Err(error) => findings.bad("interface", error),
    }
    if let Some(address) = file.metrics {
        match TcpListener::bind(address) {
            Ok(_closed_again) => {
                findings.good("metrics", format!("TCP port {} is free", address.port()))
            }
            Err(error) => findings.bad("metrics", format!("{address}: {error}")),
        }
    }
    if let Some(peer) = peer {
        check_way(file, peer.ip(), &mut findings);
    }
    match Underlay::bind(listen, peer) {
        Ok(underlay) => {
            findings.good("underlay", format!("UDP port {} is free", listen.port()));
            let sealing = if secured { Guard::OVERHEAD } else { 0 };
            check_mtu(file, &underlay, sealing, &mut findings);
            match (keys, peer) {
                (Some(keys), Some(peer)) => check_peer(&keys, &underlay, peer, &mut findings),
                (Some(_), None) => {
                    findings.good("peer", "it calls, from wherever it is".to_owned())
                }
                (None, _) if secured => {}
                (None, _) => findings.add(
                    "peer",
                    Verdict::Warning,
                    "not asked: only a peer with keys can prove that it is the one",
                    "",
                ),
            }
        }
        Err(error) => findings.bad("underlay", error),
    }
}

/// The keys, if they are of use.
fn check_security(file: &LiveConfig, findings: &mut Findings<'_>) -> Option<Keys> {
    let Some(Security::Keys(keys)) = &file.link.security else {
        findings.add(
            "security",
            Verdict::Warning,
            "none: whoever is on the path can read and forge frames",
            "make keys with `airlane keygen FILE`, unless the link below is secured",
        );
        return None;
    };
    match crate::security::read_key(&keys.private_key) {
        Ok(key) if key.public() == keys.peer_key => {
            findings.add(
                "security",
                Verdict::Bad,
                "peer-key is the public key of this end",
                "write the one that `airlane keygen` printed at the other end",
            );
            None
        }
        Ok(key) => {
            let public = key.public();
            let found = format!("this end is {public}, which the peer must have as peer-key");
            findings.good("security", found);
            Some(keys.clone())
        }
        Err(error) => {
            findings.bad("security", error);
            None
        }
    }
}

/// Whether there is a way to the peer, and not into the tunnel.
fn check_way(file: &LiveConfig, peer: IpAddr, findings: &mut Findings<'_>) {
    let covering = |cidr: &&Cidr| cidr.covers(peer);
    let inside = file.tun.addresses.iter().chain(&file.tun.routes);
    match Netlink::open().and_then(|mut netlink| netlink.way_to(peer)) {
        Err(error) => findings.add(
            "route",
            Verdict::Bad,
            format!("there is no way to {peer}: {error}"),
            "`ip route get` shows what the kernel knows",
        ),
        Ok(_) => match inside.clone().find(covering) {
            None => findings.good("route", format!("there is a way to {peer}")),
            Some(cidr) => findings.add(
                "route",
                Verdict::Warning,
                format!("{cidr} under [tun] covers the peer {peer}: frames may go into the tunnel"),
                "give the peer a more specific route outside, or leave that one out",
            ),
        },
    }
}

/// Whether a packet fits the path.
fn check_mtu(file: &LiveConfig, underlay: &Underlay, sealing: usize, findings: &mut Findings<'_>) {
    let path_mtu = match underlay.path_mtu() {
        Ok(path_mtu) => path_mtu,
        Err(error) => return findings.bad("mtu", error),
    };
    let left = path_mtu.saturating_sub(underlay.ip_overhead() + LIVE_HEADER_MAX + sealing);
    let mut v6 = file.tun.addresses.iter().chain(&file.tun.routes);
    let least = match v6.any(|cidr| cidr.address.is_ipv6()) {
        true => IPV6_MIN_MTU,
        false => IPV4_MIN_MTU,
    };
    let found = format!("the path takes {path_mtu} B, which leaves packets of {left} B");
    match file.tun.mtu {
        _ if left < least => {
            let help = format!("{least} B are needed; widen the path");
            findings.add("mtu", Verdict::Bad, found, &help);
        }
        Mtu::Fixed(size) if size.as_bytes() as usize > left => {
            let help = "leave tun.mtu out: larger packets travel in fragments";
            findings.add("mtu", Verdict::Warning, found, help);
        }
        _ => findings.good("mtu", found),
    }
}

/// Whether the peer answers, and is the one with the key.
fn check_peer(keys: &Keys, underlay: &Underlay, peer: SocketAddr, findings: &mut Findings<'_>) {
    let begun = clock::now();
    let mut guard = match Guard::new(begun, keys, Some(peer)) {
        Ok(guard) => guard,
        Err(error) => return findings.bad("peer", error),
    };
    match shake_hands(&mut guard, underlay, begun) {
        Ok(Some(after)) => {
            let found = format!("{peer} answered in {after}, with the right key");
            findings.good("peer", found);
        }
        Ok(None) => {
            let refused = guard.report(clock::now()).refused;
            let (found, help) = match refused {
                0 => (
                    format!("no answer from {peer} in {PATIENCE}"),
                    "is `airlane up` running there, with this end's public key as peer-key, and do \
                     firewalls let UDP through in both directions?",
                ),
                n => (
                    format!("{peer} sent {n} datagrams that are not of the peer with this key"),
                    "compare peer-key with what `airlane keygen --public` prints there",
                ),
            };
            findings.add("peer", Verdict::Warning, found, help);
        }
        Err(error) => findings.bad("peer", format!("{peer}: {error}")),
    }
}

/// How long a handshake took; none: there was no answer.
fn shake_hands(
    guard: &mut Guard,
    underlay: &Underlay,
    begun: Instant,
) -> std::io::Result<Option<Duration>> {
    let mut asked = begun;
    let (mut received, mut plain) = (Received::new(), [0; DATAGRAM]);
    let end = begun + PATIENCE;
    loop {
        let now = clock::now();
        if guard.is_ready(now) {
            return Ok(Some(now.saturating_since(asked)));
        }
        if now >= end {
            return Ok(None);
        }
        if guard.poll_timeout().is_some_and(|due| due <= now) {
            guard.handle_timeout(now);
        }
        while let Some(message) = guard.poll_transmit() {
            asked = now;
            match underlay.send_to(message.to, message.bytes()) {
                // What an earlier datagram met: nobody listens there, now.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {}
                sent => sent?,
            }
        }
        let wait = guard.poll_timeout().unwrap_or(end).min(end);
        let mut fds = [PollFd::from_borrowed_fd(underlay.as_fd(), PollFlags::IN)];
        let timeout = clock::timeout(clock::now(), wait);
        let _woken = rustix::event::poll(&mut fds, Some(&timeout));
        while underlay.receive(&mut received).is_ok() {
            for (datagram, source, _) in received.datagrams() {
                let _counted = guard.open(clock::now(), source, datagram, &mut plain);
            }
        }
    }
}
