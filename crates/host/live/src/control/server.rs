//! Server side of the control socket.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt as _, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use airlane_base::Rate;
use airlane_link::FlowKey;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fs::{Mode, OFlags};

use super::{Refusal, Reloaded, Request, RequestError, ServiceChange, place};
use crate::clock;
use crate::config::LiveConfig;
use crate::device::DeviceError;
use crate::record::Recorded;
use crate::status::{FlowOffer, PeerFlows, Status};

/// Limit of clients. A further one replaces the first client with read rights, or else the first client.
const MAX_CLIENTS: usize = 8;
/// Limit of answers per second to all clients with read rights, as the node's thread answers between packets.
const READINGS: u32 = 20;
/// Longest request, bytes.
const MAX_REQUEST: usize = 1 << 16;
const LISTENER: u64 = u64::MAX;

/// The node that the socket gives access to.
pub(crate) trait Served {
    /// The node's status.
    fn status(&mut self) -> Status;
    /// The known flows: first those that run, then those with the most bytes.
    fn flows(&mut self) -> Vec<PeerFlows>;
    /// Applies a changed file, unless this is a dry run. Returns the changes, or why nothing was changed.
    fn reload(&mut self, file: &LiveConfig, dry_run: bool) -> Result<Vec<String>, String>;
    /// Starts recording the link with a peer, or says why it cannot.
    fn record(&mut self, peer: Option<&str>) -> Result<Recorded, String>;
    /// Appends the blocks recorded since the last call.
    fn recorded(&mut self, out: &mut Vec<u8>);
    /// Ends the recording and appends its last blocks.
    fn end_record(&mut self, out: &mut Vec<u8>);
    /// Registers a client's flow, or says why it cannot.
    fn register(&mut self, client: u64, flow: FlowKey) -> Result<(), String>;
    /// What the client's flow may send, or why that is unknown.
    fn pull(&mut self, client: u64) -> Result<FlowOffer, String>;
    /// Removes the flows of clients that have disconnected.
    fn keep_registered(&mut self, is_there: &dyn Fn(u64) -> bool);
    /// Changes the services. Returns the changes, or why nothing was changed.
    fn change_services(&mut self, change: &ServiceChange) -> Result<Vec<String>, String>;
    /// Tests all peers with a hello. Returns their number.
    fn ask_peers(&mut self) -> usize;
    /// Changes the rate of the link. Returns the changes, or why nothing was changed.
    fn change_rate(&mut self, rate: Rate) -> Result<Vec<String>, String>;
}

/// The server's socket. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct Server {
    listener: UnixListener,
    path: PathBuf,
    epoll: OwnedFd,
    /// By token; tokens are not reused.
    clients: Vec<(u64, Client)>,
    next_token: u64,
    readings: Readings,
}

/// Rate limit for clients with read rights.
#[derive(Debug, Default)]
struct Readings {
    /// The present second, and the answers in it.
    second: u64,
    given: u32,
}

impl Readings {
    /// Whether another answer is allowed now.
    fn admit(&mut self, second: u64) -> bool {
        if second != self.second {
            *self = Self { second, given: 0 };
        }
        let free = self.given < READINGS;
        self.given += u32::from(free);
        free
    }
}

/// Rights of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rights {
    /// All requests.
    All,
    /// Only the status, and what a flow may send.
    Read,
}

impl Rights {
    /// The rights of the process at the other end; `None` if the kernel does not identify it. File
    /// permissions have already kept out other users who are not in the group.
    fn of(stream: &UnixStream) -> Option<Self> {
        let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
        let all = peer.uid.is_root() || peer.uid == rustix::process::geteuid();
        Some(if all { Self::All } else { Self::Read })
    }
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    rights: Rights,
    request: Vec<u8>,
    /// Bytes of an answer or a recording that the client has not read yet.
    waiting: Vec<u8>,
    /// The client receives a recording.
    records: bool,
    /// The client has closed its side.
    ended: bool,
}

/// State of a client after reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// It may send more requests.
    Open,
    /// It has closed its side.
    Ended,
    /// It is gone, or violates the protocol.
    Gone,
}

