//! Captures, read back with independent libraries.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::{Command, Stdio};

use crate::common::load;
use airlane_sim::{RunResult, Scenario, run, run_captured};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::{Block, PcapNgReader};

/// A record of a capture, parsed as far as it is IP.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) at_ns: u128,
    pub(crate) outbound: bool,
    pub(crate) comment: Option<String>,
    pub(crate) bytes: Vec<u8>,
}

/// The header fields of a record.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Parsed {
    src: [u8; 4],
    ports: [u16; 2],
    dscp: u8,
    /// TCP: sequence and acknowledgment number.
    numbers: Option<[u32; 2]>,
    user: usize,
}

/// Takes captures at the given points of one run.
pub(crate) fn captured(
    scenario: &Scenario,
    points: &[&str],
) -> (RunResult, Vec<(DataLink, Vec<Record>)>) {
    let mut files: Vec<Vec<u8>> = points.iter().map(|_| Vec::new()).collect();
    let captures = points
        .iter()
        .zip(&mut files)
        .map(|(point, file)| (point.parse().unwrap(), file))
        .collect();
    let result = run_captured(scenario, 1, 0, captures).unwrap();
    (result, files.iter().map(|file| read(file)).collect())
}

pub(crate) fn read(file: &[u8]) -> (DataLink, Vec<Record>) {
    let mut reader = PcapNgReader::new(file).unwrap();
    let mut records = vec![];
    while let Some(block) = reader.next_block() {
        let (Block::EnhancedPacket(packet), _) = block.unwrap() else {
            continue;
        };
        assert_eq!(packet.original_len as usize, packet.data.len());
        let mut record = Record {
            at_ns: packet.timestamp.as_nanos(),
            outbound: false,
            comment: None,
            bytes: packet.data.to_vec(),
        };
        for option in &packet.options {
            match option {
                EnhancedPacketOption::Flags(flags) => record.outbound = flags & 3 == 2,
                EnhancedPacketOption::Common(CommonOption::Comment(text)) => {
                    record.comment = Some(text.to_string());
                }
                other => panic!("{other:?}"),
            }
        }
        records.push(record);
    }
    assert!(records.is_sorted_by_key(|record| record.at_ns));
    (reader.interfaces()[0].linktype, records)
}

/// Parses the headers and checks lengths and checksums.
fn parse(bytes: &[u8]) -> Parsed {
    let packet = SlicedPacket::from_ip(bytes).unwrap();
    let Some(NetSlice::Ipv4(ip)) = packet.net else {
        panic!("no IPv4: {bytes:?}");
    };
    let ip = ip.header();
    assert_eq!(usize::from(ip.total_len()), bytes.len());
    assert_eq!(ip.header_checksum(), ip.to_header().calc_header_checksum());
    let (ports, numbers, user) = match packet.transport.unwrap() {
        TransportSlice::Tcp(tcp) => {
            let sum = tcp.calc_checksum_ipv4(ip.source(), ip.destination());
            assert_eq!(tcp.checksum(), sum.unwrap());
            (
                [tcp.source_port(), tcp.destination_port()],
                Some([tcp.sequence_number(), tcp.acknowledgment_number()]),
                tcp.payload().len(),
            )
        }
        TransportSlice::Udp(udp) => {
            let header = udp.to_header();
            let sum = header.calc_checksum_ipv4_raw(ip.source(), ip.destination(), udp.payload());
            assert_eq!(udp.checksum(), sum.unwrap());
            (
                [udp.source_port(), udp.destination_port()],
                None,
                udp.payload().len(),
            )
        }
        other => panic!("{other:?}"),
    };
    Parsed {
        src: ip.source(),
        ports,
        dscp: ip.dcp().value(),
        numbers,
        user,
    }
}

/// 30 kB minus one byte over Cellular, with or without services.
fn file(services: bool) -> Scenario {
    let mut assignments = vec![
        "flows[file].app.size=29999 B",
        "links.radio.errors.rate=0.05",
        "drain=0 s",
    ];
    if !services {
        assignments.push("links.radio.services=[]");
    }
    load("cellular-lan1-sr-m2", &assignments)
}

#[test]
fn the_link_shows_every_packet_and_marks_what_is_lost() {
    let (result, captures) = captured(&file(false), &["radio"]);
    let (link_type, records) = &captures[0];
    assert_eq!(*link_type, DataLink::RAW);
    let radio = &result.links[0];
    assert_eq!(radio.name, "radio");
    for (outbound, channel) in [(true, radio.down.channel), (false, radio.up.channel)] {
        let way: Vec<_> = records.iter().filter(|r| r.outbound == outbound).collect();
        let sent = channel.offered.frames - channel.dropped_queue.frames;
        assert_eq!(way.len() as u64, sent);
        let lost = way.iter().filter(|r| r.comment.is_some()).count();
        assert_eq!(lost as u64, channel.lost_air.frames);
        assert!(lost > 0);
    }
    // The first segment: headers of 40 bytes, 50 of data. Its first bit leaves when the wired link
    // of 10 Mbit/s and 1 ms has delivered 50 bytes.
    assert_eq!(records[0].at_ns, 1_040_000);
    let first = parse(&records[0].bytes);
    assert_eq!((first.numbers, first.user), (Some([1, 1]), 50));
    assert_eq!(first.ports[0], 20);
}

