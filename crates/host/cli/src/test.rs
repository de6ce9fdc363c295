//! `airlane test`: finds the paths to the peer, and prints a table of what was measured.

mod services;
mod table;

use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airlane_live::control;
use airlane_live::netlink::{Cidr, leads_to};
use airlane_live::signals::stop_on_signals;
use airlane_live::status::{PeerStatus, Status};
use airlane_probe::{
    AcceptFrom, App, LinkTest, LinkTestReport, LinkTestStep, ProbeError, ServeError, ServerConfig,
    ServerEvent, ServerPorts, TestedPath, Times, find_server, serve,
};
use anyhow::{Context as _, anyhow, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use services::{Mark, Used};

use crate::args::{TestApp, TestArgs};
use crate::fault::BadInput;
use crate::{live, output};

/// How long load continues after the measured period, for late packets.
const GRACE: Duration = Duration::from_secs(1);
/// Timeout for the first answer of the other end.
const PATIENCE: Duration = Duration::from_secs(5);

/// The JSON output.
#[derive(Serialize)]
struct Outcome<'a> {
    /// Version of this format: 1.
    schema: u32,
    /// The link's name, if the test went through one.
    link: Option<&'a str>,
    /// Length of each run's measuring period.
    measured_ns: u64,
    /// Which service of the link each application used.
    services: Vec<Used>,
    #[serde(flatten)]
    report: &'a LinkTestReport,
}

/// Runs the verb.
pub(crate) fn test(args: &TestArgs) -> anyhow::Result<()> {
    if args.serve {
        return answer(args);
    }
    let ways = Ways::find(args)?;
    let mut apps: Vec<App> = args.only.iter().copied().map(app).collect();
    apps.sort_unstable();
    apps.dedup();
    let std = |time: airlane_base::Duration| Duration::from_nanos(time.as_nanos());
    let test = LinkTest {
        control: SocketAddr::from((ways.control, args.port)),
        before: ways.before.filter(|_| !args.after),
        after: ways.after.filter(|_| !args.before),
        apps: if apps.is_empty() {
            App::ALL.to_vec()
        } else {
            apps
        },
        times: Times {
            warmup: std(args.warmup),
            measure: std(args.duration),
            grace: GRACE,
        },
        congestion_control: args.congestion_control.clone(),
        patience: PATIENCE,
    };
    if test.times.measure.is_zero() {
        return Err(BadInput("--duration must be longer than 0 s".to_owned()).into());
    }
    let bar = progress(test.steps());
    let mut marks = Vec::new();
    let report = test.run(&mut |step| {
        let alone = match step {
            LinkTestStep {
                path: TestedPath::After,
                apps: [app],
            } => Some(*app),
            _ => None,
        };
        marks.extend(ways.mark(alone));
        show(&bar, step);
    });
    marks.extend(ways.mark(None));
    bar.finish_and_clear();
    let report = report.map_err(|error| explain(error, &ways, args))?;
    let link = ways.link.as_ref().map(|link| &*link.name);
    let services = ways.services(&marks);
    if args.json {
        let outcome = Outcome {
            schema: 1,
            link,
            measured_ns: args.duration.as_nanos(),
            services,
            report: &report,
        };
        return output::print(&(serde_json::to_string(&outcome)? + "\n"));
    }
    let table = table::render(&report, link, &test.times) + &services::line(&services);
    output::print(&table)?;
    let complaints = table::complaints(&report);
    complaints
        .iter()
        .chain(&services::warnings(&services))
        .for_each(|text| output::warn(text));
    Ok(())
}

const fn app(app: TestApp) -> App {
    match app {
        TestApp::File => App::File,
        TestApp::Pages => App::Pages,
        TestApp::Voice => App::Voice,
    }
}

/// The paths to the peer.
#[derive(Debug)]
struct Ways {
    /// The link to the peer.
    link: Option<Status>,
    /// The server's address for control messages: inside the link, if there is one.
    control: IpAddr,
    /// The peer's address outside the link.
    before: Option<IpAddr>,
    /// The peer's address inside the link.
    after: Option<IpAddr>,
}

