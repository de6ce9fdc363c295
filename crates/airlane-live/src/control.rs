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
//! <- {"error":"there is no command \"x\"; the commands are: status, reload, record, service"}
//! ```
//!
//! The node's own thread serves it, between packets, and never waits: a client that sends slowly,
//! sends too much or does not read its answer is dropped. Whoever may open the socket may ask;
//! that is the user who started the node.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use airlane_base::config::{Problems, Validate};
use airlane_link::{ClassConfig, ServiceConfig};
use rustix::event::epoll;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::config::LiveConfig;
use crate::device::DeviceError;
use crate::record::Recorded;
use crate::status::Status;

/// Clients at once; one more replaces the first.
const MAX_CLIENTS: usize = 8;
/// Longest request.
const MAX_REQUEST: usize = 1 << 16;
const LISTENER: u64 = u64::MAX;
/// How long the client side waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Asks for a [`Status`].
    Status {},
    /// Asks to take over a changed file.
    Reload {
        /// The file, as its text would be read.
        file: Box<LiveConfig>,
    },
    /// Asks for the blocks of a trace from now on.
    Record {
        /// Of the link with this peer; may be left out where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer: Option<String>,
    },
    /// Asks to change the services.
    Service {
        /// How.
        change: ServiceChange,
    },
}

/// New services, as they would stand under `[link]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddServices {
    /// Each with a number and a name of its own.
    pub services: Vec<ServiceConfig>,
    /// Rules that go before those that there are.
    #[serde(default)]
    pub classes: Vec<ClassConfig>,
}

impl Validate for AddServices {
    fn validate(&self, problems: &mut Problems) {
        if self.services.is_empty() {
            let help =
                "write it as in a live file: [[services]] with number, name, rate and scheme";
            problems.add("services", "there is no service to add", help);
        }
    }
}

/// A change of a running node's services. Its file stays as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ServiceChange {
    /// New services.
    Add(AddServices),
    /// A service goes, with its rules, once what waits in it has left.
    Remove {
        /// Its name.
        name: String,
    },
    /// A service gets another share.
    Set {
        /// Its name.
        name: String,
        /// Its share of the link, relative to the others'.
        rate: f64,
    },
}

/// Why a line is no request that a node answers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// It is no request.
    #[error(
        "not a request ({0}); the commands are: {{\"command\":\"status\"}}, \
         {{\"command\":\"record\"}}, {{\"command\":\"reload\",\"file\":FILE}} and \
         {{\"command\":\"service\",\"change\":CHANGE}}"
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
        if let Self::Reload { file } = &request {
            let mut problems = Problems::new();
            file.validate(&mut problems);
            if !problems.is_empty() {
                return Err(RequestError::WrongFile);
            }
        }
        Ok(request)
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

