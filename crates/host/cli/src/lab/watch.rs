//! Watches a live node: polls its status each second, keeps a history, and applies an advised file on request.
//!
//! ```text
//! page ──HTTP──► request thread ──► Seen ◄── polling thread ──control socket──► node
//! ```
//!
//! A request reads the latest status, so the number of open pages costs the node nothing. Only a reload is forwarded to
//! the node, which decides whether this program's user may make it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use airlane_base::config::Document;
use airlane_live::config::LiveConfig;
use airlane_live::control::{self, ControlError};
use airlane_live::doctor::{Check, standing};
use airlane_live::status::{PeerFlows, PeerStatus, Status};
use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::advice::{self, Advice, Advisor, Question, Reserved};
use super::guard::Token;
use super::history::{History, Line};
use super::http::{Answer, Head};
use crate::fault::BadInput;
use crate::{input, live, output, status};

/// The interval between two status requests.
const EVERY: Duration = Duration::from_secs(1);
/// How long after a page's last request the node's flows are polled as well.
const LOOKS: Duration = Duration::from_secs(5);
/// How many events are remembered.
const EVENTS: usize = 50;
/// Maximum length of a reload request, bytes.
const CHANGES: usize = 256 << 10;

/// The path of all requests about a node.
pub(super) const PREFIX: &str = "/node/";

/// The node to watch.
#[derive(Debug, PartialEq, Eq)]
struct Node {
    socket: PathBuf,
    /// Its file, if that is what was named.
    file: Option<PathBuf>,
}

impl Node {
    /// Finds a node by its file, or as `airlane status` does.
    fn find(named: &str) -> anyhow::Result<Self> {
        Ok(Self {
            socket: live::socket(Some(named))?,
            file: live::file(named).map(Path::to_owned),
        })
    }

    /// The advised file, as the node would read it.
    fn advised(&self, text: &str) -> anyhow::Result<LiveConfig> {
        let path = self.file.as_deref().unwrap_or(Path::new(""));
        let document = Document::parse(text, &path.display().to_string())?;
        Ok(input::live(&document, path)?)
    }
}

/// What the polling thread has seen.
#[derive(Default)]
struct Seen {
    /// The latest status.
    status: Option<Status>,
    /// Since when the node has not answered, and why not.
    away: Option<(Instant, String)>,
    /// Its flows, or why they are unknown.
    flows: Option<Result<Vec<PeerFlows>, String>>,
    history: History,
    happened: VecDeque<(Instant, String)>,
    /// The time of a page's last request.
    looked: Option<Instant>,
}

impl Seen {
    fn note(&mut self, at: Instant, what: String) {
        self.happened.push_front((at, what));
        self.happened.truncate(EVENTS);
    }

    /// Records the node's answer, `at_s` seconds after the watch began.
    fn take(&mut self, at: Instant, at_s: f64, said: Result<Status, ControlError>) {
        let now = match said {
            Ok(now) => now,
            Err(error) => {
                self.history.take(at_s, None);
                let why = error.to_string();
                match &mut self.away {
                    Some((_, known)) => *known = why,
                    None => {
                        self.note(at, format!("the node does not answer: {why}"));
                        self.away = Some((at, why));
                    }
                }
                return;
            }
        };
        self.history.take(at_s, Some(&now));
        if let Some((since, _)) = self.away.take() {
            let away = at.duration_since(since).as_secs();
            self.note(at, format!("the node answers again, after {away} s"));
        }
        let before = self.status.replace(now.clone());
        let Some(before) = before else { return };
        if now.uptime_ns < before.uptime_ns {
            self.note(at, "the node was started again".to_owned());
        }
        for peer in &now.peers {
            let was = before.peers.iter().find(|other| other.name == peer.name);
            let (name, is) = (&peer.name, &peer.session.state);
            match was.map(|was| &was.session.state) {
                None => self.note(at, format!("{name} is a new peer, its session is {is}")),
                Some(was) if was != is => {
                    self.note(at, format!("the session with {name} is {is}, was {was}"));
                }
                Some(_) => {}
            }
        }
        let gone = |peer: &&PeerStatus| now.peers.iter().all(|other| other.name != peer.name);
        for peer in before.peers.iter().filter(gone) {
            self.note(at, format!("{} is no peer any more", peer.name));
        }
    }
}

