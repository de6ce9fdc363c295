//! `airlane top`: a screen of what each service of a running link does, every second. Of several peers
//! each has a line, and one of them its services below.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::Path;
use std::time::{Duration, Instant};

use airlane_live::control;
use airlane_live::status::{PeerStatus, ServiceReport, Status};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table, TableState};

use crate::input::BadInput;
use crate::quantity::{Estimate, Unit};

const EVERY: Duration = Duration::from_secs(1);
/// How far back the lines of a service's rate go.
const HISTORY: usize = 120;

/// What is on the screen.
#[derive(Default)]
struct View {
    now: Option<Status>,
    before: Option<Status>,
    /// Bits per second sent and delivered, by peer and service, the newest last.
    rates: BTreeMap<(String, u8), [Vec<u64>; 2]>,
    /// Which peer's services are shown, by its place in the list.
    chosen: usize,
    /// Why there is nothing newer.
    problem: Option<String>,
    /// Whether colours are wanted.
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
            Ok(Key::None) => view.take(control::status(socket).map_err(|error| error.to_string())),
            Err(error) => break Err(error.into()),
        }
    };
    ratatui::try_restore()?;
    ended
}

/// What the user wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    End,
    /// The peer so many places further down.
    Choose(isize),
    /// Nothing: time for the next answer.
    None,
}

/// Waits for a key, and for the next turn at most.
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
        // Those of peers and services that are gone.
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
        self.chosen = wrapped as usize;
    }

    /// The last two answers of one run of the node, and the time between them.
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
        let rows = peer.services.len() as u16 + 3;
        let list = match several {
            // Far more than a third of the screen would leave nothing for the services.
            true => (status.peers.len() as u16 + 2).min(frame.area().height / 3),
            false => 0,
        };
        let [head, peers, to, from, lines, foot] = Layout::vertical([
            Constraint::Length(3),
            Constraint::Length(list),
            Constraint::Length(rows),
            Constraint::Length(rows),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(self.head(status, peer), head);
        if several {
            let mut state = TableState::new().with_selected(chosen);
            frame.render_stateful_widget(self.peers(status), peers, &mut state);
        }
        frame.render_widget(self.sent(peer), to);
        frame.render_widget(self.received(peer), from);
        self.draw_lines(peer, frame, lines);
        let text = match &self.problem {
            Some(problem) => Line::styled(problem.clone(), self.style(Color::Red)),
            None if several => Line::from("arrows choose a peer, q ends"),
            None => Line::from("q ends"),
        };
        frame.render_widget(text, foot);
    }

    fn state(&self, peer: &PeerStatus) -> Style {
        match peer.session.state.as_str() {
            "confirmed" => self.style(Color::Green),
            "refused" | "disconnected" => self.style(Color::Red),
            _ => self.style(Color::Yellow),
        }
    }

    fn head(&self, status: &Status, peer: &PeerStatus) -> Paragraph<'static> {
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
                let rate = show(underlay.rate_bps as f64, Unit::BitsPerSecond);
                (String::new(), rate)
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
        Paragraph::new(vec![first, second, third])
    }

    /// One line for each peer.
    fn peers(&self, status: &Status) -> Table<'static> {
        let heads = [
            "peer",
            "session",
            "weight",
            "to now",
            "from now",
            "waiting",
            "repairs",
            "lost",
            "dropped",
            "round trip",
        ];
        let rows = status.peers.iter().map(|peer| {
            let sum = |of: fn(&ServiceReport) -> u64| peer.services.iter().map(of).sum::<u64>();
            Row::new(vec![
                Cell::from(peer.name.clone()),
                Cell::from(peer.session.state.clone()).style(self.state(peer)),
                Cell::from(peer.weight.to_string()),
                Cell::from(self.all_now(peer, sent_bytes)),
                Cell::from(self.all_now(peer, delivered_bytes)),
                Cell::from(sum(|s| s.queue_packets as u64).to_string()),
                Cell::from(sum(|s| s.ledger.repair_frames_sent).to_string()),
                self.alarm(sum(|s| s.ledger.residual_lost), Color::Red),
                self.alarm(peer.drops.values().sum(), Color::Yellow),
                Cell::from(peer.session.rtt_ns.map_or("-".to_owned(), seconds)),
            ])
        });
        let chosen = Style::new().add_modifier(Modifier::REVERSED);
        table(&heads, rows.collect()).row_highlight_style(chosen)
    }

    /// What all services of a peer carry now.
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

    fn sent(&self, peer: &PeerStatus) -> Table<'static> {
        let heads = [
            "to the peer",
            "scheme",
            "now",
            "offered",
            "sent",
            "dropped",
            "waiting",
            "repairs",
            "cost",
            "round trip",
        ];
        let rows = peer.services.iter().map(|service| {
            let ledger = &service.ledger;
            let dropped = ledger.packets_dropped();
            let more = ledger.repair_frame_bytes + ledger.control_frame_bytes;
            let all = ledger.frame_sent_bytes;
            Row::new(vec![
                Cell::from(format!("{} {}", service.number, service.name)),
                Cell::from(service.scheme.clone()),
                Cell::from(self.now(peer, service, sent_bytes)),
                Cell::from(ledger.packets_offered.to_string()),
                Cell::from(ledger.packets_sent.to_string()),
                self.alarm(dropped, Color::Yellow),
                Cell::from(service.queue_packets.to_string()),
                Cell::from(ledger.repair_frames_sent.to_string()),
                Cell::from(ratio((all > 0).then(|| more as f64 / all as f64))),
                Cell::from(service.srtt_ns.map_or("-".to_owned(), seconds)),
            ])
        });
        table(&heads, rows.collect())
    }

    fn received(&self, peer: &PeerStatus) -> Table<'static> {
        let heads = [
            "from the peer",
            "scheme",
            "now",
            "delivered",
            "recovered",
            "late",
            "given up",
            "lost",
            "loss",
            "delay",
        ];
        let rows = peer.services.iter().map(|service| {
            let ledger = &service.ledger;
            let delay = service.metrics.delay_s;
            Row::new(vec![
                Cell::from(format!("{} {}", service.number, service.name)),
                Cell::from(service.scheme.clone()),
                Cell::from(self.now(peer, service, delivered_bytes)),
                Cell::from(ledger.packets_delivered.to_string()),
                Cell::from(ledger.packets_recovered.to_string()),
                Cell::from(ledger.late.to_string()),
                Cell::from(ledger.given_up.to_string()),
                self.alarm(ledger.residual_lost, Color::Red),
                Cell::from(ratio(service.metrics.loss)),
                Cell::from(delay.map_or("-".to_owned(), |d| show(d, Unit::Seconds))),
            ])
        });
        table(&heads, rows.collect())
    }

    /// A number that should be zero.
    fn alarm(&self, count: u64, colour: Color) -> Cell<'static> {
        let style = match count {
            0 => Style::new(),
            _ => self.style(colour),
        };
        Cell::from(count.to_string()).style(style)
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

    /// Each service's rate in both directions, the newest on the right.
    fn draw_lines(&self, peer: &PeerStatus, frame: &mut Frame<'_>, area: ratatui::layout::Rect) {
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
                let title = format!("{} {word} the peer, at most {most}", service.name);
                let line = Sparkline::default()
                    .block(Block::new().title(title))
                    .style(self.style(Color::Cyan))
                    .data(shown);
                frame.render_widget(line, *half);
            }
        }
    }
}