/// What stands behind the socket.
pub(crate) trait Served {
    /// Where everything stands.
    fn status(&mut self) -> Status;
    /// Takes over what changed in the file: what that was, or why nothing was.
    fn reload(&mut self, file: &LiveConfig) -> Result<Vec<String>, String>;
    /// Begins to record the link with a peer, or says why not.
    fn record(&mut self, peer: Option<&str>) -> Result<Recorded, String>;
    /// Appends the blocks that were recorded meanwhile.
    fn recorded(&mut self, out: &mut Vec<u8>);
    /// Ends the recording and appends its last blocks.
    fn end_record(&mut self, out: &mut Vec<u8>);
    /// Changes the services: how, or why not.
    fn change_services(&mut self, change: &ServiceChange) -> Result<Vec<String>, String>;
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
    #[error("no node answers at {path}: {source} (is `airlane up` running, and may you open its socket?)", path = path.display())]
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

/// Asks the node whose control socket is at `path` where it stands.
///
/// # Errors
/// If no node answers there.
pub fn status(path: &Path) -> Result<Status, ControlError> {
    ask(path, &Request::Status {})
}

/// Asks the node to take over a changed file. What changed.
///
/// # Errors
/// If no node answers there, or it refuses; nothing has changed then.
pub fn reload(path: &Path, file: &LiveConfig) -> Result<Vec<String>, ControlError> {
    let file = Box::new(file.clone());
    let reloaded: Reloaded = ask(path, &Request::Reload { file })?;
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

/// Asks the node to change its services. What changed.
///
/// # Errors
/// If no node answers there, or it refuses; nothing has changed then.
pub fn change_services(path: &Path, change: &ServiceChange) -> Result<Vec<String>, ControlError> {
    let change = change.clone();
    let changed: Reloaded = ask(path, &Request::Service { change })?;
    Ok(changed.changes)
}

fn ask<A: DeserializeOwned>(path: &Path, request: &Request) -> Result<A, ControlError> {
    begin(path, request).map(|(answer, _)| answer)
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
    let mut stream = UnixStream::connect(path()).map_err(connect)?;
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

/// The node's side of the socket. The file is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    listener: UnixListener,
    path: PathBuf,
    epoll: OwnedFd,
    /// By token; tokens are never used again.
    clients: Vec<(u64, Client)>,
    next_token: u64,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    request: Vec<u8>,
    feed: Option<Feed>,
}

/// A recording on its way to a client.
#[derive(Debug, Default)]
struct Feed {
    /// What the client has not taken yet.
    waiting: Vec<u8>,
    /// The client wants no more.
    ended: bool,
}

impl Server {
    /// Listens at `path`. A socket that nobody answers at any more is replaced.
    pub(crate) fn bind(path: &Path) -> Result<Self, DeviceError> {
        let device = path.display().to_string();
        let failed = |call| {
            let device = device.clone();
            move |source: io::Error| DeviceError::new(&device, call, source)
        };
        if let Some(directory) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)
                .map_err(failed("make the socket's directory"))?;
        }
        clear_the_way(path).map_err(failed("listen"))?;
        let listener = UnixListener::bind(path).map_err(failed("listen"))?;
        // From here on the file is ours, and goes with the server.
        let mut server = Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)
                .map_err(|e| failed("make an epoll descriptor")(e.into()))?,
            listener,
            path: path.to_owned(),
            clients: Vec::new(),
            next_token: 0,
        };
        fs::set_permissions(path, Permissions::from_mode(0o600))
            .map_err(failed("restrict the socket to its owner"))?;
        server
            .listener
            .set_nonblocking(true)
            .map_err(failed("set nonblocking"))?;
        server
            .watch_listener()
            .map_err(|e| failed("watch the socket")(e.into()))?;
        Ok(server)
    }

    fn watch_listener(&mut self) -> rustix::io::Result<()> {
        let data = epoll::EventData::new_u64(LISTENER);
        epoll::add(&self.epoll, &self.listener, data, epoll::EventFlags::IN)
    }

    /// Serves every client that has something to say now.
    pub(crate) fn serve(&mut self, node: &mut dyn Served) {
        let mut events = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }; MAX_CLIENTS + 1];
        let now = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let Ok(count) = epoll::wait(&self.epoll, &mut events[..], Some(&now)) else {
            return;
        };
        for event in &events[..count] {
            match event.data.u64() {
                LISTENER => self.accept(),
                token => self.hear(token, node),
            }
        }
        self.feed(node);
    }

    /// Lets whoever records have what there is.
    fn feed(&mut self, node: &mut dyn Served) {
        let at = self.clients.iter().position(|(_, c)| c.feed.is_some());
        if let Some(at) = at
            && !self.clients[at].1.pass_on(node)
        {
            node.end_record(&mut Vec::new());
            self.clients.remove(at);
        }
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let token = self.next_token;
            let data = epoll::EventData::new_u64(token);
            if stream.set_nonblocking(true).is_err()
                || epoll::add(&self.epoll, &stream, data, epoll::EventFlags::IN).is_err()
            {
                continue;
            }
            self.next_token += 1;
            if self.clients.len() == MAX_CLIENTS {
                let idle = self.clients.iter().position(|(_, c)| c.feed.is_none());
                self.clients.remove(idle.unwrap_or(0));
            }
            let client = Client {
                stream,
                request: Vec::new(),
                feed: None,
            };
            self.clients.push((token, client));
        }
    }

    fn hear(&mut self, token: u64, node: &mut dyn Served) {
        let Some(at) = self.clients.iter().position(|(t, _)| *t == token) else {
            return;
        };
        let client = &mut self.clients[at].1;
        if client.feed.as_ref().is_some_and(|feed| feed.ended) || client.serve(node) {
            return;
        }
        if let Some(feed) = &mut client.feed {
            // What was recorded still goes to a client that has only ended its side.
            node.end_record(&mut feed.waiting);
            feed.ended = true;
            // There is nothing more to hear; it matters when it takes the rest.
            let data = epoll::EventData::new_u64(token);
            let out = epoll::EventFlags::OUT;
            let _watched = epoll::modify(&self.epoll, &client.stream, data, out);
        } else {
            self.clients.remove(at);
        }
    }
}

