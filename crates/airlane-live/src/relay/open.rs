//! The sockets of a relay, with what they are told.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};

use super::{RelayConfig, RelayError, Target, failed};

/// Connections that wait to be taken.
const BACKLOG: i32 = 1024;
/// Two sockets, and a pipe of two ends for each direction.
const DESCRIPTORS_EACH: u64 = 6;
/// What the rest of the program has open.
const DESCRIPTORS_BESIDE: u64 = 128;

/// Who says nothing for so long is asked whether he is there, and given up two minutes later.
fn keepalive() -> TcpKeepalive {
    TcpKeepalive::new()
        .with_time(Duration::from_secs(120))
        .with_interval(Duration::from_secs(30))
        .with_retries(4)
}

/// The process may have as many descriptors as the relay can need.
pub(super) fn allow_descriptors(connections: usize) -> Result<(), RelayError> {
    let needed = connections as u64 * DESCRIPTORS_EACH + DESCRIPTORS_BESIDE;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if let Some(limit) = maximum.filter(|maximum| *maximum < needed) {
        return Err(RelayError::Descriptors {
            connections,
            needed,
            limit,
        });
    }
    let raised = Rlimit {
        current: Some(needed),
        maximum,
    };
    setrlimit(Resource::Nofile, raised)
        .map_err(|error| failed(format!("have {needed} file descriptors"))(error.into()))
}

/// The socket that connections come in at.
pub(super) fn listen(config: &RelayConfig) -> Result<Socket, RelayError> {
    let RelayConfig { listen, target, .. } = config;
    let socket = new(*listen).map_err(failed("open a socket"))?;
    let tell = || {
        socket.set_reuse_address(true)?;
        if target.is_transparent() {
            take_any(&socket, *listen)?;
        }
        // What is taken here has the same.
        tell_buffers(&socket, config)?;
        socket.bind(&SockAddr::from(*listen))?;
        socket.listen(BACKLOG)
    };
    tell().map_err(failed(format!("listen on {listen}")))?;
    Ok(socket)
}

/// What a connection that came in is told.
pub(super) fn tell_client(socket: &Socket) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    // What waits to fill a segment has done so at its source already.
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(&keepalive())
}

/// Where a connection that came in goes on to; none if that would be the relay.
pub(super) fn destination(
    client: &Socket,
    listen: SocketAddr,
    target: Target,
) -> io::Result<Option<SocketAddr>> {
    match target {
        Target::Address(address) => Ok(Some(address)),
        Target::Original { .. } => {
            let original = client.local_addr()?.as_socket();
            let original = original.ok_or(io::ErrorKind::AddrNotAvailable)?;
            let own = original.port() == listen.port() && is_own(original);
            Ok((!own).then_some(original))
        }
    }
}

/// Whether this machine has the address. Whoever called it, without a rule, would be passed on to itself for ever.
fn is_own(address: SocketAddr) -> bool {
    UdpSocket::bind((address.ip(), 0)).is_ok()
}

/// A socket on its way to `to`, with the client's address if that is asked for.
pub(super) fn connect(to: SocketAddr, client: &Socket, config: &RelayConfig) -> io::Result<Socket> {
    let socket = new(to)?;
    tell_client(&socket)?;
    tell_buffers(&socket, config)?;
    if config.target == (Target::Original { keep_source: true }) {
        take_any(&socket, to)?;
        socket.bind(&client.peer_addr()?)?;
    }
    match socket.connect(&SockAddr::from(to)) {
        Ok(()) => Ok(socket),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

fn new(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM.nonblocking(),
        Some(Protocol::TCP),
    )?;
    Ok(socket)
}

/// The socket may have addresses that are not this machine's.
fn take_any(socket: &Socket, like: SocketAddr) -> io::Result<()> {
    match like {
        SocketAddr::V4(_) => socket.set_ip_transparent_v4(true),
        SocketAddr::V6(_) => socket.set_ip_transparent_v6(true),
    }
}

/// Before it connects or listens: the window scale follows from it.
fn tell_buffers(socket: &Socket, config: &RelayConfig) -> io::Result<()> {
    let Some(size) = config.socket_buffer else {
        return Ok(());
    };
    let bytes = usize::try_from(size.as_bytes()).unwrap_or(usize::MAX);
    socket.set_recv_buffer_size(bytes)?;
    socket.set_send_buffer_size(bytes)
}
