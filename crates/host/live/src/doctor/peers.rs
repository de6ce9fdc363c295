//! Checks whether the peers answer. If one does not, it finds the cause: it is down, or one end has a wrong key.
//! A node never answers a caller with a wrong key, but it makes calls of its own, and those show the cause.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;

use airlane_base::{Duration, Instant};
use airlane_node::{Guard, Reason, RefusedCallers, rounded};
use airlane_secure::PeerAddress;
use airlane_session::LEAST;
use rustix::event::{PollFd, PollFlags};

use super::ends;
use super::findings::{Findings, Grade};
use crate::clock;
use crate::config::{LiveConfig, PeerConfig};
use crate::control::{self, ControlError};
use crate::daemon::UpError;
use crate::device::DeviceError;
use crate::netlink::Netlink;
use crate::reverse_path;
use crate::security::{Keys, random, secrets_of};
use crate::status::{CallFault, CallerReport, PROTOCOL, PeerStatus, SharedKey, Status};
use crate::underlay::{Udp, Underlay};

/// Time for the peers' answers: two attempts of a handshake.
const PATIENCE: Duration = Duration::from_secs(8);
/// Polling interval of a running link meanwhile.
const AGAIN: std::time::Duration = std::time::Duration::from_millis(500);
/// Time for the answers of a running link's peers, and the polling interval.
const ANSWER: Duration = Duration::from_secs(3);
const LOOK: std::time::Duration = std::time::Duration::from_millis(50);
/// Time for an ICMP port unreachable message.
const A_MOMENT: std::time::Duration = std::time::Duration::from_secs(1);
/// Longer than any handshake message, bytes.
const DATAGRAM: usize = 2048;

/// Checks the sessions of a running link, which may have started a moment ago.
pub(super) fn check_running(file: &LiveConfig, first: Status, findings: &mut Findings<'_>) {
    let found = "the link is up already: stop it to check what a start needs";
    findings.good("running", found);
    compare_file(file, findings);
    let mut status = first;
    let pending = |peer: &PeerStatus| matches!(&*peer.session.state, "waiting" | "accepted");
    while status.uptime_ns < PATIENCE.as_nanos() && status.peers.iter().any(pending) {
        std::thread::sleep(AGAIN);
        match control::status(&file.socket()) {
            Ok(newer) => status = newer,
            Err(error) => return findings.bad("running", error),
        }
    }
    let asked = match ask(file, &mut status) {
        Ok(asked) => Some(asked),
        // The node is older than this program, or accepts the command only from its own user.
        Err(error @ ControlError::Refused { .. }) => {
            let found = format!("whether peers answer cannot be asked: {error}");
            let help = "restart it, if it is older than this program, or ask as root";
            findings.add("running", Grade::Warning, found, help);
            None
        }
        Err(error) => return findings.bad("running", error),
    };
    let ours = status.underlay.secure.as_ref().map(|secure| &*secure.key);
    check_interface(&file.tun.name, findings);
    check_port(&status, findings);
    let listed = file.peers();
    for peer in &status.peers {
        check_session(peer, asked, (&status.callers, ours), &look, findings);
        let file_says = listed.iter().find(|listed| listed.name == peer.name);
        check_place(peer, file_says, findings);
        check_sources(peer, findings);
        if peer.session.state == "confirmed" {
            ends::compare(file, &status, peer, findings);
        }
        if let Some(ip) = peer.address.and_then(|address| address.ip()) {
            check_running_way(file, (&peer.name, ip), findings);
        }
    }
}

/// Examines the status of a running link, and sends nothing.
pub(super) fn check_status(status: &Status, findings: &mut Findings<'_>) {
    let ours = status.underlay.secure.as_ref().map(|secure| &*secure.key);
    check_port(status, findings);
    for peer in &status.peers {
        let callers = (&*status.callers, ours);
        check_session(peer, None, callers, &|_, _| None, findings);
        check_sources(peer, findings);
    }
}

