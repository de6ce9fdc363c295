//! Client and server on one machine, with clocks that differ by hours.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use airlane_probe::{
    AcceptFrom, ClientConfig, LocalClock, ProbeError, ServerConfig, ServerEvent, ServerPorts,
    Times, TrafficReport, run_client, serve,
};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Timeout that only ends a hang, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);
const HOURS: u64 = 5 * 3_600_000_000_000;
const ANY: ServerPorts = ServerPorts {
    control: 0,
    file: 0,
    pages: 0,
    voice: 0,
};

fn server() -> ServerConfig {
    ServerConfig {
        ports: ANY,
        watch: LocalClock { ahead_ns: HOURS },
        ..ServerConfig::new(AcceptFrom::Address(HERE))
    }
}

fn client(ports: ServerPorts) -> ClientConfig {
    ClientConfig {
        control: SocketAddr::from((HERE, ports.control)),
        times: Times {
            warmup: Duration::from_millis(200),
            measure: Duration::from_secs(1),
            grace: Duration::from_millis(500),
        },
        congestion_control: None,
        echoes: true,
        voice_port: Some(0),
        patience: PATIENCE,
        ..ClientConfig::new(HERE)
    }
}

/// Stops the server, however the test ends.
struct StopsAtLast<'a>(&'a AtomicBool);

