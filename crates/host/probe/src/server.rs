//! The far end: serves clients that can reach its control port, one test at a time.
//!
//! Its limits: its lifetime; the duration and the bytes of a test; the number of connections, and how long each may
//! take to show the test's token. Without the token, only the control port responds.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::clock::LocalClock;
use crate::control::{
    Accepted, ControlConnection, Finish, Go, LoadStarted, Reply, ServerResult, TestOrder, VERSION,
};
use crate::plan::{Times, Timetable};
use crate::ports::ServerPorts;
use crate::progress::{Counter, Progress};
use crate::server_state::{ServerState, Test, lock};
use crate::token::{TOKEN_LEN, TestToken};
use crate::voice::Arrivals;
use crate::{GLANCE, download, echo, file, fill, is_timeout, pages, voice};

/// How long a client may be silent when it is its turn to send.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a connection may take to show the token.
const INTRODUCTION: Duration = Duration::from_secs(5);
/// How long a connection may take to send its order.
const ORDER: Duration = Duration::from_secs(10);

/// Who may begin a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptFrom {
    /// Any client that reaches this address.
    Address(IpAddr),
    /// Any client on this interface: on a link with keys, the peer.
    Interface(String),
}

/// The server's settings.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Who may begin a test.
    pub accept_from: AcceptFrom,
    /// Its ports.
    pub ports: ServerPorts,
    /// It stops after this time.
    pub lifetime: Duration,
    /// The longest load that a client may ask for.
    pub longest: Duration,
    /// The most bytes of file and pages that it sends in one test.
    pub most_bytes: u64,
    /// Counters of its progress; the client's, to observe both.
    pub progress: Progress,
    /// Its clock.
    pub watch: LocalClock,
}

impl ServerConfig {
    /// An hour; tests of at most ten minutes and 10 GB.
    pub fn new(accept_from: AcceptFrom) -> Self {
        Self {
            accept_from,
            ports: ServerPorts::default(),
            lifetime: Duration::from_secs(3600),
            longest: Duration::from_secs(600),
            most_bytes: 10_000_000_000,
            progress: Progress::default(),
            watch: LocalClock::default(),
        }
    }
}

/// Events reported to the server's owner.
#[derive(Clone, Copy, Debug)]
pub enum ServerEvent<'a> {
    /// All ports are open.
    Ready(ServerPorts),
    /// A client's test has begun.
    Begun {
        /// The client.
        client: IpAddr,
        /// Durations of the load.
        times: Times,
    },
    /// The test has ended.
    Ended {
        /// The client.
        client: IpAddr,
        /// Why it ended early, if it did.
        error: Option<&'a io::Error>,
    },
    /// A client was refused.
    Refused {
        /// The client.
        client: IpAddr,
        /// Why it was refused.
        why: &'a str,
    },
}

/// A port that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {transport} port {port} of {at}: {source}")]
pub struct ServeError {
    /// `TCP` or `UDP`.
    pub transport: &'static str,
    /// The port.
    pub port: u16,
    /// The address or interface.
    pub at: String,
    /// The error of the operating system.
    pub source: io::Error,
}

/// The open ports.
struct Sockets {
    control: TcpListener,
    /// Replies to searches for a server; only on an interface.
    welcome: Option<UdpSocket>,
    echo: UdpSocket,
    file: TcpListener,
    /// None if pages share the file's port.
    pages: Option<TcpListener>,
    voice: UdpSocket,
    download: UdpSocket,
    /// The congestion control of connections by default.
    congestion_control: Vec<u8>,
}

impl Sockets {
    fn open(config: &ServerConfig) -> Result<Self, ServeError> {
        let (address, interface) = match &config.accept_from {
            AcceptFrom::Address(address) => (*address, None),
            AcceptFrom::Interface(name) => (unspecified(), Some(name.as_str())),
        };
        let ServerPorts {
            control,
            file,
            pages,
            voice,
        } = config.ports;
        // IPv4 only: a dual-stack socket does not receive packets to all IPv4 hosts.
        let all = Ipv4Addr::UNSPECIFIED.into();
        let welcome = interface.map(|name| udp(all, Some(name), control));
        let voice_socket = udp(address, None, voice)?;
        let refused = |source| ServeError {
            transport: "UDP",
            port: voice,
            at: address.to_string(),
            source,
        };
        voice::mark(&voice_socket, true).map_err(refused)?;
        let one = file == pages && pages != 0;
        let file = tcp(address, None, file)?;
        let usual = SockRef::from(&file).tcp_congestion().map_err(refused)?;
        Ok(Self {
            control: tcp(address, interface, control)?,
            welcome: welcome.transpose()?,
            echo: udp(address, None, if one { 0 } else { config.ports.file })?,
            file,
            pages: match one {
                true => None,
                false => Some(tcp(address, None, pages)?),
            },
            voice: voice_socket,
            // If file and pages share a port, the download uses the same UDP port, like QUIC.
            download: udp(address, None, if one { pages } else { 0 })?,
            congestion_control: usual,
        })
    }

