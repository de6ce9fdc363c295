use super::*;
use crate::control::*;
use std::collections::BTreeMap;

use crate::status::{PeerStatus, SessionReport, TunReport, UnderlayReport};

#[derive(Default)]
struct Sample {
    recorded: Option<u32>,
    registered: Option<u64>,
    /// Number of additional peers.
    peers: usize,
    /// The last rate that a client wanted.
    rate: Option<Rate>,
}

impl Served for Sample {
    fn status(&mut self) -> Status {
        let mut status = sample();
        let more = std::iter::repeat_n(status.peers[0].clone(), self.peers);
        status.peers.extend(more.collect::<Vec<_>>());
        status
    }

    fn flows(&mut self) -> Vec<PeerFlows> {
        let peer = "sample".to_owned();
        let (flows, others) = (Vec::new(), 7);
        vec![PeerFlows {
            peer,
            flows,
            others,
            classes: None,
        }]
    }

    fn reload(&mut self, file: &LiveConfig, _dry_run: bool) -> Result<Vec<String>, String> {
        match file.name() {
            "sample" => Ok(vec!["everything".to_owned()]),
            other => Err(format!("{other} is somebody else")),
        }
    }

    fn record(&mut self, _peer: Option<&str>) -> Result<Recorded, String> {
        if self.recorded.is_some() {
            return Err("it records already".to_owned());
        }
        self.recorded = Some(0);
        Ok(Recorded {
            name: "sample".to_owned(),
            rate_bps: 1,
            overhead_bytes: 42,
        })
    }

    fn recorded(&mut self, out: &mut Vec<u8>) {
        if let Some(number) = &mut self.recorded {
            // More at once than the socket's buffer holds.
            for _ in 0..100_000 {
                out.extend_from_slice(&number.to_be_bytes());
                *number += 1;
            }
        }
    }

    fn end_record(&mut self, out: &mut Vec<u8>) {
        if let Some(number) = self.recorded.take() {
            out.extend_from_slice(&number.to_be_bytes());
        }
    }

    fn register(&mut self, client: u64, flow: FlowKey) -> Result<(), String> {
        match flow.dst_port {
            7008 => {
                self.registered = Some(client);
                Ok(())
            }
            _ => Err("no peer has it".to_owned()),
        }
    }

    fn pull(&mut self, client: u64) -> Result<FlowOffer, String> {
        if self.registered != Some(client) {
            return Err("register a flow first".to_owned());
        }
        Ok(FlowOffer {
            peer: "sample".to_owned(),
            service: "files".to_owned(),
            flows: 1,
            interval_ns: 1,
            local: None,
            route: None,
        })
    }

    fn keep_registered(&mut self, is_there: &dyn Fn(u64) -> bool) {
        self.registered = self.registered.filter(|client| is_there(*client));
    }

    fn change_services(&mut self, change: &ServiceChange) -> Result<Vec<String>, String> {
        Ok(vec![format!("{change:?}")])
    }

    fn ask_peers(&mut self) -> usize {
        2
    }

    fn change_rate(&mut self, rate: Rate) -> Result<Vec<String>, String> {
        self.rate = Some(rate);
        Ok(vec![format!("{rate}")])
    }
}