impl Drop for StopsAtLast<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` against a server, with the server's events so far; returns its result, and all events.
fn with_server<T>(
    config: &ServerConfig,
    work: impl FnOnce(ServerPorts, &Mutex<Vec<String>>) -> T,
) -> (T, Vec<String>) {
    let stop = AtomicBool::new(false);
    let (ready, is_ready) = mpsc::channel();
    let (ready, told) = (Mutex::new(ready), Mutex::new(Vec::new()));
    let tell = |event: ServerEvent<'_>| {
        if let ServerEvent::Ready(ports) = event {
            ready.lock().unwrap().send(ports).unwrap();
        }
        told.lock().unwrap().push(format!("{event:?}"));
    };
    let done = std::thread::scope(|scope| {
        let serving = scope.spawn(|| serve(config, &stop, &tell));
        // If the client's assertions fail, the scope must not wait for a server that keeps running.
        let stopping = StopsAtLast(&stop);
        let done = work(is_ready.recv().expect("the server is ready"), &told);
        drop(stopping);
        serving.join().unwrap().unwrap();
        done
    });
    (done, told.into_inner().unwrap())
}

fn measure(config: &ClientConfig) -> TrafficReport {
    run_client(config).unwrap_or_else(|error| panic!("{error}"))
}

/// File and pages on one TCP port, a download on the same UDP port, and voice without a mark.
#[test]
fn one_port_carries_everything_unmarked() {
    let port = TcpListener::bind((HERE, 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let one = ServerConfig {
        ports: ServerPorts {
            file: port,
            pages: port,
            ..ANY
        },
        ..server()
    };
    let (report, _) = with_server(&one, |ports, _| {
        assert_eq!((ports.file, ports.pages), (port, port));
        measure(&ClientConfig {
            marked: false,
            download: true,
            ..client(ports)
        })
    });
    let file = report.file.unwrap();
    assert!(file.error.is_none() && file.received_bytes > 0, "{file:?}");
    let pages = report.pages.unwrap();
    assert!(pages.completed > 0 && pages.errors.is_empty(), "{pages:?}");
    let download = report.download.unwrap();
    assert!(download.received_bytes > 0, "{download:?}");
    assert!(report.voice_up.unwrap().received > 0);
}

#[test]
fn everything_comes_and_the_clocks_of_the_ends_need_not_agree() {
    let (report, told) = with_server(&server(), |ports, _| measure(&client(ports)));
    let file = report.file.unwrap();
    assert_eq!(file.error, None);
    assert!(file.received_bytes > 0, "{file:?}");
    let pages = report.pages.unwrap();
    assert!(pages.completed > 0 && pages.errors.is_empty(), "{pages:?}");
    for voice in [report.voice_down.unwrap(), report.voice_up.unwrap()] {
        // Packets that a slow machine delivers only after the test have not arrived.
        let whole = voice.received + voice.lost == voice.sent && voice.duplicates == 0;
        assert!(whole && voice.received > 0, "{voice:?}");
    }
    let clock = report.clock.unwrap();
    let error = clock.server_ahead_ns.abs_diff(HOURS as i64);
    assert!(error <= clock.uncertainty_ns + 1, "{clock:?}");
    let (idle, loaded) = (report.idle.unwrap(), report.loaded.unwrap());
    for echoes in [idle, loaded] {
        assert!(echoes.lost < echoes.sent, "{echoes:?}");
    }
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[2].contains("error: None"), "{told:?}");
}

#[test]
fn only_requested_applications_run() {
    let (report, _) = with_server(&server(), |ports, _| {
        measure(&ClientConfig {
            file: false,
            voice: false,
            ..client(ports)
        })
    });
    assert!(report.file.is_none() && report.voice_up.is_none() && report.voice_down.is_none());
    assert!(report.pages.unwrap().completed > 0);
}

/// The order takes one path, as over a cable, and the load another, as through a tunnel: this host has another
/// address there.
#[test]
fn voice_arrives_from_another_address_than_its_request() {
    let any = ServerConfig {
        accept_from: AcceptFrom::Address(Ipv6Addr::UNSPECIFIED.into()),
        ..server()
    };
    for pages in [false, true] {
        let (report, _) = with_server(&any, |ports, _| {
            measure(&ClientConfig {
                control: SocketAddr::from((Ipv6Addr::LOCALHOST, ports.control)),
                file: false,
                pages,
                ..client(ports)
            })
        });
        let voice = [report.voice_down, report.voice_up];
        assert!(voice.iter().all(|way| way.as_ref().unwrap().received > 0));
    }
}

#[test]
fn strangers_and_second_clients_are_refused_and_the_first_is_served_on() {
    let (refusals, told) = with_server(&server(), |ports, told| {
        std::thread::scope(|scope| {
            let long = Times {
                // Longer than a busy machine takes to reject both connections without a token.
                measure: Duration::from_secs(10),
                ..client(ports).times
            };
            // Without a file: in ten seconds a fast machine would reach the server's limit of bytes.
            let first = ClientConfig {
                times: long,
                file: false,
                ..client(ports)
            };
            let first = scope.spawn(move || measure(&first));
            let deadline = Instant::now() + PATIENCE;
            while told.lock().unwrap().len() < 2 {
                assert!(Instant::now() < deadline, "nobody is served");
                std::thread::sleep(Duration::from_millis(10));
            }
            // Another token, and something that is not a token.
            for (port, hello) in [(ports.file, vec![7; 16]), (ports.pages, vec![b'G'; 50])] {
                let mut stream = TcpStream::connect((HERE, port)).unwrap();
                stream.write_all(&hello).unwrap();
                let mut got = Vec::new();
                // A reset means the same.
                let _ = stream.read_to_end(&mut got);
                assert!(got.is_empty(), "{} B from {port}", got.len());
            }
            let second = run_client(&client(ports)).unwrap_err();
            let report = first.join().unwrap();
            let pages = report.pages.unwrap();
            assert!(pages.completed > 0 && pages.errors.is_empty(), "{pages:?}");
            let long = ClientConfig {
                times: Times {
                    measure: Duration::from_secs(3600),
                    ..client(ports).times
                },
                ..client(ports)
            };
            let strange = ClientConfig {
                congestion_control: Some("no such".to_owned()),
                ..client(ports)
            };
            let third = [&long, &strange].map(|config| run_client(config).unwrap_err());
            let refusals = [second].into_iter().chain(third);
            refusals.map(|e| e.to_string()).collect::<Vec<_>>()
        })
    });
    for (refusal, words) in refusals.iter().zip([
        "another test",
        "at most 600s",
        "has not loaded TCP \"no such\"",
    ]) {
        assert!(refusal.contains(words), "{refusal}");
    }
    assert_eq!(told.len(), 6, "{told:?}");
}

#[test]
fn a_server_sends_no_more_than_it_may() {
    let config = ServerConfig {
        most_bytes: 300_000,
        ..server()
    };
    let (report, _) = with_server(&config, |ports, _| measure(&client(ports)));
    let error = report.file.unwrap().error.unwrap();
    assert!(error.contains("as many bytes as it may"), "{error}");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let nobody = TcpListener::bind((HERE, 0)).unwrap();
    let control = nobody.local_addr().unwrap().port();
    drop(nobody);
    let config = ClientConfig {
        patience: Duration::ZERO,
        ..client(ServerPorts { control, ..ANY })
    };
    let error = run_client(&config).unwrap_err();
    assert!(matches!(error, ProbeError::NoServer { .. }), "{error}");
    assert!(error.to_string().contains(&control.to_string()), "{error}");
}

#[test]
fn a_client_that_leaves_makes_room_for_the_next() {
    let ((), told) = with_server(&server(), |ports, _| {
        let mut stream = TcpStream::connect((HERE, ports.control)).unwrap();
        stream
            .write_all(
                b"{\"version\":3,\"times\":{\"warmup\":{\"secs\":1,\"nanos\":0},\
                  \"measure\":{\"secs\":9,\"nanos\":0},\"grace\":{\"secs\":1,\"nanos\":0}},\
                  \"congestion_control\":null,\"voice\":true}\n\"go\"\n",
            )
            .unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        // Until the server has closed the connection.
        let mut said = String::new();
        let _ = stream.read_to_string(&mut said);
        assert!(said.contains("token"), "{said}");
        let other = TcpStream::connect((HERE, ports.control)).unwrap();
        (&other).write_all(b"{\"version\":99}\n").unwrap();
        drop(other);
        measure(&client(ports));
    });
    assert!(told[2].contains("error: Some"), "{told:?}");
}