/// Makes the running node test its peers, and waits until all peers in a session have answered. Returns the
/// time since the request.
fn ask(file: &LiveConfig, status: &mut Status) -> Result<Duration, ControlError> {
    let socket = file.socket();
    control::ask_peers(&socket)?;
    let begun = clock::now();
    loop {
        *status = control::status(&socket)?;
        let since = clock::now().saturating_since(begun);
        let waits = |peer: &PeerStatus| {
            let is_in_session = matches!(&*peer.session.state, "confirmed" | "unheard");
            is_in_session && !was_reached(peer, since)
        };
        let round_trips = status.peers.iter().filter_map(|peer| peer.session.rtt_ns);
        let longest = Duration::from_nanos(round_trips.max().unwrap_or(0));
        if since >= ANSWER.max(longest * 3) || !status.peers.iter().any(waits) {
            return Ok(since);
        }
        std::thread::sleep(LOOK);
    }
}

/// Whether the peer has received something that was sent within this time.
fn was_reached(peer: &PeerStatus, within: Duration) -> bool {
    let ago = peer.session.reached_ns;
    ago.is_some_and(|ago| ago <= within.as_nanos())
}

/// Reports that this end has left its port.
fn check_port(status: &Status, findings: &mut Findings<'_>) {
    if let Some(port) = status.underlay.left_port {
        findings.add(
            "port",
            Grade::Warning,
            format!(
                "nothing sent from port {port}, which the file names, was answered: this end now uses {}",
                status.underlay.listen
            ),
            "if peers answer there, the path drops datagrams to the port: write another, or port 0, which takes \
             a free one at every start",
        );
    }
}

/// Checks that a peer's address is the one in the file.
fn check_place(peer: &PeerStatus, file: Option<&PeerConfig>, findings: &mut Findings<'_>) {
    let is_heard = matches!(&*peer.session.state, "confirmed" | "unheard");
    let fixed = file.and_then(PeerConfig::fixed_address);
    if let (true, Some(PeerAddress::Udp(fixed)), Some(PeerAddress::Udp(is))) =
        (is_heard, fixed, peer.address)
        && fixed.ip() == is.ip()
        && fixed.port() != is.port()
    {
        findings.add(
            "port",
            Grade::Warning,
            format!(
                "{} calls from port {}, and not from {} as the file says",
                peer.name,
                is.port(),
                fixed.port()
            ),
            "a NAT is in front of it, or it changed its port because the path drops datagrams to that: `airlane doctor` \
             at that end tells",
        );
    }
}

/// Reports packets that a base dropped because their addresses are another peer's, or nobody's.
fn check_sources(peer: &PeerStatus, findings: &mut Findings<'_>) {
    let Some(count) = peer.drops.get(Reason::WrongSource.name()) else {
        return;
    };
    let delivers = peer.services.iter().any(|s| s.ledger.packets_delivered > 0);
    findings.add(
        "peer",
        match delivers {
            true => Grade::Warning,
            false => Grade::Bad,
        },
        format!(
            "{count} packets of {} were dropped: they came from addresses outside of its prefixes, {}",
            peer.name,
            peer.prefixes.join(", ")
        ),
        "which addresses does it have in the tunnel, and which networks? They belong into its `prefixes` here",
    );
}

/// Checks that the interface is up.
fn check_interface(tun: &str, findings: &mut Findings<'_>) {
    let is_up = Netlink::open().and_then(|mut netlink| {
        let index = netlink.link_index(tun)?;
        netlink.is_up(index)
    });
    let (grade, found, help) = match is_up {
        Ok(true) => return,
        Ok(false) => (
            Grade::Bad,
            format!("{tun} is down: nothing gets into the tunnel or out of it"),
            format!("`ip link set {tun} up`; addresses and routes come back by themselves"),
        ),
        Err(error) => (
            Grade::Warning,
            format!("{tun} is not visible from here: {error}"),
            "does the node run in another network namespace? Then run doctor there, too".to_owned(),
        ),
    };
    findings.add("interface", grade, found, &help);
}

