//! Encoding and decoding agree, damage is found, and two views tell the fate of each frame.

use airlane_base::{Duration, Instant, Streams};
use proptest::prelude::*;

use super::format::{BLOCK_HEAD, CRC};
use super::*;

fn records() -> impl Strategy<Value = Vec<TraceRecord>> {
    let step = prop_oneof![0u64..10, 0u64..1_000, 0u64..10_000_000_000];
    let number = prop_oneof![
        Just(None),
        (0u64..100).prop_map(Some),
        any::<u64>().prop_map(Some)
    ];
    let len = prop_oneof![Just(1_400u32), 0u32..=65_536];
    let queue = prop_oneof![Just(0u32), any::<u32>()];
    let record = (0u8..20, step, 0u32..3, number, len, queue, any::<u64>());
    prop::collection::vec(record, 0..200).prop_map(|records| {
        let (mut at, mut next) = (0, 0u64);
        let build = |(kind, step, key, number, len, queue, missed)| {
            at += step;
            let at = Duration::from_micros(at);
            let number: u64 = Option::unwrap_or(number, next);
            next = number.wrapping_add(1);
            let frame = FrameId { key, number };
            match kind {
                0 => TraceRecord::Missed {
                    at,
                    records: missed,
                },
                1..=10 => TraceRecord::Sent {
                    at,
                    frame,
                    len,
                    queue,
                },
                _ => TraceRecord::Received { at, frame, len },
            }
        };
        records.into_iter().map(build).collect()
    })
}

