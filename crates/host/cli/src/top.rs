//! `airlane top`: a screen that shows every second what each service of a running link does. With
//! several peers, each has a line, and the services of one of them are shown below.

mod heights;
mod layout;

use std::cell;
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::Path;
use std::time::{Duration, Instant};

use airlane_link::classify::FlowStatus;
use airlane_live::control;
use airlane_live::status::{PeerFlows, PeerStatus, ServiceReport, Status};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Sparkline, Table, TableState, Wrap};

use crate::fault::BadInput;
use crate::quantity::{Estimate, Unit};
use heights::Heights;
use layout::{rows_of, table};

const EVERY: Duration = Duration::from_secs(1);
/// Length of the rate graphs, samples.
const HISTORY: usize = 120;

/// What is on the screen.
#[derive(Default)]
struct View {
    now: Option<Status>,
    before: Option<Status>,
    /// Bits per second sent and delivered, by peer and service, the newest last.
    rates: BTreeMap<(String, u8), [Vec<u64>; 2]>,
    /// Index of the peer whose services are shown.
    chosen: usize,
    /// How many of its services are scrolled off the top, and how many had room at the last
    /// drawing.
    passed: usize,
    page: cell::Cell<usize>,
    /// The flows of each peer, if they are shown.
    flows: Option<Vec<PeerFlows>>,
    /// Why there is no newer status.
    problem: Option<String>,
    /// Whether to use colours.
    colours: bool,
}

/// Runs `airlane top`.
pub(crate) fn top(socket: &Path) -> anyhow::Result<()> {
    if !std::io::stdout().is_terminal() {
        let text = "a screen needs a terminal; `airlane status --watch` prints lines";
        return Err(BadInput(text.to_owned()).into());
    }
    let mut view = View {
        // The first answer decides: without a node there is nothing to show.
        now: Some(control::status(socket)?),
        colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        ..View::default()
    };
    let mut terminal = ratatui::try_init()?;
    let ended = loop {
        if let Err(error) = terminal.draw(|frame| view.draw(frame)) {
            break Err(error.into());
        }
        match wait_for_key() {
            Ok(Key::End) => break Ok(()),
            Ok(Key::Choose(step)) => view.choose(step),
            Ok(Key::Page) => view.turn_page(),
            Ok(Key::Flows) => {
                let hidden = view.flows.is_none();
                view.flows = hidden.then(Vec::new);
                view.ask(socket);
            }
            Ok(Key::None) => view.ask(socket),
            Err(error) => break Err(error.into()),
        }
    };
    ratatui::try_restore()?;
    ended
}

/// A command of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    End,
    /// Selects the peer this many places further down.
    Choose(isize),
    /// Scrolls to the services that have no room, and from the last back to the first.
    Page,
    /// Switches between flows and rates.
    Flows,
    /// No key: the next status is due.
    None,
}

/// Waits for a key, but at most until the next status is due.
fn wait_for_key() -> std::io::Result<Key> {
    let turn = Instant::now() + EVERY;
    loop {
        let left = turn.saturating_duration_since(Instant::now());
        if !event::poll(left)? {
            return Ok(Key::None);
        }
        match event::read()? {
            Event::Key(key) => {
                let control_c =
                    key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
                match key.code {
                    _ if control_c => return Ok(Key::End),
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(Key::End),
                    KeyCode::Char('f') => return Ok(Key::Flows),
                    KeyCode::PageDown | KeyCode::Char(' ') => return Ok(Key::Page),
                    KeyCode::Down | KeyCode::Right | KeyCode::Tab => return Ok(Key::Choose(1)),
                    KeyCode::Up | KeyCode::Left | KeyCode::BackTab => return Ok(Key::Choose(-1)),
                    _ => {}
                }
            }
            Event::Resize(..) => return Ok(Key::Choose(0)),
            _ => {}
        }
    }
}

impl View {
    /// Asks the node for everything that is shown.
    fn ask(&mut self, socket: &Path) {
        self.take(control::status(socket).map_err(|error| error.to_string()));
        if self.flows.is_some() {
            match control::flows(socket) {
                Ok(flows) => self.flows = Some(flows),
                Err(error) => self.problem = Some(error.to_string()),
            }
        }
    }