#[test]
fn tcp_numbers_count_bytes_up_to_the_last() {
    let (_, captures) = captured(&file(false), &["radio@base", "radio@mobile"]);
    for (_, records) in &captures {
        let (mut data_end, mut highest_ack) = (0, 0);
        for record in records {
            let parsed = parse(&record.bytes);
            let [sequence, acknowledged] = parsed.numbers.unwrap();
            if parsed.ports[0] == 20 {
                // Segments of 50 bytes; only the last one is shorter.
                assert_eq!((sequence - 1) % 50, 0);
                assert_eq!(parsed.user, if sequence == 29_951 { 49 } else { 50 });
                data_end = data_end.max(sequence + parsed.user as u32);
            } else {
                assert_eq!((parsed.user, record.bytes.len()), (0, 40));
                highest_ack = highest_ack.max(acknowledged);
            }
        }
        assert_eq!((data_end, highest_ack), (30_000, 30_000));
    }
}

#[test]
fn one_end_sees_what_it_sends_and_what_arrives() {
    for services in [false, true] {
        let points = ["radio@base", "radio@mobile"];
        let (result, captures) = captured(&file(services), &points);
        let [base, mobile] = [&captures[0].1, &captures[1].1];
        let count = |records: &[Record], outbound| {
            records.iter().filter(|r| r.outbound == outbound).count() as u64
        };
        let radio = &result.links[0];
        if services {
            let down = &radio.down.services[0];
            assert_eq!(count(base, true), down.sender.packets_offered);
            assert_eq!(count(mobile, false), down.receiver.packets_delivered);
        } else {
            assert_eq!(count(base, true), radio.down.channel.offered.frames);
            assert_eq!(count(mobile, false), radio.down.channel.delivered.frames);
            assert!(count(mobile, false) < count(base, true), "nothing was lost");
        }
        // Every packet that arrives was sent, at least the link's delay earlier.
        let sent: BTreeSet<_> = base
            .iter()
            .filter(|r| r.outbound)
            .map(|r| parse(&r.bytes))
            .collect();
        assert!(
            mobile
                .iter()
                .filter(|r| !r.outbound)
                .all(|r| sent.contains(&parse(&r.bytes)))
        );
        assert!(mobile[0].at_ns >= base[0].at_ns + 100_000_000);
    }
}

#[test]
fn drops_at_a_full_queue_are_marked_at_the_sending_end() {
    let scenario = load(
        "cellular-lan1-sr-m2",
        &[
            "flows[file].app.size=20 kB",
            "links.radio.services=[]",
            "links.radio.queue=4 packets",
        ],
    );
    let (result, captures) = captured(&scenario, &["radio@base"]);
    let dropped = captures[0]
        .1
        .iter()
        .filter(|r| r.comment.as_deref() == Some("dropped: the queue is full"));
    let counted = result.links[0].down.channel.dropped_queue.frames;
    assert!(counted > 0);
    assert_eq!(dropped.count() as u64, counted);
}

#[test]
fn frames_of_services_are_their_header_and_the_packet() {
    let (result, captures) = captured(&file(true), &["radio"]);
    let (link_type, records) = &captures[0];
    assert_eq!(*link_type, DataLink::USER0);
    let (mut data, mut repairs, mut control) = (0, 0, 0);
    for record in records.iter().filter(|r| r.outbound) {
        // Service 0 in the high nibble; then sequence and acknowledgment.
        match record.bytes[0] {
            0 => data += 1,
            7 => repairs += 1,
            1 | 2 => {
                assert_eq!(record.bytes.len(), 3);
                control += 1;
                continue;
            }
            other => panic!("a frame of type {other}"),
        }
        assert!(parse(&record.bytes[3..]).user >= 49);
    }
    let sender = &result.links[0].down.services[0].sender;
    assert_eq!(data, sender.packets_sent);
    assert_eq!(repairs, sender.repair_frames_sent);
    assert_eq!(control, sender.control_frames_sent);
    assert!(repairs > 0);
}

