//! Split connections over the kernel's sockets: delivered bytes, bytes held in the relay, and the effect on
//! one side when the other fails.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use airlane_base::Size;
use airlane_live::relay::{Relay, RelayConfig, RelayError, RelayReport, Target};
use socket2::SockRef;

use super::common::{Namespace, PATIENCE, cable, can_run};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn config(target: Target) -> RelayConfig {
    RelayConfig {
        listen: ANY,
        target,
        pool: Size::from_bytes(64_000),
        connections: 100,
        socket_buffer: None,
        connect_timeout: PATIENCE,
        idle_timeout: PATIENCE * 100,
        local_targets: false,
    }
}

/// A relay in a thread.
struct Running {
    at: SocketAddr,
    stop: UnixStream,
    thread: JoinHandle<Result<RelayReport, RelayError>>,
}

impl Running {
    fn start(config: RelayConfig) -> Self {
        Self::start_in(config, std::thread::spawn)
    }

    fn start_in(
        config: RelayConfig,
        spawn: impl FnOnce(
            Box<dyn FnOnce() -> Result<RelayReport, RelayError> + Send>,
        ) -> JoinHandle<Result<RelayReport, RelayError>>,
    ) -> Self {
        let (stop, stopped) = UnixStream::pair().unwrap();
        let (told, is_told) = std::sync::mpsc::channel();
        let thread = spawn(Box::new(move || {
            let mut relay = Relay::open(config)?;
            told.send(relay.listens_at()).unwrap();
            let (_never, tell) = UnixStream::pair().unwrap();
            relay.run(stopped.as_fd(), tell.as_fd())?;
            Ok(relay.report())
        }));
        let at = is_told.recv_timeout(PATIENCE).unwrap();
        Self { at, stop, thread }
    }

    fn connect(&self) -> TcpStream {
        patient(TcpStream::connect(self.at).unwrap())
    }

    fn stop(self) -> RelayReport {
        (&self.stop).write_all(b"x").unwrap();
        self.thread.join().unwrap().unwrap()
    }
}

/// Sets timeouts, so that a test cannot hang.
fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn taken(server: &TcpListener) -> TcpStream {
    patient(server.accept().unwrap().0)
}

fn reset(stream: &TcpStream) {
    SockRef::from(stream)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
}

/// Bytes in which no part equals another.
fn bytes(len: usize) -> Vec<u8> {
    let mut state = 1u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(next).collect()
}

fn says_reset(result: std::io::Result<usize>) -> bool {
    result.is_err_and(|error| {
        matches!(
            error.kind(),
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
        )
    })
}

/// Within 5 s, which is before any timer of the relay or of TCP and enough for a busy machine.
fn is_reset_at_once(stream: &mut TcpStream) -> bool {
    let begun = Instant::now();
    says_reset(stream.read(&mut [0; 10])) && begun.elapsed() < Duration::from_secs(5)
}

#[test]
fn all_bytes_are_relayed_once_and_each_close_follows_them() {
    let server = TcpListener::bind(ANY).unwrap();
    let relay = Running::start(config(Target::Address(server.local_addr().unwrap())));
    let sent = bytes(3_000_000);
    let echo = std::thread::spawn(move || {
        let mut connection = taken(&server);
        let mut got = vec![];
        connection.read_to_end(&mut got).unwrap();
        connection.write_all(&got).unwrap();
        got
    });
    let mut client = relay.connect();
    client.write_all(&sent).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut back = vec![];
    client.read_to_end(&mut back).unwrap();
    assert!(back == sent && echo.join().unwrap() == sent);
    drop(client);
    let report = relay.stop();
    assert_eq!((report.accepted, report.closed, report.open), (1, 1, 0));
    let both = [report.to_servers_bytes, report.to_clients_bytes];
    assert_eq!(both, [3_000_000; 2]);
    assert_eq!(report.held_bytes, 0);
}

