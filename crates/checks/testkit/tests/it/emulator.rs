//! The emulator between two hosts, with real frames from the kernel.
//!
//! ```text
//!  left [wire] ──veth── [one]  air::run  [two] ──veth── [wire] right
//! ```

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use airlane_base::{Streams, config};
use airlane_channel::ErrorModel;
use airlane_live::air::{self, AirConfig, AirReport};
use airlane_testkit::netns::{Namespace, can_run};

/// Only against hanging, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

struct Hosts {
    left: Namespace,
    air: Namespace,
    right: Namespace,
}

impl Hosts {
    fn new() -> Self {
        let [left, air, right] = ["left", "air", "right"].map(|n| Namespace::new(n).unwrap());
        for namespace in [&left, &air, &right] {
            // No frames but those of the test: no router solicitations, no neighbour discovery.
            for scope in ["all", "default"] {
                let key = format!("net/ipv6/conf/{scope}/disable_ipv6");
                namespace.sysctl(&key, "1").unwrap();
            }
        }
        left.join("wire", &air, "one").unwrap();
        right.join("wire", &air, "two").unwrap();
        let hosts = Self { left, air, right };
        for (host, own, peer, last) in [
            (&hosts.left, "02:00:00:00:00:01", "02:00:00:00:00:02", 1),
            (&hosts.right, "02:00:00:00:00:02", "02:00:00:00:00:01", 2),
        ] {
            host.ip(&["link", "set", "wire", "address", own]).unwrap();
            let address = format!("192.0.2.{last}/24");
            host.ip(&["address", "add", &address, "dev", "wire"])
                .unwrap();
            // And no address resolution.
            let peer_address = format!("192.0.2.{}", 3 - last);
            let neighbour = [
                "neighbour",
                "add",
                &peer_address,
                "lladdr",
                peer,
                "dev",
                "wire",
            ];
            host.ip(&neighbour).unwrap();
        }
        hosts
    }

    /// Runs `traffic` while the emulator runs; the closure it gets tells whether the emulator has ended by itself.
    fn emulate<T>(
        &self,
        config: &AirConfig,
        traffic: impl FnOnce(&dyn Fn() -> bool) -> T,
    ) -> (T, AirReport) {
        let (stop, stopper) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            let emulator = scope.spawn(|| self.air.run(|| air::run(config, stop.as_fd())));
            let deadline = Instant::now() + PATIENCE;
            let hears = |interface| {
                let shown = self.air.ip(&["-d", "link", "show", interface]).unwrap();
                shown.contains("promiscuity 1")
            };
            while !(hears("one") && hears("two")) {
                assert!(Instant::now() < deadline, "the emulator is not up");
                std::thread::sleep(Duration::from_millis(10));
            }
            let outcome = traffic(&|| emulator.is_finished());
            drop(stopper);
            (outcome, emulator.join().unwrap().unwrap().unwrap())
        })
    }
}

fn config(more: &str) -> AirConfig {
    let text = format!("schema = 1\nname = 'radio'\ninterfaces = ['one', 'two']\n{more}");
    config::load(&text, "air.toml").unwrap()
}