    fn take(&mut self, status: Result<Status, String>) {
        let status = match status {
            Ok(status) => status,
            Err(problem) => {
                self.problem = Some(problem);
                return;
            }
        };
        self.problem = None;
        self.before = self.now.replace(status);
        let Some((now, before, seconds)) = self.turn() else {
            return;
        };
        let mut new = Vec::new();
        for peer in &now.peers {
            let before = peer_of(before, peer);
            for service in &peer.services {
                let rate = |of| before.map_or(0.0, |b| rate(service, b, seconds, of)) as u64;
                let at = (peer.name.clone(), service.number);
                new.push((at, [rate(sent_bytes), rate(delivered_bytes)]));
            }
        }
        // Rates of peers and services that no longer exist are removed.
        self.rates
            .retain(|at, _| new.iter().any(|(known, _)| known == at));
        for (at, rates) in new {
            for (line, rate) in self.rates.entry(at).or_default().iter_mut().zip(rates) {
                line.push(rate);
                let old = line.len().saturating_sub(HISTORY);
                line.drain(..old);
            }
        }
    }

    fn choose(&mut self, step: isize) {
        let peers = self.now.as_ref().map_or(0, |status| status.peers.len());
        let chosen = self.chosen.min(peers.saturating_sub(1));
        let wrapped = (chosen as isize + step).rem_euclid(peers.max(1) as isize);
        (self.chosen, self.passed) = (wrapped as usize, 0);
    }

    fn turn_page(&mut self) {
        let peer = self.now.as_ref().and_then(|now| now.peers.get(self.chosen));
        let services = peer.map_or(0, |peer| peer.services.len());
        let next = self.passed + self.page.get().max(1);
        self.passed = if next < services { next } else { 0 };
    }

    /// The last two statuses of the same run of the node, and the seconds between them.
    fn turn(&self) -> Option<(&Status, &Status, f64)> {
        let (now, before) = (self.now.as_ref()?, self.before.as_ref()?);
        let ns = now.uptime_ns.checked_sub(before.uptime_ns)?;
        (ns > 0).then_some((now, before, ns as f64 / 1e9))
    }