prop_compose! {
    fn traces()(
        name in "[a-zä ]{0,12}",
        numbers in any::<(u64, u32, u64)>(),
        near in records(),
        far in records(),
    ) -> Trace {
        let header = TraceHeader {
            name,
            rate_bps: numbers.0,
            overhead_bytes: numbers.1,
            started_unix_s: numbers.2,
        };
        Trace { header, near, far, cut_at: None }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(trace in traces()) {
        prop_assert_eq!(Trace::read(&trace.to_bytes()), Ok(trace));
    }

    #[test]
    fn a_changed_byte_is_found(trace in traces(), at in any::<prop::sample::Index>(), flip in 1u8..) {
        let mut bytes = trace.to_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        // A length that grows looks like a truncated file, and a flipped end is still a valid end.
        match Trace::read(&bytes) {
            Ok(read) => prop_assert!(read != trace),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn a_file_cut_off_anywhere_gives_what_is_before(trace in traces(), at in any::<prop::sample::Index>()) {
        let bytes = trace.to_bytes();
        let at = at.index(bytes.len());
        match Trace::read(&bytes[..at]) {
            Ok(read) => {
                prop_assert!(trace.near.starts_with(&read.near) && trace.far.starts_with(&read.far));
                prop_assert!(read.cut_at.is_none_or(|cut| cut as usize <= at));
            }
            Err(TraceError::Magic | TraceError::Header { .. }) => {}
            Err(error) => prop_assert!(false, "{}", error),
        }
    }
}

#[test]
fn refusals_say_what_and_where() {
    let refusal = |bytes: &[u8]| Trace::read(bytes).unwrap_err().to_string();
    assert!(refusal(b"airtrax").contains("airlane record"));
    assert!(refusal(b"airtrace\x07").contains("version 7"));
    assert!(refusal(b"airtrace\x01\0\0\0\x09").contains("at byte 9"));
    let trace = Trace {
        near: vec![TraceRecord::Missed {
            at: Duration::from_micros(3),
            records: 1,
        }],
        ..Trace::default()
    };
    let good = trace.to_bytes();
    let block = good.len() - BLOCK_HEAD - 2;
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    let said = refusal(&bad);
    assert!(
        said.contains(&format!("at byte {block}")) && said.contains("checksum"),
        "{said}"
    );
    let mut bad = good.clone();
    bad[block] = 7;
    assert!(refusal(&bad).contains("neither end"));
    bad[block + 1] = 0xff;
    assert!(refusal(&bad).contains("longer than 1 MB"));
    // A received frame without keys, with a valid checksum.
    let mut bad = good[..block].to_vec();
    bad.extend_from_slice(&[0, 0, 0, 0, 1]);
    bad.extend_from_slice(&CRC.checksum(&[encode::RECEIVED]).to_be_bytes());
    bad.push(encode::RECEIVED);
    let said = refusal(&bad);
    let at = format!("at byte {}", block + BLOCK_HEAD);
    assert!(said.contains(&at) && said.contains("no keys"), "{said}");
}

#[test]
fn a_busy_link_takes_few_bytes_for_a_frame() {
    let mut rng = Streams::new(1, 0).stream("link");
    let mut encoder = Encoder::new(TraceEnd::Near);
    let (mut out, mut now) = (Vec::new(), 0);
    let frames = 100_000;
    for i in 0..frames {
        // Full frames at 20 Mbit/s with a queue; for every second one an acknowledgment arrives.
        now += 600_000 + rng.next_u64() % 10_000;
        let frame = |key| FrameId { key, number: i };
        let (start, now) = (Instant::ORIGIN, Instant::from_nanos(now));
        encoder.sent(
            start,
            now,
            frame(1 << 30),
            1_472,
            30_000 + (i as usize % 20) * 1_400,
        );
        encoder.received(start, now, frame(1 << 31), 72);
        if encoder.is_full() {
            encoder.finish_block(&mut out);
        }
    }
    let each = out.len() as f64 / (2 * frames) as f64;
    assert!(each < 4.5, "{each} bytes for each of the frames");
}

/// Two ends of a link with clocks of their own: every `lose`th frame from the left is lost, and every `late`th frame
/// waits.
fn two_ends(frames: u64, lose: u64, late: u64) -> [Trace; 2] {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for i in 0..frames {
        let frame = FrameId { key: 5, number: i };
        let answer = FrameId { key: 6, number: i };
        let at = Duration::from_millis(10 * i);
        let (len, queue) = (1_000, 0);
        left.push(TraceRecord::Sent {
            at,
            frame,
            len,
            queue,
        });
        let wait = if i % late == late - 1 { 3 } else { 0 };
        let came = Duration::from_millis(10 * i + 500 + 2 + wait);
        if i % lose != lose - 1 {
            right.push(TraceRecord::Received {
                at: came,
                frame,
                len,
            });
        }
        let at = Duration::from_millis(10 * i + 500 + 6);
        right.push(TraceRecord::Sent {
            at,
            frame: answer,
            len,
            queue,
        });
        let came = Duration::from_millis(10 * i + 8);
        left.push(TraceRecord::Received {
            at: came,
            frame: answer,
            len,
        });
    }
    [("left", left), ("right", right)].map(|(name, near)| Trace {
        header: TraceHeader {
            name: name.to_owned(),
            ..TraceHeader::default()
        },
        near,
        ..Trace::default()
    })
}

#[test]
fn two_recordings_tell_the_fate_of_each_frame() {
    let [left, right] = two_ends(1_000, 20, 7);
    let joined = Trace::join(left.clone(), right.clone()).unwrap();
    let back = Trace::read(&joined.to_bytes()).unwrap();
    assert_eq!(back, joined);
    let out = joined.path(Way::Out).unwrap();
    // No later frame reveals that the last one is lost, and not late.
    assert_eq!((out.received, out.lost, out.unknown), (950, 49, 1));
    for (i, sample) in out.samples.iter().enumerate() {
        assert_eq!(sample.at, Duration::from_millis(10 * i as u64));
        let outcome = match (i % 20 == 19, i % 7 == 6) {
            (true, _) => FrameOutcome::Lost,
            (_, true) => FrameOutcome::Received(Some(Duration::from_millis(3))),
            _ => FrameOutcome::Received(Some(Duration::ZERO)),
        };
        assert_eq!(sample.outcome, outcome, "frame {i}");
    }
    let back = joined.path(Way::In).unwrap();
    assert_eq!((back.received, back.lost, back.unknown), (1_000, 0, 0));
    // 2 ms there and back, half a second between the clocks; the answer waits 4 ms, which is no part of it.
    assert_eq!(joined.round_trip(), Some(Duration::from_millis(4)));
    assert_eq!(right.round_trip(), None);
    // The same frames, seen from the right.
    let turned = Trace::join(right, left.clone()).unwrap();
    assert_eq!(turned.path(Way::In).unwrap().lost, 49);

    let error = Trace::join(joined, left.clone()).unwrap_err();
    assert!(error.to_string().contains("both ends already"), "{error}");
    let error = Trace::join(left.clone(), left).unwrap_err();
    assert_eq!(error, JoinError::Strangers);
}

#[test]
fn one_recording_knows_the_losses_towards_it() {
    let [left, right] = two_ends(1_000, 20, 7);
    assert_eq!(right.path(Way::Out), None);
    let path = right.path(Way::In).unwrap();
    // The last frame is lost, too, but no later one reveals it.
    assert_eq!((path.received, path.lost), (950, 49));
    // Between frames 18 and 20; the latter waited.
    let lost: Vec<_> = path
        .samples
        .iter()
        .filter(|s| s.outcome == FrameOutcome::Lost)
        .collect();
    assert_eq!(lost[0].at, Duration::from_nanos(500_000_000 + 193_500_000));
    assert_eq!(left.path(Way::In).unwrap().lost, 0);
}

/// What stood in a queue when the recordings ended is not lost, although the receiver had something to say later.
#[test]
fn frames_that_waited_at_the_end_are_not_lost() {
    let [left, mut right] = two_ends(1_000, 20, 7);
    let waited = |record: &TraceRecord| {
        let end = Duration::from_millis(500 + 9_700);
        matches!(record, TraceRecord::Received { at, .. } if *at > end)
    };
    right.near.retain(|record| !waited(record));
    let path = Trace::join(left, right).unwrap().path(Way::Out).unwrap();
    assert_eq!((path.received, path.lost, path.unknown), (922, 48, 30));
}

#[test]
fn unrecorded_frames_are_not_lost() {
    let [left, mut right] = two_ends(1_000, 20, 7);
    // The right end started later, stopped earlier, and missed some records.
    let at = |record: &TraceRecord| record.at().as_nanos() / 10_000_000;
    right
        .near
        .retain(|record| matches!(at(record), 100..400 | 450..900));
    let after = right
        .near
        .iter()
        .position(|record| at(record) >= 450)
        .unwrap();
    let hole = TraceRecord::Missed {
        at: right.near[after].at(),
        records: 100,
    };
    right.near.insert(after, hole);
    let received = right
        .near
        .iter()
        .filter(|r| matches!(r, TraceRecord::Received { .. }));
    let received = received.count() as u64;
    let joined = Trace::join(left, right.clone()).unwrap();
    let path = joined.path(Way::Out).unwrap();
    assert_eq!(path.received, received);
    assert_eq!(path.received + path.lost + path.unknown, 1_000);
    assert!((36..=38).contains(&path.lost), "{}", path.lost);
    let alone = right.path(Way::In).unwrap();
    assert!((36..=38).contains(&alone.lost), "{}", alone.lost);
    assert!(alone.unknown >= 49, "{}", alone.unknown);
}

#[test]
fn implausible_numbers_are_not_losses() {
    let received = |ms, number| TraceRecord::Received {
        at: Duration::from_millis(ms),
        frame: FrameId { key: 1, number },
        len: 1,
    };
    let trace = Trace {
        near: vec![received(1, 0), received(2, u64::MAX)],
        ..Trace::default()
    };
    let path = trace.path(Way::In).unwrap();
    assert_eq!((path.lost, path.unknown), (0, u64::MAX - 1));
}