impl Ways {
    fn find(args: &TestArgs) -> anyhow::Result<Self> {
        let peer = args.peer.as_deref();
        let address: Option<IpAddr> = peer.and_then(|peer| peer.parse().ok());
        let Some(address) = address else {
            if let (Some(peer), Some(link)) = (peer, &args.link) {
                let text = format!(
                    "\"{peer}\" is not an address: with --link {link} give one, or nothing"
                );
                return Err(BadInput(text).into());
            }
            let link = link_named(peer.or(args.link.as_deref()))?;
            let server = search(&link, args.port)?;
            return Self::of(&link, server, args);
        };
        let link = match args.link.as_deref() {
            Some(link) => Some(link_named(Some(link))?),
            None => running().into_iter().find(|link| leads(link, address)),
        };
        match link {
            Some(link) if link.peers.iter().any(|peer| plain(peer) == Some(address)) => {
                let found = search(&link, args.port);
                let ways = found.and_then(|server| Self::of(&link, server, args));
                ways.or_else(|error| match args.before {
                    true => Ok(Self::plain(address)),
                    false => Err(error),
                })
            }
            Some(link) => Self::of(&link, address, args),
            None if args.before => Ok(Self::plain(address)),
            None => Err(BadInput(format!(
                "no running link of this machine leads to {address}: give the other end's address in \
                 a link, or the link's name; the plain path alone can be measured with --before and \
                 `airlane test --serve {address}` there"
            ))
            .into()),
        }
    }

    /// To an address outside any link, where `airlane test --serve ADDRESS` answers.
    fn plain(address: IpAddr) -> Self {
        Self {
            link: None,
            control: address,
            before: Some(address),
            after: None,
        }
    }

    /// Through a link whose other end has this address inside it.
    fn of(link: &Status, server: IpAddr, args: &TestArgs) -> anyhow::Result<Self> {
        let name = &link.name;
        let Some(peer) = toward(link, server) else {
            return Err(BadInput(format!(
                "{server} belongs to no peer of the link {name}: see `airlane status {name}`"
            ))
            .into());
        };
        let state = &peer.session.state;
        if state != "confirmed" {
            bail!(
                "the link {name} is not up, its session with {} is {state}: see `airlane status {name}`",
                peer.name
            );
        }
        let before = plain(peer);
        if !args.after {
            let Some(before) = before else {
                bail!(
                    "there is no plain path to measure: nobody has called the link {name} yet, or it runs \
                     straight on Ethernet; --after measures the link alone"
                );
            };
            if leads_to(&link.tun.name, before).unwrap_or(false) {
                bail!(
                    "the way to {before} leads through the link {name} itself: there is no plain path to \
                     measure; --after measures the link alone"
                );
            }
        }
        Ok(Self {
            link: Some(link.clone()),
            control: server,
            before,
            after: Some(server),
        })
    }
}

impl Ways {
    /// The link's status at the start of a phase.
    fn mark(&self, alone: Option<App>) -> Option<Mark> {
        let link = link_named(Some(&self.link.as_ref()?.name));
        Some((alone, link.ok()?))
    }

    /// Which service carried each application, if any went through the link.
    fn services(&self, marks: &[Mark]) -> Vec<Used> {
        let peer = || toward(self.link.as_ref()?, self.after?);
        peer().map_or_else(Vec::new, |peer| services::used(marks, &peer.name))
    }
}

/// The peer that an address inside the link is routed to: the one with the longest matching prefix.
fn toward(link: &Status, address: IpAddr) -> Option<&PeerStatus> {
    let prefix_len = |peer: &&PeerStatus| {
        let prefixes = peer.prefixes.iter();
        let prefixes = prefixes.filter_map(|prefix| prefix.parse::<Cidr>().ok());
        let covering = prefixes.filter(|prefix| prefix.covers(address));
        covering.map(|prefix| prefix.prefix).max()
    };
    let peers = link.peers.iter().filter(|peer| prefix_len(peer).is_some());
    peers.max_by_key(prefix_len)
}

