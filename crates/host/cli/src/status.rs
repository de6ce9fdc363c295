//! Prints the status of a live node.

use airlane_live::status::{
    CallerReport, PeerStatus, ServiceReport, SharedKey, Status, UnderlayReport, build,
};
use anstyle::{AnsiColor, Style};

use crate::output;
use crate::quantity::{Estimate, Unit};
use crate::table::{Align, Cell, Table};

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const WAIT: Style = AnsiColor::Yellow.on_default();
const STRONG: Style = Style::new().bold();

/// The status as text. With an earlier status, it has the rates since then, too.
pub(crate) fn render(status: &Status, before: Option<&Status>) -> String {
    let mut text = format!("{}\n{}{}", head(status), peers(status), refused(status));
    let since = before
        .filter(|before| before.uptime_ns < status.uptime_ns)
        .map(|before| (before, (status.uptime_ns - before.uptime_ns) as f64 / 1e9));
    for peer in &status.peers {
        let since = since.and_then(|(before, seconds)| {
            let before = before.peers.iter().find(|p| p.name == peer.name);
            before.map(|before| (before, seconds))
        });
        let name = match status.peers.len() {
            1 => "the peer",
            _ => &peer.name,
        };
        text.push_str(&format!(
            "\n{}\n{STRONG}To {name}{STRONG:#}\n{}\n{STRONG}From {name}{STRONG:#}\n{}",
            peer_head(status, peer),
            sent(peer, since),
            received(peer, since)
        ));
    }
    text.push_str(LEGEND);
    text + &dropped(status)
}

/// Explains the letters at the heads of columns.
const LEGEND: &str = "\n  g: part of the bytes sent that are packets, each once; e: what of it the peer gets; l: lost for good; \
    d: delay on the link, with repairs\n";

/// What the node is.
pub(crate) fn head(status: &Status) -> String {
    let Status { tun, underlay, .. } = status;
    let key = underlay.secure.as_ref().map(|secure| &secure.key);
    let key = key.map_or(String::new(), |key| format!(", key {key}"));
    let text = format!(
        "{STRONG}{}{STRONG:#}: up for {}, airlane {}, protocol {}\n  {} (MTU {} B) over {}, {}, security {}{key}\n",
        status.name,
        seconds(status.uptime_ns),
        output::plain(&build(&status.version, status.commit.as_deref())),
        status.protocol,
        tun.name,
        tun.mtu_bytes,
        here(underlay),
        at_most(underlay.rate_bps),
        underlay.security,
    );
    let left = underlay.left_port.map_or(String::new(), |port| {
        format!(
            "  {BAD}configured port {port} was abandoned{BAD:#}: nothing sent from it was answered\n"
        )
    });
    text + &left + &handshakes(status)
}

/// Counts handshakes, if a peer has no keys yet.
fn handshakes(status: &Status) -> String {
    let keyless = status.peers.iter().any(|peer| peer.keys_age_ns.is_none());
    match &status.underlay.secure {
        Some(secure) if keyless => format!(
            "  handshakes: {} sent, {} of others answered, {} datagrams refused\n",
            secure.handshakes_begun, secure.handshakes_answered, secure.refused
        ),
        _ => String::new(),
    }
}

fn state(peer: &PeerStatus) -> Cell {
    let state = &peer.session.state;
    let style = match &**state {
        "confirmed" => GOOD,
        "refused" | "disconnected" | "unheard" => BAD,
        _ => WAIT,
    };
    Cell::styled(state.clone(), style)
}

/// A line for each peer, in the manner of `wg show`.
fn peers(status: &Status) -> String {
    // Both losses are of frames from the peer; the peer's own status has those of the other
    // direction.
    let right = [
        "received",
        "sent",
        "from it: lost on the link",
        "after repair",
    ];
    let left = ["peer", "session", "last handshake", "endpoint"];
    let left = left.map(|head| (head, Align::Left));
    let mut table = Table::new(
        left.into_iter()
            .chain(right.map(|head| (head, Align::Right))),
    );
    for peer in &status.peers {
        let bytes = |bytes: u64| Estimate::single(bytes as f64).show(Unit::Bytes).to_string();
        let handshake = peer.keys_age_ns.map(|age| format!("{} ago", seconds(age)));
        let endpoint = peer.address.map(|address| address.to_string());
        let [before, after] = peer.losses().map(per_cent);
        table.row([
            peer.name.as_str().into(),
            state(peer),
            handshake.unwrap_or_else(|| "-".to_owned()).into(),
            endpoint.unwrap_or_else(|| "-".to_owned()).into(),
            bytes(peer.received_bytes).into(),
            bytes(peer.sent_bytes).into(),
            before.into(),
            after.into(),
        ]);
    }
    table.render()
}

