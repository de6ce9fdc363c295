//! The sockets of a relay and their options.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};

use super::{RelayConfig, RelayError, Target, failed};
use crate::netlink::Netlink;

/// Limit of connections that wait to be accepted.
const BACKLOG: i32 = 1024;
/// Two sockets, and a pipe of two ends for each direction.
const DESCRIPTORS_EACH: u64 = 6;
/// Descriptors of the rest of the program.
const DESCRIPTORS_BESIDE: u64 = 128;

/// An idle connection is probed after two minutes, and given up two minutes later if there is no answer.
fn keepalive() -> TcpKeepalive {
    TcpKeepalive::new()
        .with_time(Duration::from_secs(120))
        .with_interval(Duration::from_secs(30))
        .with_retries(4)
}

/// Raises the limit of descriptors to what the relay may need.
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

/// The listening socket.
pub(super) fn listen(config: &RelayConfig) -> Result<Socket, RelayError> {
    let RelayConfig { listen, target, .. } = config;
    let socket = new(*listen).map_err(failed("open a socket"))?;
    let tell = || {
        socket.set_reuse_address(true)?;
        if target.is_transparent() {
            take_any(&socket, *listen)?;
        }
        // Accepted sockets inherit the buffer sizes.
        tell_buffers(&socket, config)?;
        socket.bind(&SockAddr::from(*listen))?;
        socket.listen(BACKLOG)
    };
    tell().map_err(failed(format!("listen on {listen}")))?;
    Ok(socket)
}

/// Sets the options of an accepted or connecting socket.
pub(super) fn tell_client(socket: &Socket) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    // The source has already applied Nagle's algorithm.
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(&keepalive())
}

/// Destination of an accepted connection.
pub(super) fn destination(client: &Socket, target: Target) -> io::Result<SocketAddr> {
    match target {
        Target::Address(address) => Ok(address),
        Target::Original { .. } => {
            let original = client.local_addr()?.as_socket();
            Ok(plain(original.ok_or(io::ErrorKind::AddrNotAvailable)?))
        }
    }
}

/// Converts an IPv4-mapped IPv6 address to IPv4.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Whether a connection to `target` would reach the relay's own listener at `listen`, and be relayed to
/// itself without end.
pub(super) fn is_itself(target: SocketAddr, listen: SocketAddr) -> bool {
    let (target, listen) = (plain(target), plain(listen));
    let everywhere = listen.ip().is_unspecified();
    // The kernel connects to the loopback for an unspecified address.
    let to = match target.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    // A listener on the unspecified IPv6 address also accepts IPv4, unless the system is configured otherwise.
    let reaches = listen.ip() == to || everywhere && (listen.is_ipv6() || to.is_ipv4());
    target.port() == listen.port() && reaches && is_local(to)
}

/// Whether the address belongs to this machine.
pub(super) fn is_local(address: IpAddr) -> bool {
    if address.is_unspecified() || address.is_loopback() {
        return true;
    }
    // Ask the routing table; if that fails, try to bind a socket.
    let way = Netlink::open().and_then(|mut netlink| netlink.is_local(address));
    way.unwrap_or_else(|_| UdpSocket::bind((address, 0)).is_ok())
}

/// Connects to `to`, from the client's address if configured.
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

/// Lets the socket use addresses that do not belong to this machine.
fn take_any(socket: &Socket, like: SocketAddr) -> io::Result<()> {
    match like {
        SocketAddr::V4(_) => socket.set_ip_transparent_v4(true),
        SocketAddr::V6(_) => socket.set_ip_transparent_v6(true),
    }
}

/// Sets the buffer sizes. Must be called before connecting or listening, because the window scale depends on them.
fn tell_buffers(socket: &Socket, config: &RelayConfig) -> io::Result<()> {
    let Some(size) = config.socket_buffer else {
        return Ok(());
    };
    let bytes = usize::try_from(size.as_bytes()).unwrap_or(usize::MAX);
    socket.set_recv_buffer_size(bytes)?;
    socket.set_send_buffer_size(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_to_itself_is_detected_in_every_notation() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        for (target, listen, itself) in [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "0.0.0.0:80", true),
            ("127.9.9.9:80", "0.0.0.0:80", true),
            ("0.0.0.0:80", "127.0.0.1:80", true),
            ("0.0.0.0:80", "0.0.0.0:80", true),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "[::]:80", true),
            ("[::1]:80", "[::]:80", true),
            ("127.0.0.1:81", "0.0.0.0:80", false),
            ("127.0.0.2:80", "127.0.0.1:80", false),
            ("[::1]:80", "0.0.0.0:80", false),
            ("192.0.2.77:80", "0.0.0.0:80", false),
        ] {
            assert_eq!(
                is_itself(at(target), at(listen)),
                itself,
                "{target} {listen}"
            );
        }
    }
}