/// The answer to a page, each second.
#[derive(Serialize)]
struct State<'a> {
    /// The node's file, if it is known.
    file: Option<String>,
    socket: String,
    /// Seconds since the watch began.
    at_s: f64,
    away: Option<Away<'a>>,
    status: Option<&'a Status>,
    /// The head of `airlane status`.
    head: Option<String>,
    findings: Vec<Check>,
    /// Refused callers.
    callers: Vec<String>,
    /// The requested peer, or the first.
    peer: Option<Peer<'a>>,
    /// Why flows are unknown and changes are refused.
    read_only: Option<&'a str>,
    happened: Vec<Event<'a>>,
    advice: Advice,
}

#[derive(Serialize)]
struct Away<'a> {
    for_s: u64,
    why: &'a str,
}

#[derive(Serialize)]
struct Event<'a> {
    ago_s: u64,
    what: &'a str,
}

#[derive(Serialize)]
struct Peer<'a> {
    name: &'a str,
    /// Its part of `airlane status`.
    head: String,
    /// The loss of its packets before and after repair, since the start.
    losses: [Option<f64>; 2],
    flows: Option<&'a PeerFlows>,
    /// By the numbers of its services.
    history: Vec<Line<'a>>,
    /// The number of services without a history, of all peers.
    without_history: usize,
}

/// A request of the page.
pub(super) enum Call {
    /// The latest status, and details of this peer.
    State(Option<String>),
    /// Advice; the recordings are the body.
    Advise(Reserved),
    /// The changes that a reload of the advised file would make.
    DryRun,
    /// The reload, if it makes the changes that the page has shown.
    Reload,
}

/// The changes of a reload.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Changes {
    changes: Vec<String>,
}

/// The node, and what has been seen of it.
pub(super) struct Watch {
    node: Node,
    token: Token,
    begun: Instant,
    seen: Arc<Mutex<Seen>>,
    advisor: Advisor,
}