/// How it stands with a peer, which may be one of several.
pub(crate) fn peer_head(status: &Status, peer: &PeerStatus) -> String {
    let (session, several) = (&peer.session, status.peers.len() > 1);
    let mut text = format!("{STRONG}{}{STRONG:#}: session {}", peer.name, session.state);
    if let Some(gone) = session.disconnected_ns {
        text.push_str(&format!(": nothing heard for {}", seconds(gone)));
        if let Some(age) = session.age_ns {
            text.push_str(&format!(", began {} ago", seconds(age)));
        }
    } else if let Some(unheard) = session.unheard_ns {
        text.push_str(&format!(
            ": the peer does not hear us, for {}, and is heard",
            seconds(unheard)
        ));
    } else if let Some(age) = session.age_ns {
        text.push_str(&format!(" for {}", seconds(age)));
    }
    if session.disconnected_ns.is_none() && session.disconnections > 0 {
        text.push_str(&match session.disconnections {
            1 => ", was disconnected once".to_owned(),
            times => format!(", was disconnected {times} times"),
        });
    }
    if let Some(rtt) = session.rtt_ns {
        text.push_str(&format!(", round trip {}", seconds(rtt)));
    }
    // A single peer that takes every packet of the interface says nothing about the machine's
    // routes.
    let everything = peer.prefixes.iter().all(|prefix| prefix.ends_with("/0"));
    let part = match several || !everything {
        true => format!("{}, weight {}, ", peer.prefixes.join(", "), peer.weight),
        false => String::new(),
    };
    text.push_str(&format!("\n  {part}{}\n", rate(peer)));
    if let Some(key) = &peer.key {
        text.push_str(&format!("  peer key {key}\n"));
    }
    if let Some(from) = peer.answered_from {
        text.push_str(&format!(
            "  this end sends from {from}, the address that it called\n"
        ));
    }
    let calls = |caller: &&CallerReport| peer.address == Some(caller.address);
    if let Some(caller) = status.callers.iter().find(calls)
        && is_away(peer)
    {
        text.push_str(&format!("  {BAD}{}{BAD:#}\n", caller.says(true)));
    }
    if let Some(shared) = &session.shared_key {
        let says = shared.says(&peer.name);
        text.push_str(&format!("  {BAD}{says}{BAD:#}: {}\n", SharedKey::HELP));
    }
    if let Some((host, why)) = peer.host.as_ref().zip(peer.unresolved.as_ref()) {
        let why = output::plain(why);
        text.push_str(&format!(
            "  {BAD}{host} cannot be looked up{BAD:#}: {why}\n"
        ));
    }
    if let Some(refused) = &session.refused {
        text.push_str(&format!(
            "\n{BAD}The services of the two ends do not fit{BAD:#}; make both files say the same \
             (only base-station is \"here\" at one end and \"peer\" at the other).\n\
             This end:\n{}\nThe other end:\n{}\n",
            indent(&refused.ours),
            indent(&output::plain(&refused.theirs))
        ));
    }
    text
}

/// Dropped packets, by peer if there are several.
fn dropped(status: &Status) -> String {
    let several = status.peers.len() > 1;
    let nobody = status.drops.iter().map(|drop| (None, drop));
    let peers = status.peers.iter().flat_map(|peer| {
        let name = several.then_some(peer.name.as_str());
        peer.drops.iter().map(move |drop| (name, drop))
    });
    let mut table = Table::new([("", Align::Right), ("", Align::Left), ("", Align::Left)]);
    let mut any = false;
    for (name, (reason, count)) in nobody.chain(peers) {
        any = true;
        let name = name.map_or(String::new(), |name| format!("of {name}"));
        table.row([count.to_string(), reason.clone(), name]);
    }
    match any {
        true => format!(
            "\n{STRONG}Dropped outside of the services{STRONG:#}\n{}",
            table.render()
        ),
        false => String::new(),
    }
}

/// Whether the peer has no session, or is silent in one. A stranger may pretend to call from the address of another.
fn is_away(peer: &PeerStatus) -> bool {
    peer.session.id.is_none() || peer.session.disconnected_ns.is_some()
}