/// The peer's address outside the link; `None` directly on Ethernet.
fn plain(peer: &PeerStatus) -> Option<IpAddr> {
    Some(peer.address?.ip()?.to_canonical())
}

/// Whether this address is reached through the link, or is a peer's address outside it.
fn leads(link: &Status, address: IpAddr) -> bool {
    let mut peers = link.peers.iter();
    peers.any(|peer| plain(peer) == Some(address))
        || leads_to(&link.tun.name, address).unwrap_or(false)
}

fn link_named(name: Option<&str>) -> anyhow::Result<Status> {
    Ok(control::status(&live::socket(name)?)?)
}

/// All links of this machine that answer.
fn running() -> Vec<Status> {
    let sockets = control::sockets().unwrap_or_default();
    sockets
        .iter()
        .filter_map(|socket| control::status(socket).ok())
        .collect()
}

/// The other end's address inside the link.
fn search(link: &Status, port: u16) -> anyhow::Result<IpAddr> {
    let Status { name, tun, .. } = link;
    if link.peers.len() > 1 {
        let text = format!(
            "the link {name} has several peers: give the address of one of them in the link, such as \
             10.7.0.2"
        );
        return Err(BadInput(text).into());
    }
    let found = find_server(&tun.name, port)
        .with_context(|| format!("cannot look for the other end of the link {name}"))?;
    found.ok_or_else(|| {
        anyhow!(
            "nobody answers on the link {name}: run `airlane test --serve` at its other end, or give that \
             end's address in the link"
        )
    })
}

/// Adds advice to an error.
fn explain(error: ProbeError, ways: &Ways, args: &TestArgs) -> anyhow::Error {
    let help = match &error {
        ProbeError::NoServer { at, .. } => match &ways.link {
            Some(_) => "run `airlane test --serve` there".to_owned(),
            None => format!("run `airlane test --serve {}` there", at.ip()),
        },
        ProbeError::NoPath { at } if Some(at.ip()) == ways.before => {
            let file = args.file_port;
            let other = match ways.after {
                Some(_) => "; --after measures the link alone",
                None => "",
            };
            format!(
                "on the plain path firewalls must let TCP {file} and {}, UDP {file} and {} pass to that end \
                 while it serves, unless it was given other ports{other}",
                args.pages_port, args.voice_port
            )
        }
        ProbeError::NoPath { .. } => "see `airlane status`".to_owned(),
        ProbeError::Port { .. } => {
            "stop what uses it, or let the other end serve with another --voice-port".to_owned()
        }
        // The server explains it in its own words.
        ProbeError::Refused { .. } => return anyhow!(output::plain(&error.to_string())),
        _ => return error.into(),
    };
    anyhow!("{error}: {help}")
}

fn progress(steps: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::hidden());
    if output::is_watched() {
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.enable_steady_tick(Duration::from_secs(1));
    }
    if let Ok(style) = ProgressStyle::with_template("{bar:20} {pos}/{len}, {eta} left: {msg}") {
        bar.set_style(style);
    }
    bar
}

fn show(bar: &ProgressBar, step: LinkTestStep<'_>) {
    let path = match step.path {
        TestedPath::Before => "before",
        TestedPath::After => "after",
    };
    let apps: Vec<_> = step.apps.iter().map(|app| app.name()).collect();
    // Before the first run there is no bar to complete.
    if !bar.message().is_empty() {
        bar.inc(1);
    }
    bar.set_message(format!("{path}, {}", apps.join(" and ")));
}

