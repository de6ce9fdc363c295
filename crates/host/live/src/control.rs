//! The control socket: a Unix stream socket that speaks JSON lines.
//!
//! ```text
//! -> {"command":"status"}
//! <- {"schema":2,"name":"hill-top", ...}
//! -> {"command":"reload","file":{"schema":1,"name":"hill-top", ...}}
//! <- {"changes":["peer \"farm\" is at 192.0.2.9:7007"]}
//! -> {"command":"record","peer":"farm"}
//! <- {"name":"hill-top/farm","rate_bps":20000000,"overhead_bytes":42}
//! <- blocks of a trace, until the client ends its side of the stream
//! -> {"command":"service","change":{"set":{"name":"voice","rate":0.3}}}
//! <- {"changes":["service \"voice\" has rate 0.3, was 0.2"]}
//! -> {"command":"register","from":"10.7.0.1:40000","to":"10.7.0.2:7008"}
//! <- {"changes":["udp 10.7.0.1:40000 -> 10.7.0.2:7008 is told what it may send"]}
//! -> {"command":"pull"}
//! <- {"peer":"farm","service":"files","flows":1,"interval_ns":100000000,"local":{...},"route":{...}}
//! -> {"command":"ask"}
//! <- {"changes":["2 peers are asked whether they are there"]}
//! -> {"command":"rate","rate":"30 Mbit/s"}
//! <- {"changes":["the link has rate 30 Mbit/s, was 20 Mbit/s"]}
//! <- {"error":"there is no command \"x\"; the commands are: status, flows, reload, record, ask, service, rate, register, pull"}
//! ```
//!
//! The node's own thread serves it, between packets, and never waits: a client that sends too much is dropped, and one that
//! does not read its answer hears no other. Root and the node's own user may ask for
//! everything; members of the group that the file names may open the socket, too, and ask for the status, and what a
//! flow may send, some times a second. A registered flow is forgotten with its connection. Who a client is, the kernel says (`SO_PEERCRED`).

mod place;
pub mod registration;
mod server;

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airlane_base::Rate;
use airlane_base::config::{Problems, Validate};
use airlane_link::classify::Protocol;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use socket2::{Domain, SockAddr, Socket, Type};

pub use airlane_node::{AddServices, ServiceChange};

use crate::config::{LiveConfig, default_socket};
use crate::record::Recorded;
use crate::status::{PeerFlows, Status};
pub(crate) use server::{Served, Server};

/// How long the client side waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Asks for a [`Status`].
    Status {},
    /// Asks for the flows that the classifiers know, as [`PeerFlows`] of each peer.
    Flows {},
    /// Asks to take over a changed file.
    Reload {
        /// The file, as its text would be read.
        file: Box<LiveConfig>,
        /// Only to say what would change.
        #[serde(
            default,
            rename = "dry-run",
            skip_serializing_if = "std::ops::Not::not"
        )]
        dry_run: bool,
    },
    /// Asks for the blocks of a trace from now on.
    Record {
        /// The peer whose link is recorded; may be left out where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer: Option<String>,
    },
    /// Asks to be told what a flow may send (Gopal 2007, section 3.3.2), by `Pull` on the same connection.
    Register {
        /// Where the flow begins.
        from: SocketAddr,
        /// Where it goes.
        to: SocketAddr,
        /// What it carries behind IP.
        #[serde(default = "udp")]
        protocol: Protocol,
    },
    /// Asks for that, as a [`FlowOffer`](crate::status::FlowOffer).
    Pull {},
    /// Ask every peer at once whether it is there; the status says who was reached since.
    Ask {},
    /// Asks to send at another rate.
    Rate {
        /// The rate of the link, as `link.rate` in its file.
        rate: Rate,
    },
    /// Asks to change the services.
    Service {
        /// How.
        change: ServiceChange,
    },
}

fn udp() -> Protocol {
    Protocol(17)
}