/// Callers refused for a key or an address, a sentence each.
pub(crate) fn callers(status: &Status) -> Vec<String> {
    let callers = status.callers.iter().map(|caller| {
        let expected = |peer: &PeerStatus| peer.address == Some(caller.address) && is_away(peer);
        let says = caller.says(status.peers.iter().any(expected));
        let (times, ago) = (caller.calls, seconds(caller.ago_ns));
        format!("{says} ({times} times, last {ago} ago)")
    });
    callers.collect()
}

fn refused(status: &Status) -> String {
    let lines = callers(status).into_iter();
    let lines: String = lines.map(|line| format!("  {line}\n")).collect();
    match lines.is_empty() {
        true => lines,
        false => format!("\n{STRONG}Refused{STRONG:#}\n{lines}"),
    }
}

type Since<'a> = Option<(&'a PeerStatus, f64)>;

fn sent(peer: &PeerStatus, since: Since<'_>) -> String {
    let mut table = columns(
        &[
            "share", "offered", "sent", "dropped", "waiting", "repairs", "control", "g", "e",
        ],
        since,
    );
    for service in &peer.services {
        let ledger = &service.ledger;
        let mut cells = names(service);
        cells.extend([
            share(service, peer),
            ledger.packets_offered.to_string(),
            ledger.packets_sent.to_string(),
            ledger.packets_dropped().to_string(),
            service.queue_packets.to_string(),
            ledger.repair_frames_sent.to_string(),
            ledger.control_frames_sent.to_string(),
            per_cent(service.metrics.goodput),
            per_cent(service.effective_goodput),
        ]);
        cells.extend(speed(service, since, |service| service.ledger.sent_bytes));
        table.row(cells);
    }
    table.render()
}

fn received(peer: &PeerStatus, since: Since<'_>) -> String {
    let mut table = columns(
        &[
            "delivered",
            "recovered",
            "overtaken",
            "late",
            "given up",
            "lost",
            "l",
            "d",
        ],
        since,
    );
    for service in &peer.services {
        let ledger = &service.ledger;
        let mut cells = names(service);
        let lost = Cell::styled(
            ledger.residual_lost.to_string(),
            if ledger.residual_lost > 0 {
                WAIT
            } else {
                Style::new()
            },
        );
        cells.extend([
            ledger.packets_delivered.to_string(),
            ledger.packets_recovered.to_string(),
            ledger.overtaken.to_string(),
            ledger.late.to_string(),
            ledger.given_up.to_string(),
        ]);
        let mut cells: Vec<Cell> = cells.into_iter().map(Cell::from).collect();
        cells.push(lost);
        cells.push(per_cent(service.metrics.loss).into());
        let delay = service.metrics.delay_s;
        cells.push(
            delay
                .map_or("-".to_owned(), |d| {
                    Estimate::single(d).show(Unit::Seconds).to_string()
                })
                .into(),
        );
        cells.extend(speed(service, since, |s| s.ledger.delivered_bytes).map(Cell::from));
        table.row(cells);
    }
    table.render()
}

fn columns(heads: &[&str], since: Since<'_>) -> Table {
    let words = ["service", "scheme"].map(|head| (head, Align::Left));
    let speed = since.map(|_| ("now", Align::Right));
    Table::new(
        words
            .into_iter()
            .chain(heads.iter().map(|h| (*h, Align::Right)))
            .chain(speed),
    )
}

fn names(service: &ServiceReport) -> Vec<String> {
    let stands = match (service.draining, service.waiting) {
        (true, _) => " (leaving)",
        (_, true) => " (the peer has none)",
        _ => "",
    };
    vec![
        format!("{} {}{stands}", service.number, service.name),
        service.scheme.clone(),
    ]
}

/// The service's share of the peer's part of the link while all other services have traffic.
fn share(service: &ServiceReport, peer: &PeerStatus) -> String {
    let all: f64 = peer.services.iter().map(|s| s.rate).sum();
    per_cent((all > 0.0).then(|| service.rate / all))
}

/// Bits per second since the earlier status.
fn speed(
    service: &ServiceReport,
    since: Since<'_>,
    bytes: fn(&ServiceReport) -> u64,
) -> Option<String> {
    let (before, seconds) = since?;
    let then = before
        .services
        .iter()
        .find(|s| s.number == service.number)
        .map_or(0, bytes);
    let bits = bytes(service).saturating_sub(then) as f64 * 8.0;
    Some(
        Estimate::single(bits / seconds)
            .show(Unit::BitsPerSecond)
            .to_string(),
    )
}