impl Server {
    /// Listens at `path`, where members of `group` get read rights. A socket without a listener is replaced;
    /// a node that is shutting down is waited for.
    ///
    /// # Errors
    /// If there is no such group, or the system refuses.
    pub(crate) fn bind(path: &Path, group: Option<&str>) -> Result<Self, DeviceError> {
        let device = path.display().to_string();
        let failed = |call| {
            let device = device.clone();
            move |source: io::Error| DeviceError::new(&device, call, source)
        };
        if let Some(directory) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                // Each socket in the directory has its own permissions.
                .mode(0o755)
                .create(directory)
                .map_err(failed("make the socket's directory"))?;
        }
        place::clear(path).map_err(failed("make the control socket"))?;
        let listener = UnixListener::bind(path).map_err(failed("make the control socket"))?;
        // From here on dropping the server removes the file.
        let mut server = Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)
                .map_err(|e| failed("make an epoll descriptor")(e.into()))?,
            listener,
            path: path.to_owned(),
            clients: Vec::new(),
            next_token: 0,
            readings: Readings::default(),
        };
        let readers = group.map(group_of).transpose();
        let readers = readers.map_err(failed("look control.group up"))?;
        restrict(path, readers).map_err(failed("restrict the socket to those who may ask"))?;
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

    /// Serves every client that is ready.
    pub(crate) fn serve(&mut self, node: &mut dyn Served) {
        let mut events = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }; MAX_CLIENTS + 1];
        let now = Timespec {
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
        node.keep_registered(&|client| self.clients.iter().any(|(token, _)| *token == client));
    }

    /// Sends the recorded blocks to the client that records.
    fn feed(&mut self, node: &mut dyn Served) {
        let at = self.clients.iter().position(|(_, c)| c.records);
        if let Some(at) = at
            && !self.clients[at].1.pass_on(node)
        {
            node.end_record(&mut Vec::new());
            self.clients.remove(at);
        }
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let Some(rights) = Rights::of(&stream) else {
                continue;
            };
            let token = self.next_token;
            let data = epoll::EventData::new_u64(token);
            if stream.set_nonblocking(true).is_err()
                || epoll::add(&self.epoll, &stream, data, epoll::EventFlags::IN).is_err()
            {
                continue;
            }
            self.next_token += 1;
            if self.clients.len() == MAX_CLIENTS {
                let reader = self
                    .clients
                    .iter()
                    .position(|(_, c)| c.rights == Rights::Read);
                let idle = self.clients.iter().position(|(_, c)| !c.records);
                match (reader, rights) {
                    (Some(reader), _) => self.clients.remove(reader),
                    (None, Rights::Read) => continue,
                    (None, Rights::All) => self.clients.remove(idle.unwrap_or(0)),
                };
            }
            let client = Client {
                stream,
                rights,
                request: Vec::new(),
                waiting: Vec::new(),
                records: false,
                ended: false,
            };
            self.clients.push((token, client));
        }
    }

    fn hear(&mut self, token: u64, node: &mut dyn Served) {
        let Some(at) = self.clients.iter().position(|(t, _)| *t == token) else {
            return;
        };
        let client = &mut self.clients[at].1;
        let heard = match client.ended {
            true => Heard::Ended,
            false => client.serve(token, node, &mut self.readings),
        };
        if heard == Heard::Ended && !client.ended {
            client.ended = true;
            if client.records {
                // A client that has only closed its side still gets what was recorded.
                node.end_record(&mut client.waiting);
            }
        }
        let is_there = heard != Heard::Gone && client.flush();
        if !is_there || client.ended && client.waiting.is_empty() {
            if client.records && !client.ended {
                node.end_record(&mut Vec::new());
            }
            self.clients.remove(at);
            return;
        }
        // A client with a pending answer is not read until it has taken the answer. A recording client is
        // read all the time, to detect its end.
        let takes = client.ended || !client.records && !client.waiting.is_empty();
        let flags = if takes {
            epoll::EventFlags::OUT
        } else {
            epoll::EventFlags::IN
        };
        let data = epoll::EventData::new_u64(token);
        let _watched = epoll::modify(&self.epoll, &client.stream, data, flags);
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
    /// Answers complete requests one by one, as the client takes the answers.
    fn serve(&mut self, token: u64, node: &mut dyn Served, readings: &mut Readings) -> Heard {
        let mut chunk = [0; 1024];
        loop {
            if !self.answer(token, node, readings) || self.request.len() > MAX_REQUEST {
                return Heard::Gone;
            }
            if !self.records && !self.waiting.is_empty() {
                return Heard::Open;
            }
            match (&self.stream).read(&mut chunk) {
                Ok(0) => return Heard::Ended,
                // Ignore requests: an answer would corrupt the trace.
                Ok(_) if self.records => {}
                Ok(n) => self.request.extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Heard::Open,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Heard::Gone,
            }
        }
    }

    /// Answers the buffered requests until an answer is pending. Returns `false` if the client is gone.
    fn answer(&mut self, token: u64, node: &mut dyn Served, readings: &mut Readings) -> bool {
        while self.flush() {
            let end = self.request.iter().position(|byte| *byte == b'\n');
            let Some(end) = end.filter(|_| self.waiting.is_empty() && !self.records) else {
                return true;
            };
            let line: Vec<u8> = self.request.drain(..=end).collect();
            self.waiting = match (self.rights, Request::parse(&line)) {
                (Rights::Read, Ok(request)) if !request.reads() => refuse(
                    "a member of control.group may read its status, and what a flow may send, and nothing else; \
                     root and the user of the node may do more",
                ),
                (Rights::Read, Ok(_)) if !readings.admit(second()) => {
                    refuse("others read the status as well; ask again in a second")
                }
                // It waited for longer than its client, who has been told that it failed.
                (_, Ok(request)) if !request.reads() && self.is_gone() => return false,
                (_, request) => answer(request, token, node, &mut self.records),
            };
            self.waiting.push(b'\n');
        }
        false
    }

    /// Whether the client has closed its socket, and not only the side on which it asks.
    fn is_gone(&self) -> bool {
        let mut socket = [PollFd::new(&self.stream, PollFlags::empty())];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let polled = poll(&mut socket, Some(&at_once));
        polled.is_ok() && socket[0].revents().contains(PollFlags::HUP)
    }

    /// Sends recorded blocks as far as the client takes them. Returns `false` if the client is finished.
    fn pass_on(&mut self, node: &mut dyn Served) -> bool {
        // Further blocks wait in the recorder, which limits them.
        if self.waiting.is_empty() && !self.ended {
            node.recorded(&mut self.waiting);
        }
        self.flush() && !(self.ended && self.waiting.is_empty())
    }

    /// Writes pending bytes as far as the client takes them. Returns `false` if the client is gone.
    fn flush(&mut self) -> bool {
        while !self.waiting.is_empty() {
            match (&self.stream).write(&self.waiting) {
                Ok(0) => return false,
                Ok(taken) => drop(self.waiting.drain(..taken)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

/// Seconds since boot.
fn second() -> u64 {
    clock::now().as_nanos() / 1_000_000_000
}

/// The identifier of a group.
fn group_of(name: &str) -> io::Result<u32> {
    let group = nix::unistd::Group::from_name(name)?;
    let missing = || io::Error::other(format!("there is no group \"{name}\""));
    group.map(|group| group.gid.as_raw()).ok_or_else(missing)
}

fn refuse(error: &str) -> Vec<u8> {
    let error = error.to_owned();
    // Cannot fail, like `Request::to_line`.
    serde_json::to_vec(&Refusal { error }).unwrap_or_default()
}

fn answer(
    request: Result<Request, RequestError>,
    client: u64,
    node: &mut dyn Served,
    records: &mut bool,
) -> Vec<u8> {
    let changed = |changes: Result<Vec<String>, String>| match changes {
        Ok(changes) => serde_json::to_vec(&Reloaded { changes }).unwrap_or_default(),
        Err(error) => refuse(&error),
    };
    match request {
        Ok(Request::Status {}) => serde_json::to_vec(&node.status()).unwrap_or_default(),
        Ok(Request::Flows {}) => serde_json::to_vec(&node.flows()).unwrap_or_default(),
        Ok(Request::Reload { file, dry_run }) => changed(node.reload(&file, dry_run)),
        Ok(Request::Record { peer }) => match node.record(peer.as_deref()) {
            Ok(recorded) => {
                *records = true;
                serde_json::to_vec(&recorded).unwrap_or_default()
            }
            Err(error) => refuse(&error),
        },
        Ok(Request::Register { from, to, protocol }) => {
            let flow = FlowKey {
                dscp: 0,
                protocol: protocol.0,
                src: from.ip().to_canonical(),
                dst: to.ip().to_canonical(),
                src_port: from.port(),
                dst_port: to.port(),
            };
            changed(
                node.register(client, flow)
                    .map(|()| vec![format!("{protocol} {from} -> {to} is registered")]),
            )
        }
        Ok(Request::Pull {}) => match node.pull(client) {
            Ok(offer) => serde_json::to_vec(&offer).unwrap_or_default(),
            Err(error) => refuse(&error),
        },
        Ok(Request::Service { change }) => changed(node.change_services(&change)),
        Ok(Request::Ask {}) => {
            let asked = node.ask_peers();
            changed(Ok(vec![format!("{asked} peers are queried")]))
        }
        Ok(Request::Rate { rate }) => changed(node.change_rate(rate)),
        Err(error) => refuse(&error.to_string()),
    }
}

/// Restricts the socket at `path` to its owner and an optional group. The directory may belong to another
/// user, such as an earlier `--user`, who could put any file in the socket's place: no other file is changed.
fn restrict(path: &Path, group: Option<u32>) -> io::Result<()> {
    // The standard library takes O_PATH away where O_ACCMODE has it, as in musl.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let socket = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let is = socket.metadata()?;
    if !is.file_type().is_socket() || is.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("something else is in its place"));
    }
    // A path-only descriptor can be changed only through this name.
    let name = format!("/proc/self/fd/{}", socket.as_raw_fd());
    chown(&name, None, group)?;
    let mode = if group.is_some() { 0o660 } else { 0o600 };
    fs::set_permissions(name, Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests;
