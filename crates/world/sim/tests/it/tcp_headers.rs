//! Captured TCP headers agree with what the ends have negotiated.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use airlane_sim::{RunResult, Scenario, run_captured};
use etherparse::{NetSlice, SlicedPacket, TcpOptionElement, TcpSlice, TransportSlice};

use crate::capture::{Record, captured, read};

/// Applications over one link, with a transport for all of them.
fn world(transport: &str, link: &str, apps: &[&str]) -> Scenario {
    let mut text = format!(
        "schema = 1\nname = \"one link\"\nduration = \"5 s\"\n[nodes.server]\n[nodes.client]\n\
         [links.link]\nends = [\"server\", \"client\"]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n\
         queue = \"5000 packets\"\n{link}\n"
    );
    for (i, app) in apps.iter().enumerate() {
        let flow = format!(
            "[[flows]]\nname = \"flow-{i}\"\nends = [\"server\", \"client\"]\n\
             transport = {{ kind = \"tcp\", {transport} }}\napp = {{ {app}, packet = \"1448 B\" }}\n"
        );
        text.push_str(&flow);
    }
    Scenario::from_toml(&text, "world.toml").unwrap()
}

const MODERN: &str = "profile = \"modern\"";
const FILE: &str = "kind = \"bulk\", size = \"1 MB\"";
const APPS: [&str; 4] = [
    FILE,
    "kind = \"web\", think = \"1 s\"",
    "kind = \"pages\", request = \"300 B\", reply = \"20 kB\", pause = \"100 ms\"",
    "kind = \"telnet\"",
];

fn tcp(bytes: &[u8]) -> (usize, TcpSlice<'_>) {
    let packet = SlicedPacket::from_ip(bytes).unwrap();
    let Some(NetSlice::Ipv4(ip)) = packet.net else {
        panic!("no IPv4");
    };
    let Some(TransportSlice::Tcp(tcp)) = packet.transport else {
        panic!("no TCP");
    };
    let sum = tcp.calc_checksum_ipv4(ip.header().source(), ip.header().destination());
    assert_eq!(tcp.checksum(), sum.unwrap());
    (usize::from(ip.header().total_len()), tcp)
}

fn counted(result: &RunResult, down: bool) -> u64 {
    let link = &result.links[0];
    let way = if down { &link.down } else { &link.up };
    way.channel.offered.bytes
}

/// Bytes of the records of one direction, and of the IP packets in them.
fn captured_bytes(records: &[Record], down: bool) -> (u64, u64) {
    let way = records.iter().filter(|record| record.outbound == down);
    way.fold((0, 0), |(all, ip), record| {
        let (len, _) = tcp(&record.bytes);
        (all + record.bytes.len() as u64, ip + len as u64)
    })
}

#[test]
fn packets_are_as_long_as_the_link_counts_where_headers_count() {
    let lossy = "errors = { kind = \"uniform\", rate = 0.03 }";
    for link in ["", lossy] {
        for app in APPS {
            for profile in [MODERN, "profile = \"modern\", recovery = \"sack\""] {
                let (result, captures) = captured(&world(profile, link, &[app]), &["link"]);
                for down in [true, false] {
                    let (bytes, ip) = captured_bytes(&captures[0].1, down);
                    assert!(bytes > 0 && bytes == ip, "{app} {profile}: {bytes} {ip}");
                    assert_eq!(ip, counted(&result, down), "{app} {profile} {link}");
                }
            }
        }
    }
    // Here Ethernet headers count, too: they are in the record, and not in the packet.
    let (result, captures) = captured(&world("profile = \"bsd-1997\"", "", &[FILE]), &["link"]);
    let (bytes, ip) = captured_bytes(&captures[0].1, true);
    let count = captures[0]
        .1
        .iter()
        .filter(|record| record.outbound)
        .count() as u64;
    assert_eq!((bytes, bytes - ip), (counted(&result, true), 18 * count));
}

#[test]
fn a_connection_begins_with_what_its_ends_ask_for() {
    let scenario = world(MODERN, "", &[FILE]);
    let (_, captures) = captured(&scenario, &["link@server"]);
    let records = &captures[0].1;
    let begins: Vec<_> = records.iter().filter(|r| tcp(&r.bytes).1.syn()).collect();
    assert_eq!(begins.len(), 2);
    let mut asked_at = 0;
    for (record, answers) in begins.iter().zip([false, true]) {
        let (len, tcp) = tcp(&record.bytes);
        assert_eq!((len, tcp.ack(), tcp.sequence_number()), (60, answers, 0));
        // A SYN requests ECN with both flags, a SYN-ACK accepts it with one (RFC 3168, section 6.1.1).
        assert_eq!((tcp.ece(), tcp.cwr()), (true, !answers));
        let options: Vec<_> = tcp.options_iterator().map(Result::unwrap).collect();
        let stamp = options.iter().find_map(|option| match option {
            TcpOptionElement::Timestamp(stamp, echoed) => Some([*stamp, *echoed]),
            _ => None,
        });
        let [stamp, echoed] = stamp.unwrap();
        assert_eq!(echoed, asked_at, "{options:?}");
        asked_at = stamp;
        for option in [
            TcpOptionElement::MaximumSegmentSize(1_460),
            TcpOptionElement::SelectiveAcknowledgementPermitted,
            TcpOptionElement::WindowScale(7),
        ] {
            assert!(options.contains(&option), "{option:?}: {options:?}");
        }
    }
    let third = records.iter().map(|r| tcp(&r.bytes).1).nth(2).unwrap();
    assert_eq!((third.syn(), third.ack()), (false, true));
    assert_eq!(
        (third.sequence_number(), third.acknowledgment_number()),
        (1, 1)
    );

    // Without other options, there is only the MSS.
    let plain = "profile = \"ns2-2002\", handshake = true";
    let (_, captures) = captured(&world(plain, "", &[FILE]), &["link@server"]);
    let (len, tcp) = tcp(&captures[0].1[0].bytes);
    assert!(tcp.syn());
    assert_eq!((len, tcp.options()), (44, &[2, 4, 0x05, 0xa8][..]));
}