fn per_cent(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |r| {
        Estimate::single(r).show(Unit::Ratio).to_string()
    })
}

fn seconds(ns: u64) -> String {
    Estimate::single(ns as f64 / 1e9)
        .show(Unit::Seconds)
        .to_string()
}

fn indent(text: &str) -> String {
    text.lines()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// This end's address or interface.
pub(crate) fn here(underlay: &UnderlayReport) -> String {
    match &underlay.interface {
        Some(interface) if !interface.up => format!("{} (down)", interface.name),
        Some(interface) if !interface.carrier => format!("{} (no carrier)", interface.name),
        Some(interface) => format!("{} {}", interface.name, underlay.listen),
        None => underlay.listen.to_string(),
    }
}

/// The rate limit towards a peer, and the port's current rate if that is lower; or the rate that
/// was found, and why it is not higher.
pub(crate) fn rate(peer: &PeerStatus) -> String {
    if let Some(found) = &peer.found_rate {
        let mut rate = format!("{} found: {}", bits(found.bps), found.limit.says());
        if !peer.shares_with.is_empty() {
            rate += &format!("; shared by weight with {}", peer.shares_with.join(", "));
        }
        return rate;
    }
    let rate = at_most(peer.rate_bps);
    match peer.sending_rate_bps {
        now if peer.rate_bps.is_none_or(|most| now >= most) => format!("at most {rate}"),
        now => format!("at most {rate}, {} now", bits(now)),
    }
}

fn bits(bps: u64) -> String {
    let bits = Estimate::single(bps as f64).show(Unit::BitsPerSecond);
    bits.to_string()
}

/// A rate limit from the file, or words for a file without one.
pub(crate) fn at_most(stated: Option<u64>) -> String {
    stated.map_or_else(|| "a rate that is found".to_owned(), bits)
}

#[cfg(feature = "screen")]
/// The peer's address.
pub(crate) fn peer_name(peer: Option<impl ToString>) -> String {
    peer.map_or_else(|| "no peer yet".to_owned(), |peer| peer.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::status;
    use airlane_live::status::{CallFault, SecureReport};

    fn text(status: &Status) -> String {
        anstream::adapter::strip_str(&render(status, None)).to_string()
    }

    #[test]
    fn the_reason_for_no_session_precedes_the_drops() {
        let mut waiting = status(10, 0);
        waiting.underlay.secure = Some(SecureReport {
            key: "TjgqYkZ2".to_owned(),
            handshakes_begun: 12,
            handshakes_answered: 3,
            cookies_sent: 0,
            refused: 9,
        });
        waiting.callers = vec![CallerReport {
            address: "192.0.2.7:7007".parse().unwrap(),
            why: CallFault::OtherKey,
            key: None,
            calls: 9,
            ago_ns: 1_000_000_000,
        }];
        let said = text(&waiting);
        assert!(
            said.contains("12 sent, 3 of others answered, 9 datagrams refused"),
            "{said}"
        );
        let at = |part: &str| said.find(part).unwrap_or_else(|| panic!("{part}: {said}"));
        assert!(at("expects a different public key from ours") < at("To the peer"));
        // Handshakes are no longer shown once every peer has keys.
        waiting.peers[0].keys_age_ns = Some(1);
        assert!(!text(&waiting).contains("handshakes:"));
    }

    #[test]
    fn a_peer_that_lost_its_keys_is_named_at_its_session() {
        let mut away = status(10, 0);
        away.peers[0].address = "192.0.2.7:7007".parse().ok();
        away.callers = vec![CallerReport {
            address: "192.0.2.7:7007".parse().unwrap(),
            why: CallFault::WithoutKeys,
            key: None,
            calls: 9,
            ago_ns: 1_000_000_000,
        }];
        let reason = "\n  the host at 192.0.2.7:7007 has no keys, while this end has some\n";
        assert!(!text(&away).contains(reason), "the session goes on");
        away.peers[0].session.disconnected_ns = Some(4_000_000_000);
        assert!(text(&away).contains(reason), "{}", text(&away));
    }

    #[test]
    fn the_only_peer_shows_no_default_route() {
        let mut one = status(10, 0);
        one.peers[0].prefixes = ["0.0.0.0/0", "::/0"].map(str::to_owned).to_vec();
        assert!(!text(&one).contains("0.0.0.0/0"));
        one.peers[0].prefixes = vec!["10.1.0.0/16".to_owned()];
        assert!(text(&one).contains("10.1.0.0/16, weight 2"));
    }
}