/// Why a line is no request that a node answers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// It is no request.
    #[error(
        "not a request ({0}); the commands are: {{\"command\":\"status\"}}, {{\"command\":\"flows\"}}, \
         {{\"command\":\"record\"}}, {{\"command\":\"ask\"}}, {{\"command\":\"reload\",\"file\":FILE}}, \
         {{\"command\":\"rate\",\"rate\":RATE}}, {{\"command\":\"service\",\"change\":CHANGE}}, \
         {{\"command\":\"register\",\"from\":ADDRESS,\"to\":ADDRESS}} and {{\"command\":\"pull\"}}"
    )]
    Malformed(#[from] serde_json::Error),
    /// Whoever wrote it has not checked the file.
    #[error("the file is wrong; `airlane explain FILE` says where")]
    WrongFile,
}

impl Request {
    /// Reads a line of a client. What is read can be done, as far as the file alone can tell.
    ///
    /// # Errors
    /// If it is no request, or asks for a file that is wrong.
    pub fn parse(line: &[u8]) -> Result<Self, RequestError> {
        let request = serde_json::from_slice(line)?;
        if let Self::Reload { file, .. } = &request {
            let mut problems = Problems::new();
            file.validate(&mut problems);
            if !problems.is_empty() {
                return Err(RequestError::WrongFile);
            }
        }
        Ok(request)
    }

    /// Whether it only reads.
    const fn reads(&self) -> bool {
        matches!(
            self,
            Self::Status {} | Self::Register { .. } | Self::Pull {}
        )
    }

    /// The line that asks for it.
    pub fn to_line(&self) -> String {
        // There is no map with keys that are no text, the one thing that cannot be written.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

/// The answer to a reload, or a change of services.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Reloaded {
    changes: Vec<String>,
}

/// The answer to a request that was not understood.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Refusal {
    error: String,
}

/// Why a node could not be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// No node answers there.
    #[error("{}", .path.display().to_string() + &no_answer(.source))]
    Connect {
        /// The socket.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The node did not answer in time, or closed.
    #[error("{path}: {source}", path = path.display())]
    Talk {
        /// The socket.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The node refused.
    #[error("the node at {path} says: {error}", path = path.display())]
    Refused {
        /// The socket.
        path: PathBuf,
        /// Its words.
        error: String,
    },
    /// The answer is of another version.
    #[error("the node at {path} gave an answer that this version does not read: {source}", path = path.display())]
    Answer {
        /// The socket.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

fn no_answer(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            " may not be opened: {error}; ask as root or the user of the link, or for its status as a member of the \
             group that its file names, such as control = {{ group = \"airlane\" }}"
        ),
        _ => format!(": no node answers there: {error}; is `airlane up` running?"),
    }
}

/// The control sockets of all links of this machine, at the usual place.
///
/// # Errors
/// If the place may not be read.
pub fn sockets() -> io::Result<Vec<PathBuf>> {
    let any = default_socket("any");
    let entries = match any.parent().map(std::fs::read_dir) {
        None => return Ok(Vec::new()),
        Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Some(entries) => entries?,
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut sockets: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "sock"))
        .collect();
    sockets.sort();
    Ok(sockets)
}

/// Asks the node whose control socket is at `path` where it stands.
///
/// # Errors
/// If no node answers there.
pub fn status(path: &Path) -> Result<Status, ControlError> {
    ask(path, &Request::Status {})
}

/// Asks the node which flows it knows, where each goes, and why.
///
/// # Errors
/// If no node answers there, or it refuses.
pub fn flows(path: &Path) -> Result<Vec<PeerFlows>, ControlError> {
    ask(path, &Request::Flows {})
}

/// Asks the node to take over a changed file, or in a `dry_run` what it would take over. What changed.
///
/// # Errors
/// If no node answers there, or it refuses; nothing has changed then.
pub fn reload(path: &Path, file: &LiveConfig, dry_run: bool) -> Result<Vec<String>, ControlError> {
    let file = Box::new(file.clone());
    let reloaded: Reloaded = ask(path, &Request::Reload { file, dry_run })?;
    Ok(reloaded.changes)
}

/// A recording that a node sends.
#[derive(Debug)]
pub struct Recording {
    /// What is recorded.
    pub what: Recorded,
    stream: BufReader<UnixStream>,
    path: PathBuf,
}

