//! `airlane send`.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use airlane_base::{Duration, Instant, Rate};
use airlane_secure::{PeerAddress, SecurePeer};
use airlane_ship::{Failure, LONGEST_DATAGRAM, Shipper, ShipperPhase};

use super::digest::Digester;
use super::interface::Interface;
use super::line::Line;
use super::source::Source;
use super::{ShipError, ShipEvent, ShipProgress, Shipment, ShippedFile, Ticket, Watch};
use crate::clock;

/// Interval of progress events.
const TELL: Duration = Duration::from_millis(100);
/// Silence after which the host's next address is tried.
const NEXT_ADDRESS: Duration = Duration::from_secs(3);
/// Silence after which the receiver, which reports every second, may have been restarted.
const SILENT: Duration = Duration::from_secs(3);
/// Datagrams due within this time leave together: waking for each costs more than the datagram.
const TOGETHER: Duration = Duration::from_micros(250);
/// Packets sent before other work gets its turn.
const IN_A_ROW: usize = 512;

/// Settings of a sender.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// Addresses of the other end, the best first.
    pub to: Vec<SocketAddr>,
    /// The shared ticket.
    pub ticket: Ticket,
    /// Limit of the sending rate.
    pub most: Rate,
    /// Silence after which the transfer fails.
    pub timeout: Duration,
    /// Control socket of the link to use; `None` to look for one that leads there.
    pub link: Option<PathBuf>,
}

/// Sends files until they are complete.
///
/// # Errors
/// Why the transfer failed.
pub fn send(
    mut source: Source,
    options: &SendOptions,
    stop: BorrowedFd<'_>,
    watch: Watch<'_>,
) -> Result<Shipment, ShipError> {
    let began = clock::now();
    let (mut line, at) = call(options, stop, watch)?;
    let mut interface = Interface::find(options.link.as_deref(), line.local()?.port(), at)?;
    let sizes = options
        .to
        .iter()
        .map(|to| line.sizes(*to))
        .min()
        .unwrap_or_default();
    let manifest = source.manifest().clone();
    let started = clock::since_1970();
    let mut shipper = Shipper::new(
        clock::now(),
        manifest.clone(),
        &sizes,
        started,
        options.most,
    )
    .map_err(ShipError::Job)?;
    let mut digester = Digester::new(&manifest);
    let (mut told, mut renewed) = (began, began);
    let mut totals = (0, 0);
    let mut ended = None;
    loop {
        let now = clock::now();
        let Ok(()) = line.receive(now, |contents| {
            shipper.handle(now, contents);
            Ok::<_, std::convert::Infallible>(())
        });
        ask(now, &mut interface, (&mut shipper, &line, at), watch);
        transmit(now, &mut shipper, &mut line, &mut source)?;
        totals = later(totals, shipper.packets());
        let more = match shipper.phase() >= ShipperPhase::Sending {
            true => digester.step(u64::MAX, |at, bytes| source.read(at, bytes))?,
            false => false,
        };
        match (shipper.phase(), digester.all()) {
            (ShipperPhase::Digests, Some(digests)) => {
                shipper.give_digests(digests.to_vec());
                continue;
            }
            (ShipperPhase::Done, Some(digests))
                if now >= *ended.get_or_insert(now) + linger(&shipper) =>
            {
                let shipped =
                    manifest
                        .files()
                        .zip(digests)
                        .map(|((_, entry), digest)| ShippedFile {
                            path: entry.path.clone(),
                            bytes: entry.bytes,
                            blake3: digest.0.clone(),
                        });
                let took = ended.unwrap_or(now).saturating_since(began);
                let had = shipper.had().unwrap_or(0);
                let counted = interface.filter(Interface::has_counted);
                return Ok(Shipment {
                    link: counted.map(|interface| interface.name().to_owned()),
                    ..Shipment::new(shipped.collect(), had, took, totals)
                });
            }
            (ShipperPhase::Failed, _) => {
                let failure = shipper.failure().cloned();
                return Err(ShipError::Job(failure.unwrap_or(Failure::Silence)));
            }
            _ => {}
        }
        if now >= shipper.heard() + options.timeout {
            return Err(ShipError::Silent {
                timeout: options.timeout,
                unsent: line.unsent(),
            });
        }
        if now >= shipper.heard() + SILENT && now >= renewed + SILENT {
            renewed = now;
            line.renew(now);
        }
        if now.saturating_since(told) >= TELL {
            told = now;
            watch(ShipEvent::Progress(progress(&shipper)));
        }
        let due = shipper
            .poll_timeout()
            .unwrap_or(Instant::FAR_FUTURE)
            .min(told + TELL);
        let due = if more { now } else { due.max(now + TOGETHER) };
        if line.wait(now, due, stop)? {
            return Err(ShipError::Stopped);
        }
    }
}