fn sample() -> Status {
    Status {
        schema: 2,
        version: "0".to_owned(),
        commit: None,
        protocol: 8,
        name: "sample".to_owned(),
        uptime_ns: 7,
        tun: TunReport {
            name: "air0".to_owned(),
            mtu_bytes: 1452,
            packets_read: 0,
            read_bytes: 0,
            packets_written: 0,
            written_bytes: 0,
            mss_clamped: 0,
        },
        underlay: UnderlayReport {
            listen: "0.0.0.0:7007".parse().unwrap(),
            interface: None,
            left_port: None,
            security: "none".to_owned(),
            secure: None,
            rate_bps: Some(1),
            frame_overhead_bytes: 42,
            datagrams_sent: 0,
            sent_bytes: 0,
            datagrams_received: 0,
            received_bytes: 0,
        },
        peers: vec![PeerStatus {
            name: "farm".to_owned(),
            address: "192.0.2.7:7007".parse().ok(),
            answered_from: None,
            host: None,
            unresolved: None,
            key: None,
            keys_age_ns: None,
            version: None,
            tunnel_addresses: Vec::new(),
            prefixes: vec!["10.7.0.2/32".to_owned()],
            weight: 1.0,
            rate_bps: Some(1),
            sending_rate_bps: 1,
            found_rate: None,
            shares_with: vec![],
            path_mtu_bytes: 1500,
            path_too_narrow: false,
            path_narrowed: 0,
            datagrams_sent: 0,
            sent_bytes: 0,
            datagrams_received: 0,
            received_bytes: 0,
            session: SessionReport {
                state: "waiting".to_owned(),
                id: None,
                epoch: "00".to_owned(),
                peer_epoch: None,
                age_ns: None,
                sessions: 0,
                disconnections: 0,
                disconnected_ns: None,
                unheard_ns: None,
                reached_ns: None,
                rtt_ns: None,
                refused: None,
                other_protocol: None,
                shared_key: None,
            },
            services: Vec::new(),
            drops: BTreeMap::from([("wrong-source".to_owned(), 4)]),
        }],
        drops: BTreeMap::from([("not-ip".to_owned(), 3)]),
        callers: Vec::new(),
        classes: Vec::new(),
    }
}

/// Serves repeatedly until `done`.
fn serve_until(server: &mut Server, done: impl Fn() -> bool) {
    serve_with(&mut Sample::default(), server, done);
}

fn serve_with(node: &mut Sample, server: &mut Server, done: impl Fn() -> bool) {
    // A minute, only to prevent hanging.
    for _ in 0..60_000 {
        server.serve(node);
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("not served");
}

#[test]
fn a_client_gets_the_status_and_the_file_goes_with_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run/sample.sock");
    let mut server = Server::bind(&path, None).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    // Other users may list the directory, and open no socket.
    assert_eq!(mode(path.parent().unwrap()), 0o755);
    let asking = std::thread::spawn({
        let path = path.clone();
        move || status(&path)
    });
    serve_until(&mut server, || asking.is_finished());
    assert_eq!(asking.join().unwrap().unwrap(), sample());
    drop(server);
    assert!(!path.exists());
    let error = status(&path).unwrap_err().to_string();
    assert!(error.contains("no node answers"), "{error}");
}

/// The socket's buffer holds about 200 kB.
#[test]
fn an_answer_longer_than_the_socket_buffer_arrives_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sample.sock");
    let mut server = Server::bind(&path, None).unwrap();
    let mut node = Sample {
        peers: 3_000,
        ..Sample::default()
    };
    let asking = std::thread::spawn(move || {
        // Two requests at once, from a client that then closes its side.
        let mut stream = UnixStream::connect(&path).unwrap();
        let request = Request::Status {}.to_line();
        stream.write_all(request.repeat(2).as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let lines = BufReader::new(stream).lines();
        lines.map(Result::unwrap).collect::<Vec<_>>()
    });
    serve_with(&mut node, &mut server, || asking.is_finished());
    let lines = asking.join().unwrap();
    assert_eq!(lines.len(), 2);
    for line in lines {
        let status: Status = serde_json::from_str(&line).unwrap();
        assert!(line.len() > 1_000_000 && status.peers.len() == 3_001);
    }
    assert!(server.clients.is_empty());
}