impl Recording {
    /// The next part of the trace, at most `patience` later; none if there was none. The end of the
    /// recording is a part without bytes.
    ///
    /// # Errors
    /// If the node is gone.
    pub fn next(
        &mut self,
        patience: Duration,
        part: &mut Vec<u8>,
    ) -> Result<Option<usize>, ControlError> {
        let path = self.path.clone();
        let talk = |source| ControlError::Talk { path, source };
        let set = self.stream.get_ref().set_read_timeout(Some(patience));
        let read = set.and_then(|()| {
            let bytes = self.stream.fill_buf()?;
            part.extend_from_slice(bytes);
            Ok(bytes.len())
        });
        match read {
            Ok(length) => {
                self.stream.consume(length);
                Ok(Some(length))
            }
            Err(error) if is_nothing_yet(&error) => Ok(None),
            Err(error) => Err(talk(error)),
        }
    }

    /// Asks the node to end the recording. What it has recorded still comes.
    pub fn stop(&self) {
        // A node that has gone has ended it.
        let _ended = self.stream.get_ref().shutdown(Shutdown::Write);
    }
}

fn is_nothing_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// Asks the node to record the link with a peer, which may go unnamed where there is one, until
/// [`Recording::stop`], or until the recording is dropped.
///
/// # Errors
/// If no node answers there, or it cannot.
pub fn record(path: &Path, peer: Option<&str>) -> Result<Recording, ControlError> {
    let peer = peer.map(str::to_owned);
    let (what, stream) = begin(path, &Request::Record { peer })?;
    Ok(Recording {
        what,
        stream,
        path: path.to_owned(),
    })
}

/// Has the node ask every peer at once whether it is there.
///
/// # Errors
/// If no node answers there, or it is of a version that cannot.
pub fn ask_peers(path: &Path) -> Result<(), ControlError> {
    ask(path, &Request::Ask {}).map(|Reloaded { .. }| ())
}

/// Asks the node to change its services. What changed.
///
/// # Errors
/// If no node answers there, or it refuses; nothing has changed then.
pub fn change_services(path: &Path, change: &ServiceChange) -> Result<Vec<String>, ControlError> {
    let change = change.clone();
    let changed: Reloaded = ask(path, &Request::Service { change })?;
    Ok(changed.changes)
}

/// Asks the node to send at another rate. What changed.
///
/// # Errors
/// If no node answers there, or it refuses; nothing has changed then.
pub fn change_rate(path: &Path, rate: Rate) -> Result<Vec<String>, ControlError> {
    let changed: Reloaded = ask(path, &Request::Rate { rate })?;
    Ok(changed.changes)
}

fn ask<A: DeserializeOwned>(path: &Path, request: &Request) -> Result<A, ControlError> {
    begin(path, request).map(|(answer, _)| answer)
}

/// A stream to the listener at `path`, if it accepts in time: a listener that does not accept holds nothing up.
fn call(path: &Path) -> io::Result<UnixStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.connect(&SockAddr::unix(path)?)?;
    Ok(OwnedFd::from(socket).into())
}

/// Asks, and gives what may follow the answer.
fn begin<A: DeserializeOwned>(
    path: &Path,
    request: &Request,
) -> Result<(A, BufReader<UnixStream>), ControlError> {
    let path = || path.to_owned();
    let connect = |source| ControlError::Connect {
        path: path(),
        source,
    };
    let talk = |source| ControlError::Talk {
        path: path(),
        source,
    };
    let mut stream = call(&path()).map_err(connect)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(talk)?;
    stream
        .write_all(request.to_line().as_bytes())
        .map_err(talk)?;
    let mut answer = String::new();
    let mut stream = BufReader::new(stream);
    stream.read_line(&mut answer).map_err(talk)?;
    if let Ok(Refusal { error }) = serde_json::from_str(&answer) {
        return Err(ControlError::Refused {
            path: path(),
            error,
        });
    }
    let answer = serde_json::from_str(&answer).map_err(|source| ControlError::Answer {
        path: path(),
        source,
    })?;
    Ok((answer, stream))
}