    /// The server's ports, the echo port, and the download port.
    fn ports(&self) -> io::Result<(ServerPorts, u16, u16)> {
        let ports = ServerPorts {
            control: self.control.local_addr()?.port(),
            file: self.file.local_addr()?.port(),
            pages: self
                .pages
                .as_ref()
                .unwrap_or(&self.file)
                .local_addr()?
                .port(),
            voice: self.voice.local_addr()?.port(),
        };
        let [echo, download] = [&self.echo, &self.download].map(UdpSocket::local_addr);
        Ok((ports, echo?.port(), download?.port()))
    }

    /// Sets the congestion control of future connections, and reads back the result.
    ///
    /// # Errors
    /// If a client requests one that the kernel has not loaded. For root, setting it would load it.
    fn set_congestion_control(&self, name: Option<&str>) -> Result<String, String> {
        if let Some(name) = name {
            let loaded = std::fs::read_to_string(LOADED).unwrap_or_default();
            admit_congestion_control(name, &loaded)?;
        }
        let name = name.map_or(self.congestion_control.as_slice(), str::as_bytes);
        let shown = || String::from_utf8_lossy(name).replace('\0', "");
        for listener in [&self.file].into_iter().chain(&self.pages) {
            SockRef::from(listener)
                .set_tcp_congestion(name)
                .map_err(|e| format!("its kernel has no TCP {}: {e}", shown()))?;
        }
        Ok(shown())
    }
}

/// The congestion controls that the kernel has loaded (ip-sysctl.rst).
const LOADED: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Refuses a congestion control that the kernel would have to load first: loading modules is up to the machine's
/// owner, not to a client.
fn admit_congestion_control(name: &str, loaded: &str) -> Result<(), String> {
    let loaded: Vec<_> = loaded.split_whitespace().collect();
    match loaded.contains(&name) {
        true => Ok(()),
        false => Err(format!(
            "its kernel has not loaded TCP {name:?}, and loads nothing for clients; it has {}",
            loaded.join(", ")
        )),
    }
}

/// All addresses of this machine, of both families if it has both.
fn unspecified() -> IpAddr {
    let both = Socket::new(Domain::IPV6, Type::DGRAM, Some(Protocol::UDP));
    match both {
        Ok(_) => Ipv6Addr::UNSPECIFIED.into(),
        Err(_) => Ipv4Addr::UNSPECIFIED.into(),
    }
}

/// A socket with a timeout, so that loops can check their deadlines.
fn open(address: SocketAddr, interface: Option<&str>, kind: Type) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, None)?;
    if kind == Type::STREAM {
        socket.set_reuse_address(true)?;
    }
    if let Some(interface) = interface {
        socket.bind_device(Some(interface.as_bytes()))?;
    }
    socket.bind(&address.into())?;
    if kind == Type::STREAM {
        socket.listen(64)?;
    }
    socket.set_read_timeout(Some(GLANCE))?;
    Ok(socket)
}

fn tcp(address: IpAddr, interface: Option<&str>, port: u16) -> Result<TcpListener, ServeError> {
    let opened = open((address, port).into(), interface, Type::STREAM);
    let refused = refused("TCP", address, interface, port);
    opened.map(Into::into).map_err(refused)
}

fn udp(address: IpAddr, interface: Option<&str>, port: u16) -> Result<UdpSocket, ServeError> {
    let opened = open((address, port).into(), interface, Type::DGRAM);
    let refused = refused("UDP", address, interface, port);
    opened.map(Into::into).map_err(refused)
}

fn refused(
    transport: &'static str,
    address: IpAddr,
    interface: Option<&str>,
    port: u16,
) -> impl FnOnce(io::Error) -> ServeError {
    let at = interface.map_or_else(|| address.to_string(), str::to_owned);
    move |source| ServeError {
        transport,
        port,
        at,
        source,
    }
}