/// A node that stood still for a while has told its client that nothing came of it.
#[test]
fn a_change_by_a_client_that_is_gone_is_not_made() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sample.sock");
    let mut server = Server::bind(&path, None).unwrap();
    let rate = Rate::from_bps(5_000_000).unwrap();
    let ask = |end: fn(&UnixStream)| {
        let mut stream = UnixStream::connect(&path).unwrap();
        let request = Request::Rate { rate }.to_line();
        stream.write_all(request.as_bytes()).unwrap();
        end(&stream);
        stream
    };
    let mut node = Sample::default();
    drop(ask(|_| ()));
    for _ in 0..20 {
        server.serve(&mut node);
    }
    assert_eq!(node.rate, None);
    // One that has closed its side alone waits for the answer.
    let _waits = ask(|stream| stream.shutdown(Shutdown::Write).unwrap());
    for _ in 0..20 {
        server.serve(&mut node);
    }
    assert_eq!(node.rate, Some(rate));
}

#[test]
fn a_reload_request_reaches_the_node_and_returns_its_answer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sample.sock");
    let mut server = Server::bind(&path, None).unwrap();
    let text = "schema = 1\nname = \"sample\"\n[tun]\n[link]\nrate = \"20 Mbit/s\"\n\
                security = \"none\"\nunderlay = { kind = \"udp\", listen = \"0.0.0.0:7007\", \
                peer = \"192.0.2.7:7007\" }\n";
    let good: LiveConfig = airlane_base::config::load(text, "sample.toml").unwrap();
    let other = LiveConfig {
        name: Some("other".to_owned()),
        ..good.clone()
    };
    let bad = LiveConfig {
        schema: 2,
        ..good.clone()
    };
    let asking = std::thread::spawn(move || [good, other, bad].map(|f| reload(&path, &f, false)));
    serve_until(&mut server, || asking.is_finished());
    let [good, other, bad] = asking.join().unwrap();
    assert_eq!(good.unwrap(), ["everything"]);
    assert!(other.unwrap_err().to_string().contains("somebody else"));
    assert!(bad.unwrap_err().to_string().contains("airlane explain"));
}

#[test]
fn a_recording_comes_whole_and_ends_with_its_reader() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sample.sock");
    let mut server = Server::bind(&path, None).unwrap();
    let mut node = Sample::default();
    let reading = std::thread::spawn({
        let path = path.clone();
        move || {
            let mut recording = record(&path, None).unwrap();
            assert_eq!(recording.what.overhead_bytes, 42);
            let again = record(&path, None).unwrap_err().to_string();
            assert!(again.contains("already"), "{again}");
            let mut bytes = Vec::new();
            while recording.next(PATIENCE, &mut bytes).unwrap() != Some(0) {
                if bytes.len() > 1_000_000 {
                    recording.stop();
                }
            }
            bytes
        }
    });
    serve_with(&mut node, &mut server, || reading.is_finished());
    let bytes = reading.join().unwrap();
    let numbers: Vec<u32> = bytes
        .chunks(4)
        .map(|four| u32::from_be_bytes(four.try_into().unwrap()))
        .collect();
    // Nothing is missing, the last block included.
    assert!(numbers.iter().zip(0..).all(|(a, b)| *a == b));
    assert!(numbers.len() > 250_000 && numbers.len() % 100_000 == 1);
    assert!(node.recorded.is_none());
    assert!(server.clients.is_empty());

    // A reader that is killed also ends its recording.
    let dying = std::thread::spawn(move || drop(record(&path, None).unwrap()));
    serve_with(&mut node, &mut server, || dying.is_finished());
    dying.join().unwrap();
    for _ in 0..10 {
        server.serve(&mut node);
    }
    assert!(node.recorded.is_none());
    assert!(server.clients.is_empty());
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sample.sock");
    // The file of a listener that was closed.
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let mut living = Server::bind(&path, None).unwrap();
    let starting = std::thread::spawn({
        let path = path.clone();
        move || Server::bind(&path, None).unwrap_err()
    });
    serve_until(&mut living, || starting.is_finished());
    let error = starting.join().unwrap();
    assert!(error.source.to_string().contains("is running"), "{error}");
    assert!(path.exists(), "the living one keeps its socket");
    let file = directory.path().join("precious.sock");
    fs::write(&file, "text").unwrap();
    let error = Server::bind(&file, None).unwrap_err();
    assert!(error.source.to_string().contains("not a socket"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "text");
}

