//! Model flows. Each names the source of its figures; flows without a stated duration last at least a minute.

use airlane_base::random::Streams;
use airlane_link::classify::Behaviour::{self, Call, File, Interactive, Page, Video};
use airlane_link::flow::{TCP, UDP};

use super::traffic::{Kind, Transfer, Writer};

const SECOND: f64 = 1e6;
const MINUTE: f64 = 60.0 * SECOND;
const ESP: u8 = 50;
const MB: f64 = 1e6;

/// Both are right for a short message in a young flow.
const SHORT: &[Behaviour] = &[Interactive, Page];
/// Both are reliable: a chunk of some megabytes is a long page or a short file.
const TRANSFER: &[Behaviour] = &[Page, File];

const WIREGUARD: &[u8] = &[
    4, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2,
];
const WIREGUARD_INIT: &[u8] = &[
    1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1,
];
const QUIC_INITIAL: &[u8] = &[0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6];
const STUN: &[u8] = &[0, 1, 0, 8, 0x21, 0x12, 0xa4, 0x42, 1, 2, 3, 4];
/// Bytes without any recognizable protocol.
const PLAIN: &[u8] = &[0x17, 0x2b, 3, 9, 0x55, 0x21, 7, 7, 0x13, 2, 1, 9];

/// All kinds, the same for the same seed.
pub fn kinds(seed: u64) -> Vec<Kind> {
    let streams = Streams::new(seed, 0);
    MODELS
        .iter()
        .map(|model| {
            let mut writer = Writer::new(streams.stream(model.name), model.may_be);
            (model.write)(&mut writer);
            Kind {
                name: model.name.to_owned(),
                source: model.source,
                protocol: model.protocol,
                port: model.port,
                samples: Writer::done(writer),
            }
        })
        .collect()
}

struct Model {
    name: &'static str,
    source: &'static str,
    protocol: u8,
    port: u16,
    may_be: &'static [Behaviour],
    write: fn(&mut Writer),
}

const fn model(
    (name, source): (&'static str, &'static str),
    (protocol, port): (u8, u16),
    may_be: &'static [Behaviour],
    write: fn(&mut Writer),
) -> Model {
    Model {
        name,
        source,
        protocol,
        port,
        may_be,
        write,
    }
}

