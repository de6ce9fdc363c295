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
//! <- {"changes":["udp 10.7.0.1:40000 -> 10.7.0.2:7008 is registered"]}
//! -> {"command":"pull"}
//! <- {"peer":"farm","service":"files","flows":1,"interval_ns":100000000,"local":{...},"route":{...}}
//! -> {"command":"ask"}
//! <- {"changes":["2 peers are queried"]}
//! -> {"command":"rate","rate":"30 Mbit/s"}
//! <- {"changes":["the link has rate 30 Mbit/s, was 20 Mbit/s"]}
//! <- {"error":"there is no command \"x\"; the commands are: status, flows, reload, record, ask, service, rate, register, pull"}
//! ```
//!
//! The node's own thread serves the socket between packets and never blocks: a client that sends too much is
//! disconnected, and a client that does not read its answer gets no further one. Root and the node's own user
//! may send every command. Members of the group that the file names may also open the socket, and may ask
//! several times a second for the status and for what a flow may send. A registered flow is forgotten when
//! its connection closes. The kernel identifies the client (`SO_PEERCRED`).

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

/// Time for which the client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Asks for a [`Status`].
    Status {},
    /// Asks for the flows that the classifiers know, as [`PeerFlows`] of each peer.
    Flows {},
    /// Asks to apply a changed file.
    Reload {
        /// The file.
        file: Box<LiveConfig>,
        /// Only lists the changes.
        #[serde(
            default,
            rename = "dry-run",
            skip_serializing_if = "std::ops::Not::not"
        )]
        dry_run: bool,
    },
    /// Asks for the blocks of a trace from now on.
    Record {
        /// The peer whose link is recorded; optional if there is only one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer: Option<String>,
    },
    /// Registers a flow, to ask what it may send (Gopal 2007, section 3.3.2) by `Pull` on the same connection.
    Register {
        /// Source of the flow.
        from: SocketAddr,
        /// Destination of the flow.
        to: SocketAddr,
        /// Its transport protocol.
        #[serde(default = "udp")]
        protocol: Protocol,
    },
    /// Asks what the registered flow may send, as a [`FlowOffer`](crate::status::FlowOffer).
    Pull {},
    /// Tests all peers at once with a hello; the status then shows which were reached.
    Ask {},
    /// Asks for another rate of the link.
    Rate {
        /// The rate of the link, as `link.rate` in its file.
        rate: Rate,
    },
    /// Asks to change the services.
    Service {
        /// The change.
        change: ServiceChange,
    },
}

fn udp() -> Protocol {
    Protocol(17)
}

/// Why a line was not accepted as a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// It is malformed.
    #[error(
        "not a request ({0}); the commands are: {{\"command\":\"status\"}}, {{\"command\":\"flows\"}}, \
         {{\"command\":\"record\"}}, {{\"command\":\"ask\"}}, {{\"command\":\"reload\",\"file\":FILE}}, \
         {{\"command\":\"rate\",\"rate\":RATE}}, {{\"command\":\"service\",\"change\":CHANGE}}, \
         {{\"command\":\"register\",\"from\":ADDRESS,\"to\":ADDRESS}} and {{\"command\":\"pull\"}}"
    )]
    Malformed(#[from] serde_json::Error),
    /// The file is invalid; the client should have checked it.
    #[error("the file is wrong; `airlane explain FILE` says where")]
    WrongFile,
}

impl Request {
    /// Parses a client's line. A request that parses can be carried out, as far as the file alone shows.
    ///
    /// # Errors
    /// If it is not a request, or has an invalid file.
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

    /// The request as a line.
    pub fn to_line(&self) -> String {
        // Only maps with keys that are not strings could fail, and there are none.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

/// The answer to a reload or another change.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Reloaded {
    changes: Vec<String>,
}

/// The answer to a rejected request.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Refusal {
    error: String,
}

/// Why a request to a node failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// No node listens on the socket.
    #[error("{}", .path.display().to_string() + &no_answer(.source))]
    Connect {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The node did not answer in time, or closed the connection.
    #[error("{}: {}", .path.display(), cut_off(.source))]
    Talk {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The node refused.
    #[error("the node at {path} says: {error}", path = path.display())]
    Refused {
        /// The socket.
        path: PathBuf,
        /// Its message.
        error: String,
    },
    /// The answer cannot be parsed; the node may have another version.
    #[error("the node at {path} gave an answer that this version cannot read: {source}", path = path.display())]
    Answer {
        /// The socket.
        path: PathBuf,
        /// The parser's error.
        source: serde_json::Error,
    },
}

fn cut_off(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            "the node does not answer; is it stopped?".to_owned()
        }
        _ => error.to_string(),
    }
}