    fn style(&self, colour: Color) -> Style {
        match self.colours {
            true => Style::new().fg(colour),
            false => Style::new(),
        }
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let Some(status) = &self.now else {
            return;
        };
        let chosen = self.chosen.min(status.peers.len().saturating_sub(1));
        let Some(peer) = status.peers.get(chosen) else {
            return;
        };
        let several = status.peers.len() > 1;
        let Rect { width, height, .. } = frame.area();
        let heading = self.head(status, peer);
        let rows = |lines: &[Line<'_>]| lines.iter().map(|line| rows_of(line, width)).sum();
        let flows = self.flows.as_ref().map(|flows| {
            let of_peer = flows.iter().find(|flows| flows.peer == peer.name);
            of_peer.map_or(&[][..], |flows| &flows.flows)
        });
        let listed = if several { status.peers.len() } else { 0 };
        let fit = |foot| {
            let all = (listed, peer.services.len(), flows.map(<[_]>::len));
            Heights::fit(height, (rows(&heading), foot), all)
        };
        let one_line = fit(1);
        let foot = [self.foot(peer, &one_line, several)];
        let heights = match rows(&foot) {
            1 => one_line,
            more => fit(more),
        };
        let foot = self.foot(peer, &heights, several);
        self.page.set(heights.services());
        let [head, peers, to, from, lines, below] = Layout::vertical([
            Constraint::Length(heights.head),
            Constraint::Length(heights.list),
            Constraint::Length(heights.table),
            Constraint::Length(heights.table),
            Constraint::Fill(1),
            Constraint::Length(heights.foot),
        ])
        .areas(frame.area());
        frame.render_widget(Paragraph::new(heading).wrap(Wrap { trim: true }), head);
        if several {
            let mut state = TableState::new().with_selected(chosen);
            frame.render_stateful_widget(self.peers(status, width), peers, &mut state);
        }
        let who = match several {
            true => peer.name.as_str(),
            false => "the peer",
        };
        let services = self.shown(peer, &heights);
        frame.render_widget(self.sent(peer, services, who, width), to);
        frame.render_widget(self.received(peer, services, who, width), from);
        match flows {
            Some(flows) => frame.render_widget(flow_table(flows, width), lines),
            None => self.draw_lines(peer, who, frame, lines),
        }
        frame.render_widget(Paragraph::new(foot).wrap(Wrap { trim: true }), below);
    }

    /// The services for which there is room.
    fn shown<'a>(&self, peer: &'a PeerStatus, heights: &Heights) -> &'a [ServiceReport] {
        let (all, room) = (&peer.services, heights.services());
        let from = self.passed.min(all.len().saturating_sub(room));
        &all[from..all.len().min(from + room)]
    }

    /// What there is no room for, and which keys there are.
    fn foot(&self, peer: &PeerStatus, heights: &Heights, several: bool) -> Line<'static> {
        if let Some(problem) = &self.problem {
            return Line::styled(problem.clone(), self.style(Color::Red));
        }
        let mut parts = Vec::new();
        let (shown, all) = (self.shown(peer, heights).len(), peer.services.len());
        match shown {
            0 => parts.push(format!("no room for {all} services")),
            _ if shown < all => {
                parts.push(format!("{shown} of {all} services: space shows the next"));
            }
            _ => {}
        }
        let missing = [(heights.peers, "peers"), (heights.flows, "flows")];
        for (missing, what) in missing.into_iter().filter(|(missing, _)| *missing > 0) {
            parts.push(format!("no room for {missing} more {what}"));
        }
        if several {
            parts.push("arrows choose a peer".to_owned());
        }
        let flows = match self.flows {
            Some(_) => "f hides flows",
            None => "f shows flows",
        };
        parts.extend([flows, "q ends"].map(str::to_owned));
        Line::from(parts.join(", "))
    }

    fn state(&self, peer: &PeerStatus) -> Style {
        match &*peer.session.state {
            "confirmed" => self.style(Color::Green),
            "refused" | "disconnected" | "unheard" => self.style(Color::Red),
            _ => self.style(Color::Yellow),
        }
    }

    fn head(&self, status: &Status, peer: &PeerStatus) -> Vec<Line<'static>> {
        let (session, underlay) = (&peer.session, &status.underlay);
        let strong = Style::new().add_modifier(Modifier::BOLD);
        let up = format!(", up for {}, ", seconds(status.uptime_ns));
        let mut first = Line::from(vec![
            Span::styled(status.name.clone(), strong),
            Span::raw(up),
        ]);
        let (to, rate) = match status.peers.len() {
            1 => {
                first.push_span(Span::raw("session "));
                first.push_span(Span::styled(session.state.clone(), self.state(peer)));
                first.push_span(Span::raw(session.rtt_ns.map_or(String::new(), |rtt| {
                    format!(", round trip {}", seconds(rtt))
                })));
                let to = format!(" -> {}", crate::status::peer_name(peer.address));
                (to, crate::status::rate(peer))
            }
            peers => {
                let confirmed = status.peers.iter();
                let confirmed = confirmed.filter(|p| p.session.state == "confirmed").count();
                first.push_span(Span::raw(format!("{confirmed} of {peers} peers confirmed")));
                (String::new(), crate::status::at_most(underlay.rate_bps))
            }
        };
        let second = Line::from(format!(
            "{} (MTU {} B) over {}{to}, {rate}, security {}",
            status.tun.name,
            status.tun.mtu_bytes,
            crate::status::here(underlay),
            underlay.security
        ));
        let drops = status.all_drops();
        let dropped: u64 = drops.values().sum();
        let mut third = Line::from(format!("{dropped} dropped outside of the services"));
        if let Some((reason, count)) = drops.iter().max_by_key(|(_, count)| **count) {
            third.push_span(Span::raw(format!(", most of them {reason} ({count})")));
        }
        vec![first, second, third]
    }

    /// One line for each peer.
    fn peers(&self, status: &Status, width: u16) -> Table<'static> {
        let heads = [
            ("peer", 0),
            ("session", 1),
            ("weight", 9),
            ("to now", 2),
            ("from now", 3),
            ("waiting", 6),
            ("repairs", 7),
            ("lost", 4),
            ("dropped", 5),
            ("round trip", 8),
        ];
        let rows = status.peers.iter().map(|peer| {
            let sum = |of: fn(&ServiceReport) -> u64| peer.services.iter().map(of).sum::<u64>();
            vec![
                Span::from(peer.name.clone()),
                Span::styled(peer.session.state.clone(), self.state(peer)),
                Span::from(peer.weight.to_string()),
                Span::from(self.all_now(peer, sent_bytes)),
                Span::from(self.all_now(peer, delivered_bytes)),
                Span::from(sum(|s| s.queue_packets as u64).to_string()),
                Span::from(sum(|s| s.ledger.repair_frames_sent).to_string()),
                self.alarm(sum(|s| s.ledger.residual_lost), Color::Red),
                self.alarm(peer.drops.values().sum(), Color::Yellow),
                Span::from(peer.session.rtt_ns.map_or("-".to_owned(), seconds)),
            ]
        });
        let chosen = Style::new().add_modifier(Modifier::REVERSED);
        table(&heads, rows.collect(), width).row_highlight_style(chosen)
    }

    /// The sum over all services of a peer now.
    fn all_now(&self, peer: &PeerStatus, of: fn(&ServiceReport) -> u64) -> String {
        let then = self.turn().and_then(|(_, before, seconds)| {
            let before = peer_of(before, peer)?;
            Some((before, seconds))
        });
        then.map_or("-".to_owned(), |(before, seconds)| {
            let services = peer.services.iter();
            let all = services.map(|service| rate(service, before, seconds, of));
            show(all.sum(), Unit::BitsPerSecond)
        })
    }

    fn sent(
        &self,
        peer: &PeerStatus,
        services: &[ServiceReport],
        who: &str,
        width: u16,
    ) -> Table<'static> {
        let whose = format!("to {who}");
        let heads = [
            (&*whose, 0),
            ("scheme", 8),
            ("now", 1),
            ("offered", 9),
            ("sent", 4),
            ("dropped", 2),
            ("waiting", 5),
            ("repairs", 3),
            ("cost", 6),
            ("round trip", 7),
        ];
        let rows = services.iter().map(|service| {
            let ledger = &service.ledger;
            let dropped = ledger.packets_dropped();
            let more = ledger.repair_frame_bytes + ledger.control_frame_bytes;
            let all = ledger.frame_sent_bytes;
            vec![
                Span::from(format!("{} {}", service.number, service.name)),
                Span::from(service.scheme.clone()),
                Span::from(self.now(peer, service, sent_bytes)),
                Span::from(ledger.packets_offered.to_string()),
                Span::from(ledger.packets_sent.to_string()),
                self.alarm(dropped, Color::Yellow),
                Span::from(service.queue_packets.to_string()),
                Span::from(ledger.repair_frames_sent.to_string()),
                Span::from(ratio((all > 0).then(|| more as f64 / all as f64))),
                Span::from(service.srtt_ns.map_or("-".to_owned(), seconds)),
            ]
        });
        table(&heads, rows.collect(), width)
    }

    fn received(
        &self,
        peer: &PeerStatus,
        services: &[ServiceReport],
        who: &str,
        width: u16,
    ) -> Table<'static> {
        let whose = format!("from {who}");
        let heads = [
            (&*whose, 0),
            ("scheme", 9),
            ("now", 1),
            ("delivered", 4),
            ("recovered", 3),
            ("late", 8),
            ("given up", 7),
            ("lost", 2),
            ("loss", 5),
            ("delay", 6),
        ];
        let rows = services.iter().map(|service| {
            let ledger = &service.ledger;
            let delay = service.metrics.delay_s;
            vec![
                Span::from(format!("{} {}", service.number, service.name)),
                Span::from(service.scheme.clone()),
                Span::from(self.now(peer, service, delivered_bytes)),
                Span::from(ledger.packets_delivered.to_string()),
                Span::from(ledger.packets_recovered.to_string()),
                Span::from(ledger.late.to_string()),
                Span::from(ledger.given_up.to_string()),
                self.alarm(ledger.residual_lost, Color::Red),
                Span::from(ratio(service.metrics.loss)),
                Span::from(delay.map_or("-".to_owned(), |d| show(d, Unit::Seconds))),
            ]
        });
        table(&heads, rows.collect(), width)
    }

    /// A count that should be zero.
    fn alarm(&self, count: u64, colour: Color) -> Span<'static> {
        let style = match count {
            0 => Style::new(),
            _ => self.style(colour),
        };
        Span::styled(count.to_string(), style)
    }

    fn now(
        &self,
        peer: &PeerStatus,
        service: &ServiceReport,
        of: fn(&ServiceReport) -> u64,
    ) -> String {
        let then = self.turn().and_then(|(_, before, seconds)| {
            let before = peer_of(before, peer)?;
            Some(rate(service, before, seconds, of))
        });
        then.map_or("-".to_owned(), |rate| show(rate, Unit::BitsPerSecond))
    }

    /// Graphs of each service's rate in both directions, the newest sample on the right.
    fn draw_lines(&self, peer: &PeerStatus, who: &str, frame: &mut Frame<'_>, area: Rect) {
        let each = peer.services.iter().map(|_| Constraint::Fill(1));
        let places = Layout::vertical(each).split(area);
        for (service, place) in peer.services.iter().zip(places.iter()) {
            if place.height < 2 {
                continue;
            }
            let halves =
                Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).split(*place);
            let rates = self.rates.get(&(peer.name.clone(), service.number));
            for (way, (half, word)) in halves.iter().zip(["to", "from"]).enumerate() {
                let all: &[u64] = rates.map_or(&[], |rates| &rates[way]);
                let shown = &all[all.len().saturating_sub(usize::from(half.width))..];
                let most = shown.iter().max().copied().unwrap_or_default();
                let most = show(most as f64, Unit::BitsPerSecond);
                let title = format!("{} {word} {who}, highest {most}", service.name);
                let title = match title.len() > half.width.into() {
                    true => format!("{} {word}, highest {most}", service.name),
                    false => title,
                };
                let line = Sparkline::default()
                    .block(Block::new().title(title))
                    .style(self.style(Color::Cyan))
                    .data(shown);
                frame.render_widget(line, *half);
            }
        }
    }
}