const MODELS: &[Model] = &[
    model(
        ("speech, G.711", "RFC 3551: 160 B each 20 ms"),
        (UDP, 17_000),
        &[Call],
        |w| {
            speech(w, 20.0, |_| 200.0, false, false);
        },
    ),
    model(
        ("speech, G.729", "RFC 3551: 20 B each 20 ms"),
        (UDP, 17_001),
        &[Call],
        |w| {
            speech(w, 20.0, |_| 60.0, false, false);
        },
    ),
    model(
        ("speech, Opus VBR", "RFC 6716, 2.1.8"),
        (UDP, 17_002),
        &[Call],
        |w| {
            speech(w, 20.0, |w| w.normal(118.0, 25.0), false, false);
        },
    ),
    model(
        ("speech, Opus 60 ms", "RFC 6716, 2.1.4"),
        (UDP, 17_003),
        &[Call],
        |w| {
            speech(w, 60.0, |w| w.normal(210.0, 40.0), false, false);
        },
    ),
    model(
        (
            "speech, silence suppressed",
            "Brady 1969: talk 1.2 s, pause 1.8 s",
        ),
        (UDP, 17_004),
        &[Call],
        |w| {
            speech(w, 20.0, |w| w.normal(100.0, 15.0), true, false);
        },
    ),
    model(
        ("speech, RTP, silence suppressed", "RFC 3550; Brady 1969"),
        (UDP, 17_005),
        &[Call],
        |w| {
            speech(w, 20.0, |w| w.normal(110.0, 20.0), true, true);
        },
    ),
    model(
        ("WebRTC, speech and pictures", "RFC 8834, RFC 8843"),
        (UDP, 17_006),
        &[Video, Call],
        webrtc,
    ),
    model(
        ("video, RTP one way", "RFC 6184: 25 pictures/s, 2 Mbit/s"),
        (UDP, 17_007),
        &[Video],
        |w| {
            pictures(w, 2.0, 25.0, true);
        },
    ),
    model(
        ("video, MPEG-TS", "ISO 13818-1: 7 cells of 188 B"),
        (UDP, 17_008),
        &[Video],
        |w| {
            steady(w, 1_344.0, 4.0);
        },
    ),
    model(
        ("iperf3 -u", "1448 B at 5 Mbit/s"),
        (UDP, 5_201),
        &[Video],
        |w| steady(w, 1_476.0, 5.0),
    ),
    model(
        ("game, Counter-Strike", "Faerber 2002"),
        (UDP, 27_015),
        &[Interactive],
        |w| {
            game(w, (41.7, 4.0, 82.0, 8.0), (62.0, 6.0, 120.0, 36.0));
        },
    ),
    model(
        ("game, Quake 3", "Lang, Branch and Armitage 2004"),
        (UDP, 27_960),
        &[Interactive],
        |w| {
            game(w, (11.0, 1.5, 65.0, 5.0), (50.0, 1.0, 140.0, 50.0));
        },
    ),
    model(
        ("game, 64 ticks", "a server of 64 states a second"),
        (UDP, 27_016),
        &[Interactive],
        |w| {
            game(w, (15.6, 0.8, 110.0, 12.0), (15.6, 0.8, 260.0, 70.0));
        },
    ),
    model(
        ("game, World of Warcraft", "Svoboda, Karner and Rupp 2007"),
        (TCP, 3_724),
        &[Interactive],
        wow,
    ),
    model(
        ("DNS", "RFC 1035, RFC 6891"),
        (UDP, 53),
        &[Interactive],
        dns,
    ),
    model(("NTP", "RFC 5905"), (UDP, 123), &[Interactive], |w| {
        for n in 0..64 {
            w.add(f64::from(n) * 16.0 * SECOND, true, 76.0, PLAIN);
            w.add(f64::from(n) * 16.0 * SECOND + 40_000.0, false, 76.0, PLAIN);
        }
    }),
    model(("SIP", "RFC 3261"), (UDP, 5_060), SHORT, |w| {
        for n in 0..20 {
            let at = f64::from(n) * 30.0 * SECOND;
            w.add(at, true, 620.0, b"REGISTER sip");
            w.add(at + 60_000.0, false, 480.0, b"SIP/2.0 200 ");
        }
    }),
    model(
        (
            "ssh, typing",
            "Paxson and Floyd 1995 (tcplib): gaps of a Pareto distribution",
        ),
        (TCP, 22),
        &[Interactive],
        typing,
    ),
    model(("scp", "a file of 40 MB"), (TCP, 22), &[File], |w| {
        login(w);
        w.transfer(0.4 * SECOND, true, 40.0 * MB, &Transfer::tcp(15.0));
    }),
    model(
        (
            "pages, a connection each",
            "Barford and Crovella 1998: bodies log-normal, tails Pareto",
        ),
        (TCP, 80),
        &[Page],
        |w| {
            for n in 0..150u16 {
                w.connection = n;
                let at = f64::from(n) * 0.8 * SECOND;
                page(w, at, &Transfer::tcp(10.0), &[]);
            }
        },
    ),
    model(
        ("pages, HTTP/2", "RFC 9113: one connection, with pings"),
        (TCP, 443),
        &[Page],
        |w| {
            many_pages(w, &Transfer::tcp(12.0), &[]);
        },
    ),
    model(
        ("pages, QUIC", "RFC 9000: one connection"),
        (UDP, 443),
        &[Page],
        |w| {
            many_pages(w, &Transfer::quic(12.0), QUIC_INITIAL);
        },
    ),
    model(
        ("file down, TCP", "60 MB at 18 Mbit/s"),
        (TCP, 443),
        &[File],
        |w| {
            request(w, 0.0, &[]);
            w.transfer(60_000.0, false, 60.0 * MB, &Transfer::tcp(18.0));
        },
    ),
    model(
        ("file up, TCP", "60 MB at 18 Mbit/s"),
        (TCP, 8_080),
        &[File],
        |w| {
            request(w, 0.0, &[]);
            w.transfer(60_000.0, true, 60.0 * MB, &Transfer::tcp(18.0));
        },
    ),
    model(
        (
            "file down, QUIC",
            "RFC 9000: 60 MB at 18 Mbit/s, an odd port",
        ),
        (UDP, 4_433),
        &[File],
        |w| {
            request(w, 0.0, QUIC_INITIAL);
            w.transfer(60_000.0, false, 60.0 * MB, &Transfer::quic(18.0));
        },
    ),
    model(
        ("file up, QUIC", "RFC 9000: 60 MB at 6 Mbit/s"),
        (UDP, 443),
        &[File],
        |w| {
            request(w, 0.0, QUIC_INITIAL);
            w.transfer(60_000.0, true, 60.0 * MB, &Transfer::quic(6.0));
        },
    ),
    model(
        ("file, uTP", "BEP 29: 40 MB at 8 Mbit/s"),
        (UDP, 6_881),
        &[File],
        |w| {
            let mut syn = [0; 20];
            (syn[0], syn[17]) = (0x41, 1);
            w.add(0.0, true, 48.0, &syn);
            w.add(30_000.0, false, 48.0, &syn);
            let utp = Transfer {
                answer: 48.0,
                ..Transfer::tunnel(8.0, PLAIN)
            };
            w.transfer(80_000.0, false, 40.0 * MB, &utp);
        },
    ),
    model(
        ("backup, slow", "40 MB at 2 Mbit/s"),
        (TCP, 873),
        &[File],
        |w| {
            request(w, 0.0, &[]);
            w.transfer(60_000.0, true, 40.0 * MB, &Transfer::tcp(2.0));
        },
    ),
    model(
        ("stream in chunks", "DASH: 2 MB each 4 s"),
        (TCP, 443),
        TRANSFER,
        |w| {
            for n in 0..20 {
                let at = f64::from(n) * 4.0 * SECOND;
                request(w, at, &[]);
                w.transfer(at + 60_000.0, false, 2.0 * MB, &Transfer::tcp(15.0));
            }
        },
    ),
    model(
        ("WireGuard, a file", "60 MB at 15 Mbit/s"),
        (UDP, 51_820),
        &[File],
        |w| {
            w.add(0.0, true, 176.0, WIREGUARD_INIT);
            w.add(40_000.0, false, 120.0, WIREGUARD);
            w.transfer(
                80_000.0,
                false,
                60.0 * MB,
                &Transfer::tunnel(15.0, WIREGUARD),
            );
        },
    ),
    model(
        (
            "WireGuard, pages and a call",
            "what is inside cannot be known",
        ),
        (UDP, 51_821),
        &[Page, File, Interactive, Call],
        |w| {
            w.add(0.0, true, 176.0, WIREGUARD_INIT);
            w.add(40_000.0, false, 120.0, WIREGUARD);
            speech(w, 20.0, |_| 260.0, false, false);
            many_pages(w, &Transfer::tunnel(10.0, WIREGUARD), &[]);
            w.samples
                .iter_mut()
                .for_each(|sample| sample.head = WIREGUARD.to_vec());
        },
    ),
    model(
        ("IPsec, a file", "RFC 4303: 60 MB at 15 Mbit/s"),
        (ESP, 0),
        &[File],
        |w| {
            w.transfer(0.0, true, 60.0 * MB, &Transfer::tunnel(15.0, &[]));
        },
    ),
    model(
        ("MQTT, keepalives and readings", "MQTT 5.0, 3.1.2.10"),
        (TCP, 1_883),
        &[Interactive],
        |w| {
            w.may_be = SHORT;
            for n in 0..120 {
                if n == 5 {
                    w.may_be = &[Interactive];
                }
                let at = f64::from(n) * 10.0 * SECOND;
                w.add(at, true, 54.0 + f64::from(n % 3) * 30.0, &[]);
                w.add(at + 30_000.0, false, 54.0, &[]);
                w.add(at + 31_000.0, true, 52.0, &[]);
            }
        },
    ),
];