/// After one direction is closed, the other goes on without limit.
#[test]
fn a_half_closed_connection_goes_on() {
    let server = TcpListener::bind(ANY).unwrap();
    let relay = Running::start(config(Target::Address(server.local_addr().unwrap())));
    let mut client = relay.connect();
    let mut connection = taken(&server);
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(connection.read(&mut [0; 10]).unwrap(), 0);
    for byte in 0..20 {
        connection.write_all(&[byte]).unwrap();
        let mut got = [0];
        client.read_exact(&mut got).unwrap();
        assert_eq!(got, [byte]);
    }
    drop(connection);
    assert_eq!(client.read(&mut [0; 10]).unwrap(), 0);
}

/// Bytes that the server does not read are not read from the client: the relay fills its pool, and the source stalls.
#[test]
fn a_server_that_reads_nothing_stalls_its_client() {
    let server = TcpListener::bind(ANY).unwrap();
    let relay = Running::start(RelayConfig {
        pool: Size::from_bytes(20_000),
        socket_buffer: Some(Size::from_bytes(30_000)),
        ..config(Target::Address(server.local_addr().unwrap()))
    });
    let mut client = relay.connect();
    let mut connection = taken(&server);
    let all = bytes(20_000_000);
    client.set_nonblocking(true).unwrap();
    let mut sent = 0;
    let mut still = Instant::now();
    // That nothing more is sent can only be observed for a while.
    while still.elapsed() < Duration::from_secs(1) {
        match client.write(&all[sent..]) {
            Ok(n) => {
                sent += n;
                still = Instant::now();
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(sent < all.len(), "{sent}");
    client.set_nonblocking(false).unwrap();
    let rest = all[sent..].to_vec();
    let writer = std::thread::spawn(move || {
        client.write_all(&rest).unwrap();
        client
    });
    let mut got = vec![0; all.len()];
    connection.read_exact(&mut got).unwrap();
    assert!(got == all);
    drop(writer.join().unwrap());
    let report = relay.stop();
    assert!(
        (1..=20_000).contains(&report.most_held_bytes),
        "{}",
        report.most_held_bytes
    );
}

#[test]
fn a_side_that_dies_resets_the_other() {
    let server = TcpListener::bind(ANY).unwrap();
    let relay = Running::start(config(Target::Address(server.local_addr().unwrap())));
    for client_dies in [true, false] {
        let client = relay.connect();
        let connection = taken(&server);
        let (dead, mut other) = match client_dies {
            true => (client, connection),
            false => (connection, client),
        };
        reset(&dead);
        drop(dead);
        assert!(is_reset_at_once(&mut other), "{client_dies}");
    }
    // The server closes with unread bytes, in the middle of a transfer.
    let mut client = relay.connect();
    let connection = taken(&server);
    client.write_all(&bytes(100_000)).unwrap();
    assert_eq!(connection.peek(&mut [0]).unwrap(), 1);
    drop(connection);
    assert!(is_reset_at_once(&mut client));
    let report = relay.stop();
    assert_eq!((report.reset_by_client, report.reset_by_server), (1, 2));
    assert_eq!((report.open, report.held_bytes), (0, 0));
}

#[test]
fn an_unreachable_target_resets_the_client() {
    let nobody = TcpListener::bind(ANY).unwrap().local_addr().unwrap();
    let relay = Running::start(config(Target::Address(nobody)));
    assert!(says_reset(relay.connect().read(&mut [0; 10])));
    let report = relay.stop();
    assert_eq!((report.unreachable, report.open), (1, 0));
}

#[test]
fn connections_beyond_the_limit_are_reset_and_those_within_go_on() {
    let server = TcpListener::bind(ANY).unwrap();
    let relay = Running::start(RelayConfig {
        connections: 2,
        ..config(Target::Address(server.local_addr().unwrap()))
    });
    let mut within: Vec<_> = (0..2).map(|_| (relay.connect(), taken(&server))).collect();
    assert!(says_reset(relay.connect().read(&mut [0; 10])));
    for (client, connection) in &mut within {
        client.write_all(b"here").unwrap();
        let mut got = [0; 4];
        connection.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"here");
    }
    // Places are free again once both sides have closed.
    drop(within);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut client = relay.connect();
        // A connection that is reset at once may fail here.
        if client.write_all(b"x").is_ok() && !says_reset(peek(&client)) {
            drop(taken(&server));
            assert_eq!(client.read(&mut [0; 10]).unwrap_or(0), 0);
            break;
        }
        assert!(Instant::now() < deadline);
    }
    assert_eq!(relay.stop().most_open, 2);
}

/// A client that opens connections and stays idle cannot keep others out for ever.
#[test]
fn idle_connections_end_and_make_room() {
    let server = TcpListener::bind(ANY).unwrap();
    let limit = Duration::from_millis(300);
    let relay = Running::start(RelayConfig {
        connections: 2,
        idle_timeout: limit,
        ..config(Target::Address(server.local_addr().unwrap()))
    });
    let (mut silent, _other) = (relay.connect(), taken(&server));
    let (mut busy, mut end) = (relay.connect(), taken(&server));
    for _ in 0..10 {
        std::thread::sleep(limit / 5);
        busy.write_all(b"x").unwrap();
        end.read_exact(&mut [0]).unwrap();
    }
    assert!(says_reset(silent.read(&mut [0; 10])));
    let (mut next, mut last) = (relay.connect(), taken(&server));
    next.write_all(b"x").unwrap();
    last.read_exact(&mut [0]).unwrap();
    busy.write_all(b"x").unwrap();
    end.read_exact(&mut [0]).unwrap();
    let report = relay.stop();
    assert_eq!((report.idle, report.refused, report.cut), (1, 0, 2));
}

/// The connection's state after a short wait: no data, or a reset.
fn peek(stream: &TcpStream) -> std::io::Result<usize> {
    let soon = Some(Duration::from_millis(200));
    stream.set_read_timeout(soon).unwrap();
    let said = stream.peek(&mut [0; 1]);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    match said {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        said => said,
    }
}

/// The relay cannot know whether the transfers were complete, so no connection may end with a FIN.
#[test]
fn a_relay_that_ends_resets_what_it_has() {
    let server = TcpListener::bind(ANY).unwrap();
    let relay = Running::start(config(Target::Address(server.local_addr().unwrap())));
    let mut client = relay.connect();
    let mut connection = taken(&server);
    client.write_all(b"x").unwrap();
    connection.read_exact(&mut [0]).unwrap();
    let report = relay.stop();
    assert_eq!((report.cut, report.open), (1, 0));
    assert!(says_reset(client.read(&mut [0; 10])));
    assert!(says_reset(connection.read(&mut [0; 10])));
}

#[test]
fn unworkable_relays_are_refused_before_they_start() {
    let address = TcpListener::bind(ANY).unwrap().local_addr().unwrap();
    let loops = RelayConfig {
        listen: address,
        ..config(Target::Address(address))
    };
    assert!(matches!(Relay::open(loops), Err(RelayError::Loop { .. })));
    // The same address in another form.
    let loops = RelayConfig {
        listen: SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port()),
        ..config(Target::Address(address))
    };
    assert!(matches!(Relay::open(loops), Err(RelayError::Loop { .. })));
    let target = Target::Address(address);
    let empty = RelayConfig {
        pool: Size::from_bytes(0),
        ..config(target)
    };
    assert!(matches!(Relay::open(empty), Err(RelayError::Nothing(_))));
    let many = RelayConfig {
        connections: 1_000_000_000,
        ..config(target)
    };
    let refused = Relay::open(many).unwrap_err();
    assert!(
        matches!(refused, RelayError::Descriptors { .. }),
        "{refused}"
    );
}