/// Which service each flow uses, and why.
fn flow_table(flows: &[FlowStatus], width: u16) -> Table<'static> {
    let heads = [
        ("here", 0),
        ("there", 1),
        ("protocol", 7),
        ("behaves as", 3),
        ("on", 2),
        ("sent", 5),
        ("received", 6),
        ("why", 4),
    ];
    let bytes = |bytes: u64| Span::from(show(bytes as f64, Unit::Bytes));
    let rows = flows.iter().map(|flow| {
        vec![
            Span::from(flow.here.clone()),
            Span::from(flow.there.clone()),
            Span::from(flow.protocol.clone()),
            Span::from(flow.behaviour.name()),
            Span::from(flow.service.clone().unwrap_or_else(|| "-".to_owned())),
            bytes(flow.sent_bytes),
            bytes(flow.received_bytes),
            Span::from(flow.why.clone()),
        ]
    });
    table(&heads, rows.collect(), width)
}

fn sent_bytes(service: &ServiceReport) -> u64 {
    service.ledger.sent_bytes
}

fn delivered_bytes(service: &ServiceReport) -> u64 {
    service.ledger.delivered_bytes
}

/// Finds a peer in another status of the node.
fn peer_of<'a>(status: &'a Status, peer: &PeerStatus) -> Option<&'a PeerStatus> {
    status.peers.iter().find(|p| p.name == peer.name)
}

/// Bits per second since the earlier status.
fn rate(
    service: &ServiceReport,
    before: &PeerStatus,
    seconds: f64,
    of: fn(&ServiceReport) -> u64,
) -> f64 {
    let then = before.services.iter().find(|s| s.number == service.number);
    of(service).saturating_sub(then.map_or(0, of)) as f64 * 8.0 / seconds
}

fn show(value: f64, unit: Unit) -> String {
    Estimate::single(value).show(unit).to_string()
}

fn seconds(ns: u64) -> String {
    show(ns as f64 / 1e9, Unit::Seconds)
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |r| show(r, Unit::Ratio))
}

#[cfg(test)]
mod tests;