/// Two people who talk for two minutes; one at a time if silence is suppressed.
fn speech(w: &mut Writer, gap_ms: f64, len: fn(&mut Writer) -> f64, pauses: bool, rtp: bool) {
    for up in [true, false] {
        let (mut at, mut number) = (4_000.0 * f64::from(u8::from(up)), 7u16);
        let mut talks_until = if up { 1.5 * SECOND } else { 0.0 };
        let mut silent_until = 0.0;
        while at < 2.0 * MINUTE {
            let noise = pauses && at >= talks_until;
            if noise && at >= silent_until {
                talks_until = at + w.rng.exponential(1.2 * SECOND);
                silent_until = talks_until + w.rng.exponential(1.8 * SECOND);
            }
            let packet = if noise { 46.0 } else { len(w) };
            let head = if rtp {
                head_of_rtp(111, number, u32::from(up))
            } else {
                PLAIN.to_vec()
            };
            number = number.wrapping_add(1);
            let jitter = w.rng.exponential(700.0);
            w.add(at + jitter, up, packet, &head);
            at += if noise { 400_000.0 } else { gap_ms * 1_000.0 };
        }
    }
}

fn head_of_rtp(kind: u8, number: u16, source: u32) -> Vec<u8> {
    let mut head = vec![0x80, kind];
    head.extend(number.to_be_bytes());
    head.extend([0, 0, 1, 2]);
    head.extend((0x5e00_0000 | source).to_be_bytes());
    head
}