fn table(heads: &[&'static str], rows: Vec<Row<'static>>) -> Table<'static> {
    let widths = heads.iter().enumerate().map(|(column, _)| match column {
        0 => Constraint::Min(14),
        _ => Constraint::Length(12),
    });
    let head = Row::new(heads.to_vec()).style(Style::new().add_modifier(Modifier::BOLD));
    Table::new(rows, widths).header(head.top_margin(1))
}

fn sent_bytes(service: &ServiceReport) -> u64 {
    service.ledger.sent_bytes
}

fn delivered_bytes(service: &ServiceReport) -> u64 {
    service.ledger.delivered_bytes
}

/// The same peer in another answer.
fn peer_of<'a>(status: &'a Status, peer: &PeerStatus) -> Option<&'a PeerStatus> {
    status.peers.iter().find(|p| p.name == peer.name)
}

/// Bits per second since the status before.
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
mod tests {
    use super::*;
    use airlane_live::status::{PeerStatus, SessionReport, TunReport, UnderlayReport};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn status(at_s: u64, sent_bytes: u64) -> Status {
        let service = ServiceReport {
            number: 1,
            name: "files".to_owned(),
            scheme: "sr-m2".to_owned(),
            rate: 1.0,
            draining: false,
            waiting: false,
            queue_packets: 17,
            queue_bytes: 0,
            srtt_ns: Some(52_000_000),
            ledger: airlane_link::ServiceLedger {
                sent_bytes,
                frame_sent_bytes: 1000,
                repair_frame_bytes: 40,
                control_frame_bytes: 10,
                residual_lost: 3,
                ..Default::default()
            },
            metrics: airlane_link::ServiceMetrics::default(),
            peer: None,
            effective_goodput: None,
        };
        let peer = PeerStatus {
            name: "farm".to_owned(),
            address: "192.0.2.7:7007".parse().ok(),
            key: None,
            keys_age_ns: None,
            prefixes: Vec::new(),
            weight: 2.0,
            rate_bps: 20_000_000,
            sending_rate_bps: 12_000_000,
            path_mtu_bytes: 1500,
            path_narrowed: 0,
            datagrams_sent: 0,
            sent_bytes: 0,
            datagrams_received: 0,
            received_bytes: 0,
            session: SessionReport {
                state: "confirmed".to_owned(),
                id: Some(1),
                epoch: "00".to_owned(),
                peer_epoch: None,
                age_ns: None,
                sessions: 1,
                disconnections: 0,
                disconnected_ns: None,
                rtt_ns: None,
                refused: None,
            },
            services: vec![service],
            drops: BTreeMap::from([("wrong-source".to_owned(), 1)]),
        };
        Status {
            schema: 2,
            version: "0".to_owned(),
            name: "hill-top".to_owned(),
            uptime_ns: at_s * 1_000_000_000,
            tun: TunReport {
                name: "air0".to_owned(),
                mtu_bytes: 1420,
                packets_read: 0,
                read_bytes: 0,
                packets_written: 0,
                written_bytes: 0,
                mss_clamped: 0,
            },
            underlay: UnderlayReport {
                listen: "0.0.0.0:7007".parse().unwrap(),
                interface: None,
                security: "noise-ik".to_owned(),
                secure: None,
                rate_bps: 20_000_000,
                frame_overhead_bytes: 42,
                datagrams_sent: 0,
                sent_bytes: 0,
                datagrams_received: 0,
                received_bytes: 0,
            },
            peers: vec![peer],
            drops: BTreeMap::from([("not-ip".to_owned(), 5)]),
        }
    }