impl AsFd for Server {
    /// Readable when [`Server::serve`] has something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone_already = fs::remove_file(&self.path);
    }
}

impl Client {
    /// Reads what there is and answers whole requests. False if the client is done with.
    fn serve(&mut self, node: &mut dyn Served) -> bool {
        let mut chunk = [0; 1024];
        loop {
            match (&self.stream).read(&mut chunk) {
                Ok(0) => return false,
                // An answer would stand in the middle of the trace.
                Ok(_) if self.feed.is_some() => continue,
                Ok(n) => self.request.extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return false,
            }
            while let Some(end) = self.request.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.request.drain(..=end).collect();
                let mut answer = answer(&line, node, &mut self.feed);
                answer.push(b'\n');
                // An answer fits the socket's buffer, unless the client does not read.
                if !matches!((&self.stream).write(&answer), Ok(n) if n == answer.len()) {
                    return false;
                }
            }
            if self.request.len() > MAX_REQUEST {
                return false;
            }
        }
    }

    /// Sends what was recorded, as much as the client takes now. False if it is done with.
    fn pass_on(&mut self, node: &mut dyn Served) -> bool {
        let Some(feed) = &mut self.feed else {
            return true;
        };
        // The rest waits in the recorder, which knows a limit.
        if feed.waiting.is_empty() && !feed.ended {
            node.recorded(&mut feed.waiting);
        }
        while !feed.waiting.is_empty() {
            match (&self.stream).write(&feed.waiting) {
                Ok(0) => return false,
                Ok(taken) => drop(feed.waiting.drain(..taken)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        !feed.ended
    }
}

fn answer(line: &[u8], node: &mut dyn Served, feed: &mut Option<Feed>) -> Vec<u8> {
    let refuse = |error: String| serde_json::to_vec(&Refusal { error });
    let answer = match Request::parse(line) {
        Ok(Request::Status {}) => serde_json::to_vec(&node.status()),
        Ok(Request::Reload { file }) => match node.reload(&file) {
            Ok(changes) => serde_json::to_vec(&Reloaded { changes }),
            Err(error) => refuse(error),
        },
        Ok(Request::Record { peer }) => match node.record(peer.as_deref()) {
            Ok(recorded) => {
                *feed = Some(Feed::default());
                serde_json::to_vec(&recorded)
            }
            Err(error) => refuse(error),
        },
        Ok(Request::Service { change }) => match node.change_services(&change) {
            Ok(changes) => serde_json::to_vec(&Reloaded { changes }),
            Err(error) => refuse(error),
        },
        Err(error) => refuse(error.to_string()),
    };
    // As for a request.
    answer.unwrap_or_default()
}

/// Removes a socket that its node left behind. Anything else at `path` stays, and is an error.
fn clear_the_way(path: &Path) -> io::Result<()> {
    let taken = |what| Err(io::Error::new(io::ErrorKind::AddrInUse, what));
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            taken("there is a file of this name that is no socket")
        }
        Ok(_) => match UnixStream::connect(path) {
            Ok(_) => taken("another node of this name is running"),
            Err(_) => fs::remove_file(path),
        },
    }
}

#[cfg(test)]
mod tests;