/// The live link loses exactly the frames that the model loses in virtual time with the same seed.
#[test]
fn the_same_seed_loses_the_same_frames() {
    if !can_run("the_same_seed_loses_the_same_frames") {
        return;
    }
    const FRAMES: u32 = 2000;
    let hosts = Hosts::new();
    let config = config(
        "seed = 11\nrate = '8 Mbit/s'\ndelay = '5 ms'\nqueue = '3000 packets'\n\
         errors.down = { kind = 'byte-exponential', mean = '4 kB' }",
    );
    let rate = config.rate.down.mean().unwrap();
    let streams = Streams::new(11, 0);
    let mut model = ErrorModel::new(&config.errors.down, rate, streams, "link.radio.down");
    let start = airlane_base::Instant::ORIGIN;
    let predicted: Vec<u32> = (0..FRAMES)
        .filter(|number| {
            let len = 14 + 20 + 8 + 4 + (*number as usize * 37) % 1000;
            // This model advances with bytes only; the times do not matter.
            !model.loses(start, start, len)
        })
        .collect();
    let (received, report) = hosts.emulate(&config, |_| {
        let receiver = hosts
            .right
            .run(|| UdpSocket::bind("192.0.2.2:4000"))
            .unwrap()
            .unwrap();
        let sender = hosts
            .left
            .run(|| UdpSocket::bind("192.0.2.1:0"))
            .unwrap()
            .unwrap();
        receiver.set_read_timeout(Some(PATIENCE)).unwrap();
        std::thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let mut received = Vec::new();
                let mut buffer = [0; 2000];
                while received.last() != predicted.last() {
                    let len = receiver.recv(&mut buffer).unwrap();
                    let number = buffer[..len].first_chunk::<4>().unwrap();
                    received.push(u32::from_be_bytes(*number));
                }
                received
            });
            for number in 0..FRAMES {
                let mut payload = vec![0; 4 + (number as usize * 37) % 1000];
                payload[..4].copy_from_slice(&number.to_be_bytes());
                sender.send_to(&payload, "192.0.2.2:4000").unwrap();
                std::thread::sleep(Duration::from_micros(100));
            }
            receiving.join().unwrap()
        })
    });
    assert_eq!(received, predicted);
    assert!(
        predicted.len() < 1900,
        "hardly anything was lost: {}",
        predicted.len()
    );
    assert_eq!(report.down.offered.frames, u64::from(FRAMES));
    assert_eq!(report.down.delivered.frames, predicted.len() as u64);
    assert_eq!(
        report.down.dropped_queue.frames + report.down.refused.total(),
        0
    );
    assert_eq!(report.down.checksums_completed, u64::from(FRAMES));
}

/// Segments of a sender that leaves segmentation to its NIC arrive, cut into single frames, at no more than the rate
/// of the link.
#[test]
fn super_packets_cross_as_single_frames_at_the_rate_of_the_link() {
    if !can_run("super_packets_cross_as_single_frames_at_the_rate_of_the_link") {
        return;
    }
    const BYTES: usize = 8_000_000;
    let hosts = Hosts::new();
    let config = config("rate = '50 Mbit/s'\ndelay = '2 ms'\nqueue = '200 kB'");
    let data: Vec<u8> = (0..BYTES).map(|i| (i * i / 7) as u8).collect();
    let ((), report) = hosts.emulate(&config, |_| {
        let listener = hosts
            .right
            .run(|| TcpListener::bind("192.0.2.2:5001"))
            .unwrap()
            .unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let connect = || TcpStream::connect("192.0.2.2:5001");
                let mut stream = hosts.left.run(connect).unwrap().unwrap();
                stream.write_all(&data).unwrap();
            });
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut got = Vec::new();
            stream.read_to_end(&mut got).unwrap();
            assert!(got == data, "{} bytes came, or other bytes", got.len());
        })
    });
    let down = &report.down;
    assert!(
        down.super_packets > 0,
        "the kernel sent no super-packet: {report}"
    );
    assert_eq!(down.refused.total(), 0, "{report}");
    assert!(down.rate_busiest_second_bps < 50e6 * 1.001, "{report}");
}

/// Interfaces that cannot be used are refused with advice, and one that disappears ends the run with a report.
#[test]
fn unusable_interfaces_are_named() {
    if !can_run("unusable_interfaces_are_named") {
        return;
    }
    let hosts = Hosts::new();
    let good = config("rate = '1 Mbit/s'");
    let run = |interfaces: [&str; 2]| {
        let config = AirConfig {
            interfaces: interfaces.map(str::to_owned),
            ..good.clone()
        };
        let (stop, _stopper) = UnixStream::pair().unwrap();
        let outcome = hosts.air.run(|| air::run(&config, stop.as_fd())).unwrap();
        outcome.unwrap_err().to_string()
    };
    let error = run(["one", "nowhere"]);
    assert!(
        error.starts_with("nowhere: ") && error.contains("ip link"),
        "{error}"
    );
    let error = run(["lo", "two"]);
    assert!(
        error.starts_with("lo: ") && error.contains("not an Ethernet interface"),
        "{error}"
    );
    hosts.air.ip(&["link", "set", "two", "down"]).unwrap();
    let error = run(["one", "two"]);
    assert!(error.contains("ip link set two up"), "{error}");
    hosts.air.ip(&["link", "set", "two", "up"]).unwrap();

    let ((), report) = hosts.emulate(&good, |has_ended| {
        hosts.air.ip(&["link", "delete", "two"]).unwrap();
        let deadline = Instant::now() + PATIENCE;
        while !has_ended() {
            assert!(Instant::now() < deadline, "the emulator goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    assert_eq!(report.lost_interface.as_deref(), Some("two"));
}