fn webrtc(w: &mut Writer) {
    for up in [true, false] {
        w.add(0.0, up, 108.0, STUN);
        w.add(40_000.0, up, 92.0, STUN);
    }
    let (mut at, mut speech, mut picture) = (200_000.0, 1u16, 1u16);
    while at < MINUTE {
        for up in [true, false] {
            let source = u32::from(up) * 2;
            let len = w.normal(130.0, 20.0);
            w.add(at, up, len, &head_of_rtp(111, speech, source));
            if speech.is_multiple_of(2) {
                for part in 0..4 {
                    let len = if part == 3 {
                        w.normal(600.0, 200.0)
                    } else {
                        1_180.0
                    };
                    w.add(
                        at + 300.0 + 900.0 * f64::from(part),
                        up,
                        len,
                        &head_of_rtp(96, picture + part, source + 1),
                    );
                }
            }
        }
        if speech.is_multiple_of(2) {
            picture = picture.wrapping_add(4);
        }
        speech = speech.wrapping_add(1);
        at += 20_000.0;
    }
}

fn pictures(w: &mut Writer, mbps: f64, rate: f64, rtp: bool) {
    let (mut at, mut number, mut count) = (0.0, 0u16, 0u32);
    while at < 2.0 * MINUTE {
        let whole = count.is_multiple_of(50);
        let mean = mbps * MB / 8.0 / rate * if whole { 4.0 } else { 0.94 };
        let mut left = w.normal(mean, mean / 5.0).max(200.0);
        let mut part = at;
        while left > 0.0 {
            let head = if rtp {
                head_of_rtp(96, number, 9)
            } else {
                PLAIN.to_vec()
            };
            w.add(part, true, left.min(1_360.0) + 40.0, &head);
            number = number.wrapping_add(1);
            left -= 1_360.0;
            part += 300.0;
        }
        if count.is_multiple_of(100) {
            w.add(
                at + 30_000.0,
                false,
                80.0,
                &[0x81, 201, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8],
            );
        }
        count += 1;
        at += SECOND / rate;
    }
}

fn steady(w: &mut Writer, len: f64, mbps: f64) {
    let mut at = 0.0;
    while at < MINUTE {
        let jitter = w.rng.exponential(200.0);
        w.add(at + jitter, true, len, PLAIN);
        at += len * 8.0 / mbps;
    }
}

type Ticks = (f64, f64, f64, f64);

/// Mean and deviation of the gaps in milliseconds, and of the lengths.
fn game(w: &mut Writer, client: Ticks, server: Ticks) {
    for (up, (gap, sway, len, spread)) in [(true, client), (false, server)] {
        let mut at = 0.0;
        while at < 2.0 * MINUTE {
            let len = if up {
                w.normal(len, spread)
            } else {
                w.extreme(len, spread)
            };
            w.add(at, up, len.max(50.0), PLAIN);
            at += w.normal(gap, sway).max(1.0) * 1_000.0;
        }
    }
}

fn wow(w: &mut Writer) {
    let mut at = 0.0;
    w.may_be = SHORT;
    for n in 0..600 {
        if n == 6 {
            w.may_be = &[Interactive];
        }
        let (up, down) = (w.normal(66.0, 8.0), w.extreme(110.0, 50.0).min(390.0));
        w.add(at, true, up.max(52.0), &[]);
        w.add(at + 60_000.0, false, down.max(52.0), &[]);
        w.add(at + 61_000.0, true, 52.0, &[]);
        at += w.rng.exponential(200_000.0);
    }
}

fn dns(w: &mut Writer) {
    for n in 0..300u16 {
        w.connection = n;
        let at = f64::from(n) * 0.4 * SECOND;
        let (question, answer) = (w.normal(72.0, 8.0), w.normal(190.0, 60.0));
        let answer = if n % 20 == 0 {
            1_260.0
        } else {
            answer.max(80.0)
        };
        w.add(at, true, question, PLAIN);
        w.add(at + 30_000.0, false, answer, PLAIN);
    }
}