#[test]
fn copies_are_whole_packets() {
    let scenario = load(
        "cellular-lan1-sr-m2",
        &[
            "flows[file].app.size=29999 B",
            "links.radio.header=live",
            "links.radio.services[0].scheme.copies={ number = 1 }",
        ],
    );
    let (result, captures) = captured(&scenario, &["radio"]);
    let frames = captures[0].1.iter().filter(|record| record.outbound);
    // Type 5; the live header has 17 bytes.
    let copies: Vec<_> = frames.filter(|record| record.bytes[0] == 5).collect();
    for copy in &copies {
        assert!(parse(&copy.bytes[17..]).user >= 49);
    }
    let sender = &result.links[0].down.services[0].sender;
    assert_eq!(copies.len() as u64, sender.copy_frames_sent);
    assert!(!copies.is_empty());
}

#[test]
fn datagrams_and_code_points_stand_in_the_headers() {
    let scenario = load("three-applications-raw", &["duration=20 s"]);
    let (_, captures) = captured(&scenario, &["radio@mobile"]);
    let parsed: Vec<Parsed> = captures[0].1.iter().map(|r| parse(&r.bytes)).collect();
    let voice: Vec<_> = parsed.iter().filter(|p| p.numbers.is_none()).collect();
    let flow = scenario.resolved();
    let flow = flow
        .flows
        .iter()
        .find(|f| f.transport.kind() == "udp")
        .unwrap();
    assert!(voice.len() > 100);
    for datagram in voice {
        assert_eq!(datagram.ports[0], flow.port.unwrap());
        assert_eq!(datagram.dscp, flow.dscp.value());
        assert_eq!(datagram.user as u64, flow.app.packet().unwrap().as_bytes());
    }
    let ports: BTreeSet<u16> = parsed.iter().map(|p| p.ports[0]).collect();
    assert!(ports.contains(&20) && ports.contains(&80), "{ports:?}");
}

#[test]
fn watching_changes_nothing() {
    let scenario = load("three-applications", &["duration=60 s"]);
    let points = ["radio", "radio@mobile", "radio@base", "wired"];
    let (watched, _) = captured(&scenario, &points);
    assert_eq!(watched, run(&scenario, 1, 0).unwrap());
}

#[test]
fn a_write_error_is_reported() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("no space left"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let captures = vec![("radio".parse().unwrap(), Full)];
    let error = run_captured(&file(false), 1, 0, captures)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("radio") && error.contains("no space left"),
        "{error}"
    );
}

/// Wireshark's own parser, if installed: nothing malformed, no bad checksum.
#[test]
fn tshark_reads_captures_without_complaint() {
    let tshark = Command::new("tshark").arg("--version").output();
    if !tshark.is_ok_and(|output| output.status.success()) {
        // Not `eprintln!`: the test runner hides its output if the test passes.
        let _ = writeln!(
            io::stderr(),
            "SKIPPED tshark_reads_captures_without_complaint: no tshark"
        );
        return;
    }
    let three = load("three-applications-raw", &["duration=60 s"]);
    for (scenario, point) in [
        (&file(false), "radio"),
        (&three, "radio@mobile"),
        (&three, "wired@server"),
    ] {
        let mut file = vec![];
        run_captured(scenario, 1, 0, vec![(point.parse().unwrap(), &mut file)]).unwrap();
        let (_, records) = read(&file);
        let fields = [
            "frame.time_epoch",
            "ip.len",
            "ip.checksum.status",
            "tcp.checksum.status",
            "udp.checksum.status",
            "tcp.seq_raw",
            "_ws.malformed",
            "_ws.expert.severity",
        ];
        let mut command = Command::new("tshark");
        command.args(["-r", "-", "-T", "fields", "-E", "separator=/t"]);
        for check in [
            "ip.check_checksum",
            "tcp.check_checksum",
            "udp.check_checksum",
        ] {
            command.args(["-o", &format!("{check}:TRUE")]);
        }
        for field in fields {
            command.args(["-e", field]);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || input.write_all(&file));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{point}: {said}");
        assert!(!said.contains("tshark: "), "{point}: {said}");
        let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split('\t').collect()).collect();
        assert_eq!(lines.len(), records.len(), "{point}");
        for (line, record) in lines.iter().zip(&records) {
            let [time, len, ip, tcp, udp, seq, malformed, severity] = line[..] else {
                panic!("{point}: {line:?}");
            };
            let whole = time.replace('.', "").parse::<u128>().unwrap();
            assert_eq!(whole, record.at_ns, "{point}: {line:?}");
            assert_eq!(len.parse::<usize>().unwrap(), record.bytes.len());
            // 1 is "good".
            assert_eq!((ip, malformed), ("1", ""), "{point}: {line:?}");
            assert_eq!(
                if seq.is_empty() { udp } else { tcp },
                "1",
                "{point}: {line:?}"
            );
            // Retransmissions and the like are only remarks; errors (8388608) must not occur.
            let errors = severity.split(',').filter(|s| *s == "8388608").count();
            assert_eq!(errors, 0, "{point}: {line:?}");
        }
    }
}

