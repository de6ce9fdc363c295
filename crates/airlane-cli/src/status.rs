//! The status of a live node, for people.

use std::net::SocketAddr;

use airlane_live::status::{ServiceReport, Status};
use anstyle::{AnsiColor, Style};

use crate::quantity::{Estimate, Unit};
use crate::table::{Align, Cell, Table};

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const WAIT: Style = AnsiColor::Yellow.on_default();
const STRONG: Style = Style::new().bold();

/// The status as text; with the one before it, rates since then too.
pub(crate) fn render(status: &Status, before: Option<&Status>) -> String {
    let mut text = head(status);
    let since = before
        .filter(|before| before.uptime_ns < status.uptime_ns)
        .map(|before| (before, (status.uptime_ns - before.uptime_ns) as f64 / 1e9));
    text.push_str(&format!(
        "\n{STRONG}To the peer{STRONG:#}\n{}",
        sent(status, since)
    ));
    text.push_str(&format!(
        "\n{STRONG}From the peer{STRONG:#}\n{}",
        received(status, since)
    ));
    if !status.drops.is_empty() {
        text.push_str(&format!(
            "\n{STRONG}Dropped outside of the services{STRONG:#}\n"
        ));
        let mut table = Table::new([("", Align::Right), ("", Align::Left)]);
        for (reason, count) in &status.drops {
            table.row([count.to_string(), reason.clone()]);
        }
        text.push_str(&table.render());
    }
    text
}

fn head(status: &Status) -> String {
    let Status {
        session,
        tun,
        underlay,
        ..
    } = status;
    let style = match session.state.as_str() {
        "confirmed" => GOOD,
        "refused" | "disconnected" => BAD,
        _ => WAIT,
    };
    let mut text = format!(
        "{STRONG}{}{STRONG:#}: up for {}, session {style}{}{style:#}",
        status.name,
        seconds(status.uptime_ns),
        session.state,
    );
    if let Some(age) = session.age_ns {
        text.push_str(&format!(" for {}", seconds(age)));
    }
    if let Some(gone) = session.disconnected_ns {
        text.push_str(&format!(", nothing heard for {}", seconds(gone)));
    } else if session.disconnections > 0 {
        text.push_str(&format!(
            ", was disconnected {} times",
            session.disconnections
        ));
    }
    if let Some(rtt) = session.rtt_ns {
        text.push_str(&format!(", round trip {}", seconds(rtt)));
    }
    text.push_str(&format!(
        "\n  {} (MTU {} B) over {} -> {}, {}, security {}\n",
        tun.name,
        tun.mtu_bytes,
        underlay.listen,
        peer_name(underlay.peer),
        Estimate::single(underlay.rate_bps as f64).show(Unit::BitsPerSecond),
        underlay.security,
    ));
    if let Some(secure) = &underlay.secure {
        let age = secure.keys_age_ns.map_or("no keys yet".to_owned(), |age| {
            format!("keys of {} ago", seconds(age))
        });
        text.push_str(&format!("  peer key {}, {age}\n", secure.peer_key));
    }
    if let Some(refused) = &session.refused {
        text.push_str(&format!(
            "\n{BAD}The services of the two ends do not fit{BAD:#}; make both files say the same \
             (only base-station is \"here\" at one end and \"peer\" at the other).\n\
             This end:\n{}\nThe other end:\n{}\n",
            indent(&refused.ours),
            indent(&refused.theirs)
        ));
    }
    text
}

type Since<'a> = Option<(&'a Status, f64)>;

fn sent(status: &Status, since: Since<'_>) -> String {
    let mut table = columns(
        &[
            "share", "offered", "sent", "dropped", "waiting", "repairs", "control", "g", "e",
        ],
        since,
    );
    for service in &status.services {
        let ledger = &service.ledger;
        let mut cells = names(service);
        cells.extend([
            share(service, status),
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

fn received(status: &Status, since: Since<'_>) -> String {
    let mut table = columns(
        &[
            "delivered",
            "recovered",
            "late",
            "given up",
            "lost",
            "l",
            "d",
        ],
        since,
    );
    for service in &status.services {
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

/// What the service may have of the link if all others want theirs.
fn share(service: &ServiceReport, status: &Status) -> String {
    let all: f64 = status.services.iter().map(|s| s.rate).sum();
    per_cent((all > 0.0).then(|| service.rate / all))
}

/// Bits per second since the status before.
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

/// Where the peer is.
pub(crate) fn peer_name(peer: Option<SocketAddr>) -> String {
    peer.map_or_else(
        || "nobody who has called yet".to_owned(),
        |peer| peer.to_string(),
    )
}