fn login(w: &mut Writer) {
    let may_be = std::mem::replace(&mut w.may_be, SHORT);
    for (n, (up, len)) in [
        (true, 60.0),
        (false, 60.0),
        (true, 93.0),
        (true, 1_400.0),
        (false, 1_100.0),
    ]
    .into_iter()
    .enumerate()
    {
        w.add(n as f64 * 20_000.0, up, len, &[]);
    }
    for n in 0..8 {
        w.add(120_000.0 + f64::from(n) * 25_000.0, n % 2 == 0, 150.0, &[]);
    }
    w.may_be = may_be;
}

/// Typing, with occasional output.
fn typing(w: &mut Writer) {
    login(w);
    let mut at = 2.0 * SECOND;
    for n in 0..900 {
        // Right after the login it may still count as one.
        w.may_be = if n < 4 { SHORT } else { &[Interactive] };
        w.add(at, true, 88.0, &[]);
        w.add(at + 30_000.0, false, 88.0, &[]);
        w.add(at + 31_000.0, true, 52.0, &[]);
        if n % 40 == 39 {
            w.may_be = SHORT;
            for part in 0..4 {
                w.add(
                    at + 60_000.0 + f64::from(part) * 300.0,
                    false,
                    if part == 3 { 420.0 } else { 1_400.0 },
                    &[],
                );
                w.add(at + 61_000.0 + f64::from(part) * 300.0, true, 52.0, &[]);
            }
            w.may_be = &[Interactive];
        }
        // After four keystrokes the output is forgotten.
        if n % 40 < 4 && n >= 40 {
            w.samples
                .iter_mut()
                .rev()
                .take(3)
                .for_each(|sample| sample.may_be = SHORT);
        }
        at += (100_000.0 / libm::pow(1.0 - w.rng.uniform(), 1.0 / 1.2)).min(20.0 * SECOND);
    }
}

fn request(w: &mut Writer, at: f64, opening: &[u8]) {
    let quic = !opening.is_empty();
    let may_be = std::mem::replace(&mut w.may_be, SHORT_OR_FILE);
    w.add(at, true, if quic { 1_278.0 } else { 60.0 }, opening);
    w.add(
        at + 25_000.0,
        false,
        if quic { 1_278.0 } else { 60.0 },
        opening,
    );
    w.add(
        at + 50_000.0,
        true,
        if quic { 90.0 } else { 520.0 },
        opening,
    );
    w.may_be = may_be;
}

const SHORT_OR_FILE: &[Behaviour] = &[Page, File];

fn page(w: &mut Writer, at: f64, by: &Transfer, opening: &[u8]) -> f64 {
    request(w, at, opening);
    let bytes = body(w);
    w.transfer(at + 75_000.0, false, bytes, by)
}

/// A body, or all of a page on one connection: log-normal with a Pareto tail.
fn body(w: &mut Writer) -> f64 {
    let bytes = match w.rng.chance(0.93) {
        true => libm::exp(w.normal(9.357, 1.318)),
        false => 60_000.0 / libm::pow(1.0 - w.rng.uniform(), 1.0 / 1.1),
    };
    bytes.clamp(500.0, 700_000.0)
}

fn many_pages(w: &mut Writer, by: &Transfer, opening: &[u8]) {
    let mut at = 0.0;
    let inside: &[u8] = if opening.is_empty() { by.data } else { opening };
    request(w, at, inside);
    for n in 0..40 {
        // A page of many bodies, and a pause for reading it.
        let (mut bytes, bodies) = (0.0, 2 + (w.rng.uniform() * 14.0) as u32);
        for _ in 0..bodies {
            bytes += body(w);
        }
        w.add(at + 100_000.0, true, 420.0, by.data);
        at = w.transfer(at + 130_000.0, false, f64::min(bytes, 900_000.0), by);
        let pause = 1.5 * SECOND + w.rng.exponential(6.0 * SECOND);
        if n % 5 == 0 {
            let may_be = w.may_be;
            if may_be == [Page] {
                w.may_be = SHORT;
            }
            w.add(at + 1.2 * SECOND, true, 69.0, by.data);
            w.add(at + 1.23 * SECOND, false, 69.0, by.data);
            w.may_be = may_be;
        }
        at += pause;
    }
}