/// Runs `airlane test --serve`.
fn answer(args: &TestArgs) -> anyhow::Result<()> {
    let peer = args.peer.as_deref();
    let (accept_from, what) = match peer.and_then(|peer| peer.parse().ok()) {
        Some(address) => {
            let what = format!("any host that reaches {address}");
            (AcceptFrom::Address(address), what)
        }
        None => {
            let link = link_named(peer.or(args.link.as_deref()))?;
            if link.underlay.security == "none" {
                output::warn(&format!(
                    "the link {} has no keys: its peer is unauthenticated",
                    link.name
                ));
            }
            let what = format!("the peers of the link {}", link.name);
            (AcceptFrom::Interface(link.tun.name), what)
        }
    };
    let config = ServerConfig {
        ports: ServerPorts {
            control: args.port,
            file: args.file_port,
            pages: args.pages_port,
            voice: args.voice_port,
        },
        lifetime: Duration::from_nanos(args.lifetime.as_nanos()),
        most_bytes: args.max_size.as_bytes(),
        ..ServerConfig::new(accept_from)
    };
    let mut signal = stop_on_signals().context("cannot wait for signals")?;
    let stop = Arc::new(AtomicBool::new(false));
    std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            // The thread ends with the process, too.
            let _ = signal.read(&mut [0]);
            stop.store(true, Ordering::Relaxed);
        }
    });
    let tell = |event: ServerEvent<'_>| {
        // A closed output does not stop the server.
        let _ = output::print(&(told(&what, event) + "\n"));
    };
    serve(&config, &stop, &tell).map_err(|error| port_help(error, args))
}

/// The line for an event; it may contain text from a client.
fn told(what: &str, event: ServerEvent<'_>) -> String {
    output::plain(&match event {
        ServerEvent::Ready(ports) => format!(
            "answering tests for {what}: control TCP {}; TCP {file} and {}, UDP {file} and {}; \
                 Ctrl-C ends",
            ports.control,
            ports.pages,
            ports.voice,
            file = ports.file
        ),
        ServerEvent::Begun { client, times } => {
            format!("{client}: a test of {} s begins", times.total().as_secs())
        }
        ServerEvent::Ended {
            client,
            error: None,
        } => format!("{client}: done"),
        ServerEvent::Ended {
            client,
            error: Some(error),
        } => format!("{client}: ended early: {error}"),
        ServerEvent::Refused { client, why } => format!("{client}: refused: {why}"),
    })
}

/// Adds advice to the error of a port that cannot be opened.
fn port_help(error: ServeError, args: &TestArgs) -> anyhow::Error {
    let option = match error.port {
        port if port == args.pages_port => "--pages-port",
        port if port == args.file_port => "--file-port",
        port if port == args.voice_port => "--voice-port",
        _ => "--port",
    };
    let help = match error.source.kind() {
        std::io::ErrorKind::AddrInUse => format!(
            "stop what uses it, or choose another port, one that the link's classes treat alike: {option}"
        ),
        std::io::ErrorKind::PermissionDenied => {
            format!("run it as root, or choose a port above 1023: {option}")
        }
        _ => return error.into(),
    };
    anyhow!("{error}: {help}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVIL: &str = "\u{1b}]0;owned\u{7}\u{9b}2J\r";

    #[test]
    fn control_characters_from_the_server_are_escaped() {
        let client = [10, 7, 0, 2].into();
        let refused = told("whoever", ServerEvent::Refused { client, why: EVIL });
        let ways = Ways {
            link: None,
            control: client,
            before: None,
            after: None,
        };
        let args = <TestArgs as clap::Args>::augment_args(clap::Command::new("test"));
        let args = args.get_matches_from(["test", "10.7.0.2"]);
        let args = <TestArgs as clap::FromArgMatches>::from_arg_matches(&args).unwrap();
        let error = ProbeError::Refused {
            at: (client, 4999).into(),
            why: EVIL.to_owned(),
        };
        for text in [refused, explain(error, &ways, &args).to_string()] {
            assert!(
                text.contains("refuse") && text.contains("owned"),
                "{text:?}"
            );
            assert!(!text.contains(char::is_control), "{text:?}");
        }
    }
}