/// A base station between two networks relays every connection to one port, whatever its destination, and
/// each side sees the other's address.
#[test]
fn intercepted_connections_reach_their_original_target() {
    if !can_run("relay of connections of others") {
        return;
    }
    let [source, base, mobile] = ["source", "base", "mobile"].map(Namespace::new);
    cable(&source, "eth0", &base, "wire");
    cable(&base, "radio", &mobile, "eth0");
    base.sysctl("net/ipv4/ip_forward", "1");
    for (namespace, device, address, gateway) in [
        (&source, "eth0", "10.1.0.2/24", Some("10.1.0.1")),
        (&mobile, "eth0", "10.2.0.2/24", Some("10.2.0.1")),
        (&base, "wire", "10.1.0.1/24", None),
        (&base, "radio", "10.2.0.1/24", None),
    ] {
        namespace.ip(&format!("address add {address} dev {device}"));
        if let Some(gateway) = gateway {
            namespace.ip(&format!("route add default via {gateway}"));
        }
    }
    // Everything that arrives over either cable is delivered locally, as TPROXY does for single ports.
    for device in ["wire", "radio"] {
        base.ip(&format!("rule add iif {device} lookup 100"));
    }
    base.ip("route add local 0.0.0.0/0 dev lo table 100");
    let at = SocketAddr::from(([10, 2, 0, 2], 8080));
    for keep_source in [true, false] {
        let told = RelayConfig {
            listen: SocketAddr::from(([0, 0, 0, 0], 8080)),
            ..config(Target::Original { keep_source })
        };
        let namespace = base.clone();
        let relay = Running::start_in(told, move |work| namespace.thread(work));
        let (ready, is_ready) = std::sync::mpsc::channel();
        let server = mobile.thread(move || {
            let server = TcpListener::bind(at).unwrap();
            ready.send(()).unwrap();
            let (mut connection, from) = server.accept().unwrap();
            let mut got = vec![];
            connection.read_to_end(&mut got).unwrap();
            connection.write_all(b"answer").unwrap();
            (from, got)
        });
        is_ready.recv_timeout(PATIENCE).unwrap();
        let (answer, peer) = source.run(move || {
            let mut client = patient(TcpStream::connect(at).unwrap());
            let peer = client.peer_addr().unwrap();
            client.write_all(b"question").unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let mut answer = vec![];
            client.read_to_end(&mut answer).unwrap();
            (answer, peer)
        });
        let (from, got) = server.join().unwrap();
        assert_eq!((&*got, &*answer), (&b"question"[..], &b"answer"[..]));
        assert_eq!(peer, at);
        let source_seen = from.ip() == Ipv4Addr::new(10, 1, 0, 2);
        assert_eq!(source_seen, keep_source, "{from}");
        assert_eq!(relay.stop().closed, 1);
    }
    // A connection to the relay itself is not relayed without end, and one to another service here only if allowed.
    let own = base.clone();
    let (listening, is_listening) = std::sync::mpsc::channel();
    let local = own.thread(move || {
        // Bound before the relay, which listens on all addresses with another port.
        let server = TcpListener::bind("10.1.0.1:8081").unwrap();
        listening.send(()).unwrap();
        taken(&server).read_exact(&mut [0; 4]).unwrap();
    });
    is_listening.recv_timeout(PATIENCE).unwrap();
    for local_targets in [false, true] {
        let told = RelayConfig {
            listen: SocketAddr::from(([0, 0, 0, 0], 8080)),
            local_targets,
            ..config(Target::Original { keep_source: false })
        };
        let namespace = base.clone();
        let relay = Running::start_in(told, move |work| namespace.thread(work));
        let refused = base.run(|| {
            let client = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], 8080)));
            says_reset(patient(client.unwrap()).read(&mut [0; 10]))
        });
        assert!(refused);
        let report = relay.stop();
        assert_eq!((report.accepted, report.local), (1, 1));
    }
    base.run(|| {
        let mut client = TcpStream::connect("10.1.0.1:8081").unwrap();
        client.write_all(b"here").unwrap();
    });
    local.join().unwrap();
}