/// How long to stay after the end: the receiver repeats the result until it is confirmed, and this end has to
/// confirm it.
fn linger(shipper: &Shipper) -> Duration {
    let time = shipper.round_trip().unwrap_or_default() * 3;
    time.max(TELL / 5).min(TELL * 10)
}

/// The number of packets, by round: a new round continues the sums.
const fn later(before: (u64, u64), now: (u64, u64)) -> (u64, u64) {
    if now.0 >= before.0 { now } else { before }
}

/// Calls until the other end answers.
fn call(
    options: &SendOptions,
    stop: BorrowedFd<'_>,
    watch: Watch<'_>,
) -> Result<(Line, SocketAddr), ShipError> {
    let began = clock::now();
    let mut addresses = options.to.iter().cycle();
    let first = addresses.next().copied();
    let first = first.ok_or_else(|| ShipError::Input("the host has no address".to_owned()))?;
    let peer = SecurePeer {
        key: options.ticket.receiver().public(),
        address: Some(PeerAddress::Udp(first)),
        preshared: Some(options.ticket.preshared().clone()),
    };
    let any: SocketAddr = match options.to.iter().any(SocketAddr::is_ipv6) {
        true => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
        false => (std::net::Ipv4Addr::UNSPECIFIED, 0).into(),
    };
    let mut line = Line::open(any, options.ticket.sender(), peer)?;
    let mut next = began + NEXT_ADDRESS;
    let mut at = first;
    let mut has_noted = false;
    loop {
        let now = clock::now();
        let Ok(()) = line.receive(now, |_| Ok::<_, std::convert::Infallible>(()));
        if line.is_established(now) {
            return Ok((line, at));
        }
        if now >= began + options.timeout {
            return Err(nobody(&line, at));
        }
        if now >= next {
            next = now + NEXT_ADDRESS;
            if !std::mem::replace(&mut has_noted, true) {
                watch(ShipEvent::Note(format!("{}; retrying", nobody(&line, at))));
            }
            let another = addresses.next().copied().filter(|another| *another != at);
            if let Some(another) = another {
                at = another;
                line.seek(now, at);
            }
        }
        if line.wait(now, next, stop)? {
            return Err(ShipError::Stopped);
        }
    }
}

fn nobody(line: &Line, at: SocketAddr) -> ShipError {
    ShipError::Nobody {
        at,
        unsent: line.unsent(),
    }
}

/// Uses the link's reports in preference to measurements.
fn ask(
    now: Instant,
    link: &mut Option<Interface>,
    (shipper, line, at): (&mut Shipper, &Line, SocketAddr),
    watch: Watch<'_>,
) {
    let Some(interface) = link else { return };
    let counted = interface.has_counted();
    match interface.poll(now) {
        Ok(None) => {}
        Ok(Some(offered)) => {
            shipper.set_offered(now, &offered, line.headers(at));
            if !counted {
                let name = interface.name();
                watch(ShipEvent::Note(format!("the link {name} sets the pace")));
            }
        }
        Err(error) => {
            watch(ShipEvent::Note(format!("{error}; pacing by what arrives")));
            *link = None;
        }
    }
}

/// Sends everything that is due.
fn transmit(
    now: Instant,
    shipper: &mut Shipper,
    line: &mut Line,
    source: &mut Source,
) -> Result<(), ShipError> {
    let mut out = [0; LONGEST_DATAGRAM];
    let mut fill = |at: u64, bytes: &mut [u8]| source.fill(at, bytes);
    for _ in 0..IN_A_ROW {
        while let Some(len) = shipper.poll_transmit(now, &mut out, &mut fill)? {
            line.send(now, &out[..len]);
        }
        if shipper.poll_timeout().is_none_or(|due| due > now) {
            break;
        }
        shipper.handle_timeout(now);
    }
    line.flush();
    Ok(())
}

fn progress(shipper: &Shipper) -> ShipProgress {
    let (sent, all) = shipper.progress();
    let total = shipper.total();
    let doing = match shipper.phase() {
        ShipperPhase::Seeking | ShipperPhase::Offering => "asking what is missing",
        ShipperPhase::Sending => "sending",
        _ => "comparing",
    };
    let done = match shipper.phase() {
        ShipperPhase::Seeking | ShipperPhase::Offering => 0,
        _ => total - all + sent,
    };
    ShipProgress { done, total, doing }
}