/// Compares the file with the running node, as `airlane reload --dry-run` does.
fn compare_file(file: &LiveConfig, findings: &mut Findings<'_>) {
    let (found, help) = match control::reload(&file.socket(), file, true) {
        Ok(changes) if changes.is_empty() => return,
        Ok(changes) => (
            format!(
                "the file differs from the running node: {}",
                changes.join("; ")
            ),
            "`airlane reload` applies the file; what follows concerns the running node",
        ),
        Err(error) => (
            format!("the file cannot be compared with the running node: {error}"),
            "what follows concerns the running node",
        ),
    };
    findings.add("file", Grade::Warning, found, help);
}

/// Checks that datagrams to a peer are not routed into the tunnel that they carry.
fn check_running_way(file: &LiveConfig, (peer, ip): (&str, IpAddr), findings: &mut Findings<'_>) {
    let (tun, mark) = (&file.tun.name, crate::daemon::ways::mark(file));
    let way = Netlink::open().and_then(|mut netlink| {
        let into = netlink.link_index(tun)?;
        Ok(netlink.way_of(ip, mark)? == into)
    });
    match way {
        Ok(false) => match reverse_path::blocks(ip, tun, mark) {
            None => findings.good("route", format!("there is a way to {peer} at {ip}")),
            Some(interface) => {
                let found = reverse_path::says(&interface, ip);
                findings.add("route", Grade::Bad, found, reverse_path::HELP);
            }
        },
        Ok(true) => findings.add(
            "route",
            Grade::Bad,
            format!("the way to {peer} at {ip} leads into {tun} itself: what is sent there comes back (own-datagram)"),
            "make a route to it outside; \"0.0.0.0/0\" under tun.routes goes past the peers by itself",
        ),
        Err(error) => {
            let found = format!("there is no way to {peer} at {ip}: {error}");
            let help = "`ip route get` shows what the kernel knows; the link keeps retrying";
            findings.add("route", Grade::Bad, found, help);
        }
    }
}

fn check_session(
    peer: &PeerStatus,
    asked: Option<Duration>,
    (callers, ours): (&[CallerReport], Option<&str>),
    look: Look<'_>,
    findings: &mut Findings<'_>,
) {
    let (session, who) = (&peer.session, who(&peer.name, peer.address));
    if let Some(shared) = &session.shared_key {
        return findings.add("peer", Grade::Bad, shared.says(&peer.name), SharedKey::HELP);
    }
    let mut bad = |found: String, help: &str| findings.add("peer", Grade::Bad, found, help);
    match (&*session.state, &session.refused) {
        ("confirmed" | "unheard", _) if peer.path_too_narrow => bad(
            format!("the path to {who} takes datagrams of less than {LEAST} B: nothing is sent"),
            "what stands between both ends, and which MTU does it have?",
        ),
        ("unheard", _) => bad(
            format!(
                "the peer does not hear us: {who} is heard, and has missed all that was sent for {}",
                rounded(Duration::from_nanos(session.unheard_ns.unwrap_or_default()))
            ),
            "the path works in one direction: what drops datagrams on the way there, a firewall or a route?",
        ),
        ("confirmed", _) if let Some(asked) = asked.filter(|asked| !was_reached(peer, *asked)) => {
            bad(
                format!(
                    "{who} does not answer: it was asked for {}, and heard last what left {} ago; its session counts as confirmed \
                 until it is silent for long",
                    rounded(asked),
                    rounded(Duration::from_nanos(session.reached_ns.unwrap_or_default()))
                ),
                "does the other end still run, and is there still a way in both directions?",
            )
        }
        ("confirmed", _) => findings.good(
            "peer",
            match asked {
                Some(_) => format!("the session with {who} is confirmed: it answers"),
                None => format!("the session with {who} is confirmed"),
            },
        ),
        ("accepted", _) => {
            let found = format!("the session with {who} has begun, and is not confirmed yet");
            findings.add("peer", Grade::Warning, found, "");
        }
        (_, Some(tables)) => bad(
            format!(
                "{who} refuses the session, as services of one number differ; here: {}; there: {}",
                one_line(&tables.ours),
                one_line(&tables.theirs)
            ),
            "make them equal in both files; only base-station is \"here\" at one end and \"peer\" at the other",
        ),
        _ if session.other_protocol.is_some() => bad(
            format!(
                "{who} speaks protocol {}, this end {PROTOCOL}",
                session.other_protocol.unwrap_or_default()
            ),
            "install one version of airlane at both ends; `airlane version` prints its protocol",
        ),
        ("disconnected", _) => {
            let silent = rounded(Duration::from_nanos(
                session.disconnected_ns.unwrap_or_default(),
            ));
            let found = format!("nothing was heard from {who} for {silent}");
            match called(peer.address, callers, ours) {
                Some((why, help)) => bad(format!("{found}: {why}"), &help),
                None => bad(
                    found,
                    "does the other end run, and is there a way in both directions?",
                ),
            }
        }
        _ if peer.unresolved.is_some() => bad(
            format!(
                "the host of {} cannot be looked up: {}",
                peer.name,
                peer.unresolved.as_deref().unwrap_or_default()
            ),
            "is the name right, and does this machine have DNS?",
        ),
        _ if peer.keys_age_ns.is_some() => bad(
            format!("{who} has the right key, and no session has begun"),
            "do both ends run the same version? The log has what is dropped",
        ),
        _ => {
            let (found, help) = cause(&who, peer.address, callers, ours, look);
            bad(found, &help);
        }
    }
}