fn no_answer(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            " may not be opened: {error}; ask as root or the user of the link, or for its status as a member of the \
             group that its file names, such as control = {{ group = \"airlane\" }}"
        ),
        _ => format!(": no node answers there: {error}; {}", running()),
    }
}

/// Names the links that run on this machine, for a message to a user who asked for another.
pub fn running() -> String {
    let sockets = sockets().unwrap_or_default();
    let names = sockets.iter().filter_map(|path| path.file_stem()?.to_str());
    match names.collect::<Vec<_>>() {
        none if none.is_empty() => "is `airlane up` running?".to_owned(),
        names => format!("these links are running: {}", names.join(", ")),
    }
}

/// The control sockets of all links that run on this machine, in the default directory. The socket that a
/// killed node left is none of them.
///
/// # Errors
/// If the directory cannot be read.
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
        .filter(|path| !is_left(path))
        .collect();
    sockets.sort();
    Ok(sockets)
}

/// Whether nothing listens on the socket: its node was killed.
fn is_left(path: &Path) -> bool {
    call(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Asks the node whose control socket is at `path` for its status.
///
/// # Errors
/// If no node answers there.
pub fn status(path: &Path) -> Result<Status, ControlError> {
    ask(path, &Request::Status {})
}

/// Asks the node which flows it knows, and how it classifies each.
///
/// # Errors
/// If no node answers there, or it refuses.
pub fn flows(path: &Path) -> Result<Vec<PeerFlows>, ControlError> {
    ask(path, &Request::Flows {})
}

/// Asks the node to apply a changed file, or in a `dry_run` what it would change. Returns the changes.
///
/// # Errors
/// If no node answers there, or it refuses; nothing has changed then.
pub fn reload(path: &Path, file: &LiveConfig, dry_run: bool) -> Result<Vec<String>, ControlError> {
    let file = Box::new(file.clone());
    let reloaded: Reloaded = ask(path, &Request::Reload { file, dry_run })?;
    Ok(reloaded.changes)
}

/// A recording received from a node.
#[derive(Debug)]
pub struct Recording {
    /// Facts about the recorded link.
    pub what: Recorded,
    stream: BufReader<UnixStream>,
    path: PathBuf,
}

impl Recording {
    /// Waits up to `patience` for the next part of the trace; `None` if none arrived. A part without bytes
    /// is the end of the recording.
    ///
    /// # Errors
    /// If the connection to the node is lost.
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

    /// Asks the node to end the recording. Parts already recorded still arrive.
    pub fn stop(&self) {
        // If the connection is gone, so is the recording.
        let _ended = self.stream.get_ref().shutdown(Shutdown::Write);
    }
}

fn is_nothing_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// Asks the node to record the link with a peer (`None` means the only one) until [`Recording::stop`] is
/// called or the recording is dropped.
///
/// # Errors
/// If no node answers there, or it refuses.
pub fn record(path: &Path, peer: Option<&str>) -> Result<Recording, ControlError> {
    let peer = peer.map(str::to_owned);
    let (what, stream) = begin(path, &Request::Record { peer })?;
    Ok(Recording {
        what,
        stream,
        path: path.to_owned(),
    })
}

/// Asks the node to test all peers at once.
///
/// # Errors
/// If no node answers there, or its version does not support this.
pub fn ask_peers(path: &Path) -> Result<(), ControlError> {
    ask(path, &Request::Ask {}).map(|Reloaded { .. }| ())
}

/// Asks the node to change its services. Returns the changes.
///
/// # Errors
/// If no node answers there, or it refuses; nothing has changed then.
pub fn change_services(path: &Path, change: &ServiceChange) -> Result<Vec<String>, ControlError> {
    let change = change.clone();
    let changed: Reloaded = ask(path, &Request::Service { change })?;
    Ok(changed.changes)
}

/// Asks the node to change the rate of the link. Returns the changes.
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

/// Connects to the listener at `path`, with a timeout for a listener that does not accept.
fn call(path: &Path) -> io::Result<UnixStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.connect(&SockAddr::unix(path)?)?;
    Ok(OwnedFd::from(socket).into())
}

/// Sends a request. Returns the answer, and the stream for what follows it.
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