/// The advertised window: it never excludes a segment that is sent, and closes if the application does not read.
#[test]
fn windows_are_what_is_advertised() {
    let slow = format!("{FILE}, takes = \"1 Mbit/s\"");
    for (app, closes) in [(FILE, false), (slow.as_str(), true)] {
        let few = "profile = \"modern\", window = 100";
        let (_, captures) = captured(&world(few, "", &[app]), &["link@server"]);
        // 144,800 bytes need a scale of two bits.
        let (mut edge, mut narrowest) = (u64::from(u16::MAX) + 1, u64::MAX);
        for record in &captures[0].1 {
            let (_, tcp) = tcp(&record.bytes);
            let window = u64::from(tcp.window_size());
            if tcp.syn() {
                assert_eq!(window, 65_535, "never scaled");
                continue;
            }
            if record.outbound {
                assert_eq!(window << 2, 144_800);
                let end = u64::from(tcp.sequence_number()) + tcp.payload().len() as u64;
                assert!(end <= edge, "{end} {edge}");
            } else {
                let next = u64::from(tcp.acknowledgment_number()) + (window << 2);
                assert!(next >= edge.min(144_801), "a window does not shrink");
                edge = edge.max(next);
                narrowest = narrowest.min(window << 2);
            }
        }
        assert_eq!(narrowest < 144_800 / 2, closes, "{narrowest}");
    }
}

/// Each acknowledgment of data echoes the timestamp of the packet that caused it.
#[test]
fn timestamps_measure_the_round_trip() {
    let (_, captures) = captured(&world(MODERN, "", &[FILE]), &["link@server"]);
    let mut least = u32::MAX;
    for record in &captures[0].1 {
        let (_, tcp) = tcp(&record.bytes);
        let stamps = tcp
            .options_iterator()
            .find_map(|option| match option.unwrap() {
                TcpOptionElement::Timestamp(stamp, echoed) => Some([stamp, echoed]),
                _ => None,
            });
        let [stamp, echoed] = stamps.expect("every segment has them");
        if !tcp.syn() {
            assert!(echoed > 0 && echoed < stamp.max(1));
            let now = (record.at_ns / 1_000) as u32;
            least = least.min(now - echoed);
        }
    }
    // 20 ms from the client; an echo in its acknowledgment has taken another 20 ms to it.
    assert!((20_000..41_000).contains(&least), "{least}");
}

/// tshark's expert messages above "chat", each kind once.
fn complaints(file: Vec<u8>) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-r", "-", "-T", "fields", "-E", "separator=/t"]);
    command.args(["-e", "_ws.expert.severity", "-e", "_ws.expert.message"]);
    command.args(["-e", "tcp.analysis.flags", "-e", "frame.number"]);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = piped.stderr(Stdio::null()).spawn().ok()?;
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(&file));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    // Chats are 2097152. The note that a connection closes is no complaint about the capture.
    let said = text.lines().filter(|line| {
        let [severity, message, flags, _] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let loud = severity.split(',').any(|s| !s.is_empty() && s != "2097152");
        let window_update = message.contains("window update");
        (loud && !message.contains("connection closing")) || !(flags.is_empty() || window_update)
    });
    Some(said.map(str::to_owned).collect())
}

#[test]
fn tsharks_analysis_of_a_lossless_run_is_silent() {
    for profile in [
        MODERN,
        "profile = \"modern\", congestion = \"bbr\"",
        "profile = \"ns2-1999\", window = 20",
    ] {
        for app in APPS {
            let scenario = world(profile, "", &[app]);
            for point in ["link@server", "link@client", "link"] {
                let mut file = vec![];
                let captures = vec![(point.parse().unwrap(), &mut file)];
                let result = run_captured(&scenario, 1, 0, captures).unwrap();
                assert!(!read(&file).1.is_empty(), "{app}");
                assert_eq!(result.flows[0].retransmissions.unwrap_or(0), 0);
                let Some(said) = complaints(file) else {
                    let skipped = "SKIPPED tsharks_analysis_of_a_lossless_run_is_silent: no tshark";
                    let _ = writeln!(io::stderr(), "{skipped}");
                    return;
                };
                assert!(
                    said.is_empty(),
                    "{profile} {app} {point}: {:#?}",
                    &said[..said.len().min(9)]
                );
            }
        }
    }
}