fn one_line(table: &str) -> String {
    table.trim_end().replace('\n', ", ")
}

/// Examines this machine and the network: why a peer has never answered, and a remedy.
type Look<'a> = &'a dyn Fn(&str, PeerAddress) -> Option<(String, String)>;

/// Whether there is a route to the peer, and whether its port is open.
fn look(who: &str, address: PeerAddress) -> Option<(String, String)> {
    let way = |ip: IpAddr| Netlink::open().and_then(|mut netlink| netlink.way_to(ip));
    if let Some(Err(error)) = address.ip().map(way) {
        let help = "is the network up, or a route missing? The link keeps retrying".to_owned();
        return Some((format!("there is no way to {who}: {error}"), help));
    }
    if is_kept_in(address) {
        return Some(kept_in(who));
    }
    nobody_listens(address).then(|| {
        let help = "start `airlane up` there, or correct the port here".to_owned();
        (format!("nobody listens where {who} should be"), help)
    })
}

/// Why a peer has never answered, as far as its own calls and a look show, and a remedy.
fn cause(
    who: &str,
    address: Option<PeerAddress>,
    callers: &[CallerReport],
    ours: Option<&str>,
    look: Look<'_>,
) -> (String, String) {
    let seen = || address.and_then(|address| look(who, address));
    if let Some(known) = called(address, callers, ours).or_else(seen) {
        return known;
    }
    let first = ours.map_or("", |key| key.get(..8).unwrap_or(key));
    match (address, ours) {
        (None, _) => (
            format!("{who} has not called yet"),
            format!("is `airlane up` running there, with this end's address and its key ({first}...) as peer-key?"),
        ),
        (Some(_), None) => (
            format!("nothing was heard from {who}"),
            "is `airlane up` running there, with this end's address as its peer, and do firewalls let both \
             directions through?"
                .to_owned(),
        ),
        (Some(_), Some(_)) => (
            format!("no answer from {who}"),
            format!(
                "is `airlane up` running there, and do firewalls let both directions through? If its log says that \
                 {first}... calls, its peer-key is another; if it counts secure-mac, the key here is not its own; if \
                 secure-preshared, one end alone has a pre-shared key"
            ),
        ),
    }
}