/// Serves until `stop` is set or the lifetime is over.
///
/// # Errors
/// If a port cannot be opened.
pub fn serve(
    config: &ServerConfig,
    stop: &AtomicBool,
    tell: &(dyn Fn(ServerEvent<'_>) + Sync),
) -> Result<(), ServeError> {
    let sockets = Sockets::open(config)?;
    let (ports, echo_port, download_port) = sockets.ports().map_err(|source| ServeError {
        transport: "TCP",
        port: config.ports.control,
        at: format!("{:?}", config.accept_from),
        source,
    })?;
    let end_ns = from_now(config.watch, config.lifetime);
    let state = ServerState::new(config.watch, end_ns, stop);
    let server = Server {
        config,
        ports,
        echo_port,
        download_port,
        sockets: &sockets,
        state: &state,
        tell,
    };
    tell(ServerEvent::Ready(ports));
    std::thread::scope(|scope| server.run(scope));
    Ok(())
}

/// The clock's time after this duration.
fn from_now(watch: LocalClock, time: Duration) -> u64 {
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    watch.now_ns().saturating_add(ns)
}

#[derive(Clone, Copy)]
struct Server<'a> {
    config: &'a ServerConfig,
    ports: ServerPorts,
    echo_port: u16,
    download_port: u16,
    sockets: &'a Sockets,
    state: &'a ServerState<'a>,
    tell: &'a (dyn Fn(ServerEvent<'_>) + Sync),
}