/// A node that is shutting down answers no requests, and keeps its socket until its interface is gone.
#[test]
fn a_client_waits_a_bounded_time_for_a_node_that_is_ending() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sample.sock");
    let ending = Server::bind(&path, None).unwrap();
    let ended = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(900));
        drop(ending);
    });
    let stuck = Server::bind(&path, None).unwrap();
    ended.join().unwrap();
    assert!(
        path.exists(),
        "the one that has ended leaves the socket of the next"
    );
    let error = Server::bind(&path, None).unwrap_err();
    let why = error.source.to_string();
    assert!(why.contains("neither answers nor ends"), "{error}");
    drop(stuck);
    assert!(!path.exists());
}

/// The owner of the directory, such as the user of another link, may replace the socket by any file meanwhile.
#[test]
fn only_the_own_socket_changes_permissions() {
    let directory = tempfile::tempdir().unwrap();
    let (path, precious) = (
        directory.path().join("sock"),
        directory.path().join("shadow"),
    );
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    let listener = UnixListener::bind(&path).unwrap();
    restrict(&path, None).unwrap();
    assert_eq!(mode(&path), 0o600);
    restrict(&path, Some(rustix::process::getegid().as_raw())).unwrap();
    assert_eq!(mode(&path), 0o660);
    drop(listener);
    fs::write(&precious, "text").unwrap();
    fs::set_permissions(&precious, Permissions::from_mode(0o640)).unwrap();
    for lies in [false, true] {
        fs::remove_file(&path).unwrap();
        match lies {
            true => std::os::unix::fs::symlink(&precious, &path).unwrap(),
            false => fs::hard_link(&precious, &path).unwrap(),
        }
        assert!(restrict(&path, None).is_err());
        assert_eq!(mode(&precious), 0o640);
    }
    if rustix::process::geteuid().is_root() {
        fs::remove_file(&path).unwrap();
        let _others = UnixListener::bind(&path).unwrap();
        chown(&path, Some(65_534), None).unwrap();
        assert!(restrict(&path, None).is_err());
    }
}

/// A listener whose queue is full accepts no connection: a plain connect would wait for ever.
#[test]
fn a_listener_that_does_not_accept_blocks_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sample.sock");
    let full = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    full.bind(&SockAddr::unix(&path).unwrap()).unwrap();
    full.listen(0).unwrap();
    let _first = UnixStream::connect(&path).unwrap();
    let error = Server::bind(&path, None).unwrap_err();
    assert!(
        error.source.to_string().contains("does not accept"),
        "{error}"
    );
}

#[test]
fn nonsense_is_refused_and_endless_requests_are_cut() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sample.sock");
    let mut server = Server::bind(&path, None).unwrap();
    let asking = std::thread::spawn({
        let path = path.clone();
        move || {
            let mut stream = UnixStream::connect(&path).unwrap();
            stream.write_all(b"{\"command\":\"fly\"}\n").unwrap();
            let mut answer = String::new();
            BufReader::new(stream).read_line(&mut answer).unwrap();
            let mut endless = UnixStream::connect(&path).unwrap();
            endless.write_all(&[b'x'; 2 * MAX_REQUEST]).unwrap();
            let cut = matches!(endless.read(&mut [0; 8]), Ok(0) | Err(_));
            (answer, cut)
        }
    });
    serve_until(&mut server, || asking.is_finished());
    let (answer, cut) = asking.join().unwrap();
    assert!(answer.contains("not a request") && answer.contains("status"));
    assert!(cut);
    // More clients than there is room for: the latest is served.
    let idle: Vec<_> = (0..2 * MAX_CLIENTS)
        .map(|_| UnixStream::connect(&path).unwrap())
        .collect();
    let asking = std::thread::spawn(move || status(&path));
    serve_until(&mut server, || asking.is_finished());
    asking.join().unwrap().unwrap();
    assert!(server.clients.len() <= MAX_CLIENTS);
    drop(idle);
    serve_until(&mut server, || true);
}