/// Why a call from the peer's address was refused, and a remedy.
fn called(
    address: Option<PeerAddress>,
    callers: &[CallerReport],
    ours: Option<&str>,
) -> Option<(String, String)> {
    // A NAT may have changed the port.
    let near = |caller: &&CallerReport| match (address.map(|a| a.ip()), caller.address.ip()) {
        (None, _) => true,
        (Some(expected), called) => expected == called,
    };
    let caller = callers.iter().find(near)?;
    let help = match caller.why {
            CallFault::UnknownKey => {
                "write the key here that `airlane keygen --public` prints there, unless another host is there"
                    .to_owned()
            }
            CallFault::OtherKey => format!(
                "its peer-key has to be {}, or the private key of this end is not the one that it knows",
                ours.unwrap_or("the public key of this end")
            ),
            CallFault::Ourselves => {
                "write the address of the other end here; where both are behind one translator, the one inside".to_owned()
            }
            CallFault::OtherPreshared => {
                "name the same preshared-key in both files, a copy of one file with the same text, or none in either"
                    .to_owned()
            }
            CallFault::WithoutKeys | CallFault::WithKeys => {
                "write keys in both files, as `airlane setup` does, or security = \"none\" in both".to_owned()
            }
            CallFault::OtherAddress => {
                "write that address here, or give both ends keys, by which they know each other".to_owned()
            }
        };
    Some((caller.says(address.is_some()), help))
}

/// The finding about a packet filter of this machine.
fn kept_in(who: &str) -> (String, String) {
    (
        format!("a packet filter of this machine lets nothing out to {who}"),
        "`nft list ruleset` or `iptables -S OUTPUT` show the rules; let UDP out from this port and to its"
            .to_owned(),
    )
}

/// Whether a packet filter of this machine refuses datagrams from any port to the address: "Operation not permitted".
fn is_kept_in(address: PeerAddress) -> bool {
    say_nothing(address).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Whether the peer's machine reports that the port is closed. The error arrives only on a connected socket.
fn nobody_listens(address: PeerAddress) -> bool {
    let asked = say_nothing(address).and_then(|socket| socket.recv(&mut [0]));
    asked.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Sends an empty datagram to the address.
fn say_nothing(address: PeerAddress) -> io::Result<UdpSocket> {
    let PeerAddress::Udp(address) = address else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(A_MOMENT))?;
    socket.send(&[])?;
    Ok(socket)
}

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
    for peer in calling {
        let found = format!("{} calls, from any address", peer.name);
        findings.good("peer", found);
    }
    let mut asking = Asking {
        guard,
        underlay,
        begun,
        patience: PATIENCE,
        asked,
        refused: Vec::new(),
        callers: RefusedCallers::default(),
    };
    asking.run(findings);
    // A filter may block only this end's port; the calls from a fresh port below would then pass and mislead.
    let Asking { asked, refused, .. } = &mut asking;
    asked.retain(|peer| {
        let kept = peer.fixed_address().filter(|at| refused.contains(at));
        if let Some(at) = kept {
            let (found, help) = kept_in(&who(&peer.name, Some(at)));
            findings.add("peer", Grade::Bad, found, &help);
        }
        kept.is_none()
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
        refused: Vec::new(),
        callers: RefusedCallers::default(),
    };
    asking.run(&mut Findings(&mut |_| {}));
    let still: Vec<&str> = asking.asked.iter().map(|peer| &*peer.name).collect();
    let names = asked.iter().map(|peer| &*peer.name);
    names.filter(|name| !still.contains(name)).collect()
}

fn who(name: &str, address: Option<PeerAddress>) -> String {
    match address {
        Some(address) => format!("{name} at {address}"),
        None => format!("{name} (wherever it is)"),
    }
}

/// Handshakes with all peers at once.
struct Asking<'a> {
    guard: Guard,
    underlay: &'a Underlay,
    begun: Instant,
    patience: Duration,
    /// Peers that have not answered yet.
    asked: Vec<&'a PeerConfig>,
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
            if self.asked.is_empty() || now >= end {
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
                        "write that address here, unless the peer moves or is behind a translator",
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