impl<'a> Server<'a> {
    fn run<'s>(self, scope: &'s Scope<'s, 'a>) {
        let Self { sockets, state, .. } = self;
        scope.spawn(move || {
            accept(&sockets.file, state, |stream| self.carry(scope, stream));
        });
        if let Some(listener) = &sockets.pages {
            scope.spawn(move || accept(listener, state, |stream| self.carry(scope, stream)));
        }
        scope.spawn(move || download::answer(&sockets.download, state));
        scope.spawn(move || echo::answer(&sockets.echo, state, false));
        if let Some(welcome) = &sockets.welcome {
            scope.spawn(move || echo::answer(welcome, state, true));
        }
        accept(&sockets.control, state, |stream| {
            if let Some(admitted) = state.clients.admit() {
                scope.spawn(move || {
                    let _counted = admitted;
                    // A client that leaves without an order is not reported.
                    let _ = self.receive_client(stream);
                });
            }
        });
    }

    /// Serves one connection of a test, once it has shown the test's token: the bare token requests the file, a token
    /// in a path a page.
    fn carry<'s>(self, scope: &'s Scope<'s, 'a>, mut stream: TcpStream) {
        let Some(admitted) = self.state.connections.admit() else {
            return;
        };
        scope.spawn(move || {
            let _counted = admitted;
            let patience_ns = from_now(self.state.watch, INTRODUCTION);
            let impatient = || self.state.watch.now_ns() >= patience_ns || self.state.is_over();
            let (mut shown, mut rest) = ([0; TOKEN_LEN], [0; pages::REQUEST_LEN - TOKEN_LEN]);
            if stream.set_read_timeout(Some(GLANCE)).is_err()
                || fill(&mut stream, &mut shown, impatient).is_err()
            {
                return;
            }
            let Ok(from) = stream.peer_addr() else {
                return;
            };
            // The client sees and counts an error on its side of the connection.
            let _ = match self.state.test_of(&shown) {
                Some(test) => {
                    test.prove(from);
                    file::send(stream, &test)
                }
                None if fill(&mut stream, &mut rest, impatient).is_ok() => {
                    let asked = |test: &Arc<Test>| {
                        pages::request(test.token) == [&shown[..], &rest[..]].concat()
                    };
                    match self.state.test().filter(asked) {
                        Some(test) => {
                            test.prove(from);
                            pages::answer(stream, &test)
                        }
                        None => Ok(()),
                    }
                }
                None => Ok(()),
            };
        });
    }

    fn receive_client(self, stream: TcpStream) -> io::Result<()> {
        let client = stream.peer_addr()?.ip().to_canonical();
        let mut control = ControlConnection::new(stream)?;
        let order: TestOrder = control.hear(ORDER, || self.state.is_over())?;
        let (test, accepted) = match self.accept_order(&order, client, TestToken::draw()?) {
            Ok(begun) => begun,
            Err(why) => {
                (self.tell)(ServerEvent::Refused { client, why: &why });
                return control.say(&Reply::Err(why));
            }
        };
        let times = order.times;
        (self.tell)(ServerEvent::Begun { client, times });
        let outcome = control
            .say(&Reply::Ok(accepted))
            .and_then(|()| self.obey(&order, &test, &mut control));
        // Before the client is told, because its next test may follow at once.
        self.state.end();
        let error = outcome.as_ref().err();
        (self.tell)(ServerEvent::Ended { client, error });
        control.say(&outcome?)
    }

    /// Carries out a client's order.
    fn obey(
        self,
        order: &TestOrder,
        test: &Test,
        control: &mut ControlConnection,
    ) -> io::Result<ServerResult> {
        let is_over = || self.state.is_over() || test.is_over();
        let _: Go = control.hear(PATIENCE, is_over)?;
        let plan = Timetable::starting_now(self.state.watch, &order.times);
        control.say(&LoadStarted)?;
        let patience = order.times.total().saturating_add(PATIENCE);
        let (voice_sent, voice_arrivals) = match order.voice {
            true => self.talk(order, test, &plan, || control.hear(patience, is_over))?,
            false => {
                let _: Finish = control.hear(patience, is_over)?;
                (0, Arrivals::default())
            }
        };
        Ok(ServerResult {
            voice_sent,
            voice_arrivals,
            bytes_used_up: test.is_used_up(),
        })
    }

    fn accept_order(
        self,
        order: &TestOrder,
        client: IpAddr,
        token: TestToken,
    ) -> Result<(Arc<Test>, Accepted), String> {
        if order.version != VERSION {
            return Err(format!(
                "it speaks version {VERSION} of the test, and this end version {}: install the same \
                 version of airlane at both",
                order.version
            ));
        }
        let (load, longest) = (order.times.total(), self.config.longest);
        if load > longest {
            return Err(format!(
                "it allows tests of at most {longest:?}, and this one would take {load:?}"
            ));
        }
        let end_ns = from_now(self.state.watch, load.saturating_add(2 * PATIENCE));
        // The peer of a link orders tests over the link also for the path below it, where it has another address.
        let only = matches!(self.config.accept_from, AcceptFrom::Address(_)).then_some(client);
        let test = self
            .state
            .begin(token, only, end_ns, self.config.most_bytes);
        let test = test.ok_or("another test is running; try again when it has ended")?;
        let name = order.congestion_control.as_deref();
        if let Err(error) = voice::mark(&self.sockets.voice, order.marked) {
            self.state.end();
            return Err(format!("its kernel marks no packets: {error}"));
        }
        let congestion_control = match self.sockets.set_congestion_control(name) {
            Ok(name) => name,
            Err(why) => {
                self.state.end();
                return Err(why);
            }
        };
        let accepted = Accepted {
            token,
            congestion_control,
            echo_port: self.echo_port,
            file_port: self.ports.file,
            pages_port: self.ports.pages,
            voice_port: self.ports.voice,
            download_port: self.download_port,
        };
        Ok((test, accepted))
    }

    /// Sends and receives voice until the client has finished. Returns the number sent, and the arrivals.
    fn talk(
        self,
        order: &TestOrder,
        test: &Test,
        plan: &Timetable,
        finish: impl FnOnce() -> io::Result<Finish>,
    ) -> io::Result<(u64, Arrivals)> {
        let finished = AtomicBool::new(false);
        let is_over = || finished.load(Ordering::Relaxed) || test.is_over();
        let (socket, token) = (&self.sockets.voice, test.token);
        std::thread::scope(|scope| {
            // Voice is sent to the source address of the client's voice only.
            let to = || *lock(&test.caller);
            let sender = scope.spawn(move || voice::send(socket, to, token, plan, is_over));
            let receiver = scope.spawn(move || {
                let arrived = |from| {
                    if !test.may_send_to(from) {
                        return false;
                    }
                    *lock(&test.caller) = Some(from);
                    self.config.progress.add(Counter::VoiceUp, 1);
                    true
                };
                let bounds = (self.state.watch, voice::most_arrivals(&order.times));
                voice::receive(socket, token, bounds, is_over, arrived)
            });
            let finish = finish();
            finished.store(true, Ordering::Relaxed);
            let broken = |_| io::Error::other("a thread of the server panicked");
            let sent = sender.join().map_err(broken)?;
            let arrivals = receiver.join().map_err(broken)??;
            let clocks = finish?.clocks;
            let delay = |sent, received| clocks.up_ns(sent, received);
            Ok((sent, Arrivals::count(&arrivals, delay)))
        })
    }
}

fn accept(listener: &TcpListener, state: &ServerState<'_>, mut serve: impl FnMut(TcpStream)) {
    while !state.is_over() {
        match listener.accept() {
            Ok((stream, _)) => serve(stream),
            Err(e) if is_timeout(&e) => {}
            // Out of descriptors, or a connection that was reset before it was accepted.
            Err(_) => std::thread::sleep(GLANCE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_cannot_load_a_module_and_gets_the_available_list() {
        let loaded = "reno cubic\n";
        assert_eq!(admit_congestion_control("cubic", loaded), Ok(()));
        // Neither a prefix of a name, nor any other string that the kernel would accept.
        for name in ["vegas", "cub", "cubic\0", "reno cubic", ""] {
            let why = admit_congestion_control(name, loaded).unwrap_err();
            assert!(why.contains("it has reno, cubic"), "{why}");
        }
    }
}