/// A world of stations, captured like a card in monitor mode.
#[test]
fn a_radio_channel_is_captured_as_cards_do() {
    let chain = load("wifi-chain", &["duration=1 s", "drain=0 s"]);
    let (result, captures) = captured(&chain, &["mesh"]);
    let (kind, records) = &captures[0];
    assert_eq!(*kind, DataLink::IEEE802_11_RADIOTAP);
    let stations = &result.radios[0].stations;
    let sent = |of: fn(&airlane_wifi::station::StationStats) -> u64| {
        stations.iter().map(|s| of(&s.counts)).sum::<u64>()
    };
    // Frames on the air at the end of the run are only in the counters.
    let counted = sent(|s| s.data_frames + s.ack_frames);
    let all = records.len() as u64;
    assert!(all <= counted && counted - all < 20, "{all} of {counted}");
    assert!(records.is_sorted_by_key(|record| record.at_ns));
    let lost = records.iter().filter(|r| r.comment.is_some()).count() as u64;
    let destroyed = sent(|s| s.data_collided + s.data_noise + s.ack_collided);
    assert!(lost.abs_diff(destroyed) < 20, "{lost} of {destroyed}");
    let error = run_captured(&chain, 1, 0, vec![("mesh@n0".parse().unwrap(), vec![])]);
    assert!(error.unwrap_err().to_string().contains("leave out"));

    let Ok(mut child) = Command::new("tshark")
        .args(["-r", "-", "-T", "fields", "-E", "separator=/t"])
        .args([
            "-e",
            "wlan_radio.data_rate",
            "-e",
            "wlan.fc.type_subtype",
            "-e",
            "ip.len",
        ])
        .args(["-e", "_ws.malformed"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
    else {
        let _ = writeln!(
            io::stderr(),
            "SKIPPED a part of a_radio_channel_is_captured_as_cards_do: no tshark"
        );
        return;
    };
    let mut file = vec![];
    run_captured(&chain, 1, 0, vec![("mesh".parse().unwrap(), &mut file)]).unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(&file));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), records.len());
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let is_data = match fields[1] {
            "32" | "0x0020" => true,
            "29" | "0x001d" => false,
            other => panic!("{other}: {line}"),
        };
        assert_eq!(fields[0], if is_data { "11" } else { "2" }, "{line}");
        assert_eq!((fields[3], fields[2].is_empty()), ("", !is_data), "{line}");
    }
}

#[test]
fn frames_of_ports_stand_in_the_capture_of_their_radio_channel() {
    let text = "schema = 1\nname = \"cell\"\nduration = \"2 s\"\n[nodes.ap]\n[nodes.s]\n\
                [media.air]\nkind = \"wifi\"\n[media.air.nodes]\nap = [0, 0]\ns = [7, 0]\n\
                [links.radio]\nends = [\"ap\", \"s\"]\nmedium = \"air\"\nrate = \"5 Mbit/s\"\ndelay = \"2 ms\"\nframe = \"1500 B\"\n\
                services = [{ number = 0, name = \"all\", rate = 1.0, scheme = { kind = \"rlp\" } }]\n\
                [[flows]]\nname = \"file\"\nends = [\"ap\", \"s\"]\ntransport = { kind = \"tcp\", profile = \"ns2-1999\" }\n\
                app = { kind = \"bulk\", size = \"50 kB\", packet = \"1000 B\" }\n";
    let scenario = Scenario::from_toml(text, "cell").unwrap();
    let (result, captures) = captured(&scenario, &["air", "radio"]);
    let [(_, air), (_, link)] = &captures[..] else {
        panic!("two captures")
    };
    let frames = |record: &&Record| {
        record
            .bytes
            .windows(8)
            .any(|at| at == [0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0xb5])
    };
    let data = air.iter().filter(frames);
    let stations = &result.radios[0].stations;
    let attempts: u64 = stations.iter().map(|s| s.counts.data_frames).sum();
    assert_eq!(data.clone().count() as u64, attempts);
    let way = |way: &airlane_sim::DirectionResult| way.channel.offered.frames;
    let given = way(&result.links[0].down) + way(&result.links[0].up);
    assert_eq!(
        link.len() as u64,
        given,
        "each once, however often it was sent"
    );
    // After the 802.11 headers, the bytes are those of the link's own capture.
    for record in link {
        let mut last = data.clone().filter(|air| air.at_ns == record.at_ns);
        let same = last.any(|air| air.bytes.ends_with(&record.bytes));
        assert!(same, "a frame at {} ns", record.at_ns);
    }
}