fn open(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    /// Starts to watch a node.
    pub(super) fn begin(named: &str) -> anyhow::Result<Self> {
        let watch = Self {
            node: Node::find(named)?,
            token: Token::draw().context("the system gives no random numbers")?,
            begun: Instant::now(),
            seen: Arc::default(),
            advisor: Advisor::default(),
        };
        let (socket, begun) = (watch.node.socket.clone(), watch.begun);
        let seen = Arc::clone(&watch.seen);
        let named = std::thread::Builder::new().name("watch".to_owned());
        let look = move || {
            loop {
                let said = control::status(&socket);
                let at = Instant::now();
                let looked = {
                    let mut seen = open(&seen);
                    seen.take(at, at.duration_since(begun).as_secs_f64(), said);
                    seen.looked
                };
                if looked.is_some_and(|looked| looked.elapsed() < LOOKS) {
                    let flows = control::flows(&socket).map_err(|error| error.to_string());
                    open(&seen).flows = Some(flows);
                }
                std::thread::sleep(EVERY.saturating_sub(at.elapsed()));
            }
        };
        named.spawn(look).context("cannot start a thread")?;
        Ok(watch)
    }

    /// The fragment of the page's address.
    pub(super) fn fragment(&self) -> String {
        self.token.fragment()
    }

    /// Checks the token of a request, and reads which call it is and the length of its body.
    pub(super) fn call(&self, head: &Head) -> Result<(Call, usize), Answer> {
        self.token.admits(head)?;
        let (call, most): (fn(&Self, &Head) -> Option<Call>, _) =
            match head.path.strip_prefix(PREFIX) {
                Some("state") => (|_, head| Some(Call::State(peer_in(&head.query))), 0),
                Some("advice") => (
                    |watch, _| watch.advisor.reserve().map(Call::Advise),
                    advice::LONGEST,
                ),
                Some("dry-run") => (|_, _| Some(Call::DryRun), 0),
                Some("reload") => (|_, _| Some(Call::Reload), CHANGES),
                _ => {
                    return Err(Answer::refused(
                        "404 Not Found",
                        "there is nothing of this name",
                    ));
                }
            };
        let method = if head.path.ends_with("/state") {
            "GET"
        } else {
            "POST"
        };
        if head.method != method {
            let why = format!("{} takes {method} and nothing else", head.path);
            return Err(Answer::refused("405 Method Not Allowed", why));
        }
        let length = head.body(most)?;
        let busy = || Answer::refused("409 Conflict", "other advice is being made: wait for it");
        Ok((call(self, head).ok_or_else(busy)?, length))
    }

    /// Answers a call.
    pub(super) fn answer(&self, call: Call, body: &[u8]) -> Answer {
        let done = match call {
            Call::State(peer) => return self.state(peer.as_deref()),
            Call::Advise(reserved) => self.advise(reserved, body),
            Call::DryRun => self.dry_run().map(|(_, changes)| changes),
            Call::Reload => self.reload(body),
        };
        match done {
            Ok(changes) => Answer::json(&Changes { changes }),
            Err(error) => Answer::refused("409 Conflict", output::with_causes(&error)),
        }
    }

    fn state(&self, peer: Option<&str>) -> Answer {
        let mut seen = open(&self.seen);
        let now = Instant::now();
        seen.looked = Some(now);
        let ago = |at: Instant| now.saturating_duration_since(at).as_secs();
        let status = seen.status.as_ref();
        let peers = || status.iter().flat_map(|status| &status.peers);
        let chosen = peers().find(|other| Some(&*other.name) == peer);
        let flows = seen.flows.as_ref();
        let known = flows.and_then(|flows| flows.as_ref().ok());
        let peer = chosen.or_else(|| peers().next());
        let peer = status.zip(peer).map(|(status, peer)| Peer {
            name: &peer.name,
            head: output::uncoloured(&status::peer_head(status, peer)),
            losses: peer.losses(),
            flows: known.and_then(|all| all.iter().find(|flows| flows.peer == peer.name)),
            history: seen.history.of(&peer.name).collect(),
            without_history: seen.history.left_out(),
        });
        let away = seen.away.as_ref();
        let refused = flows.and_then(|flows| flows.as_ref().err());
        Answer::json(&State {
            file: self
                .node
                .file
                .as_ref()
                .map(|path| path.display().to_string()),
            socket: self.node.socket.display().to_string(),
            at_s: now.duration_since(self.begun).as_secs_f64(),
            away: away.map(|(since, why)| Away {
                for_s: ago(*since),
                why,
            }),
            status,
            head: status.map(|status| output::uncoloured(&status::head(status))),
            findings: status.map(standing).unwrap_or_default(),
            callers: status.map(status::callers).unwrap_or_default(),
            peer,
            // The page says instead that the node is away.
            read_only: refused.filter(|_| away.is_none()).map(String::as_str),
            happened: (seen.happened.iter())
                .map(|(at, what)| Event {
                    ago_s: ago(*at),
                    what,
                })
                .collect(),
            advice: self.advisor.advice(),
        })
    }

    fn advise(&self, reserved: Reserved, body: &[u8]) -> anyhow::Result<Vec<String>> {
        let question = Question::read(body, self.node.file.as_deref());
        reserved.answer(question)?;
        Ok(Vec::new())
    }

    /// The advised file, and the changes that a reload of it would make.
    fn dry_run(&self) -> anyhow::Result<(LiveConfig, Vec<String>)> {
        let Advice::Given {
            file: Some(file), ..
        } = self.advisor.advice()
        else {
            return Err(
                BadInput("no change is advised: there is nothing to reload".to_owned()).into(),
            );
        };
        let config = self.node.advised(&file)?;
        let changes = control::reload(&self.node.socket, &config, true)?;
        Ok((config, changes))
    }

    /// Reloads the advised file, if that makes the changes that the page has shown.
    fn reload(&self, body: &[u8]) -> anyhow::Result<Vec<String>> {
        let shown: Changes = serde_json::from_slice(body)
            .map_err(|error| BadInput(format!("not a list of changes: {error}")))?;
        let (config, changes) = self.dry_run()?;
        if changes != shown.changes {
            return Err(BadInput(
                "a reload would no longer make the changes that were shown: look at them again"
                    .to_owned(),
            )
            .into());
        }
        let done = control::reload(&self.node.socket, &config, false)?;
        let what = format!("the advised file was applied: {}", done.join("; "));
        open(&self.seen).note(Instant::now(), what);
        Ok(done)
    }
}

/// The peer that a query names. Peer names need no escapes.
fn peer_in(query: &str) -> Option<String> {
    let mut pairs = query.split('&');
    pairs
        .find_map(|pair| pair.strip_prefix("peer="))
        .map(str::to_owned)
}