    /// The same with a second peer that gets twice as much over a service of another name.
    fn two_peers(at_s: u64, sent_bytes: u64) -> Status {
        let mut both = status(at_s, sent_bytes);
        let mut mill = status(at_s, 2 * sent_bytes).peers.remove(0);
        (mill.name, mill.services[0].name) = ("mill".to_owned(), "pages".to_owned());
        both.peers.push(mill);
        both
    }

    #[test]
    fn of_several_peers_each_has_a_line_and_one_its_services() {
        let mut view = View::default();
        view.take(Ok(two_peers(10, 0)));
        view.take(Ok(two_peers(12, 500_000)));
        let farm = screen(&view, 130, 40);
        for part in [
            "2 of 2 peers confirmed",
            "farm",
            "mill",
            "4.00 Mbit/s",
            "1 files",
        ] {
            assert!(farm.contains(part), "{part}:\n{farm}");
        }
        assert!(!farm.contains("1 pages"), "{farm}");
        for (step, shown) in [(1, "1 pages"), (1, "1 files"), (-1, "1 pages")] {
            view.choose(step);
            let screen = screen(&view, 130, 40);
            assert!(screen.contains(shown), "{shown}:\n{screen}");
        }
        // The chosen one is gone.
        view.take(Ok(status(14, 500_000)));
        assert!(screen(&view, 130, 40).contains("1 files"));
    }

    fn screen(view: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn a_turn_shows_rates_costs_and_losses() {
        let mut view = View::default();
        view.take(Ok(status(10, 0)));
        view.take(Ok(status(12, 500_000)));
        let screen = screen(&view, 130, 30);
        for part in [
            "hill-top, up for 12.0 s, session confirmed",
            "20.0 Mbit/s, 12.0 Mbit/s now, security noise-ik",
            "6 dropped outside of the services, most of them not-ip (5)",
            "2.00 Mbit/s",
            "5.00 %",
            "52.0 ms",
            "files to the peer, at most 2",
        ] {
            assert!(screen.contains(part), "{part}:\n{screen}");
        }
        view.take(Err("no node answers".to_owned()));
        assert!(self::screen(&view, 130, 30).contains("no node answers"));
    }

    #[test]
    fn no_size_of_screen_and_no_restart_make_it_panic() {
        let mut view = View::default();
        for (at, sent) in [(10, 500_000), (11, 900_000), (1, 100), (2, 200)] {
            view.take(Ok(status(at, sent)));
            for (width, height) in [(1, 1), (20, 3), (80, 24), (300, 100)] {
                screen(&view, width, height);
            }
        }
    }
}
