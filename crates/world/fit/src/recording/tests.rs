//! Fits recordings of known channels.

use airlane_base::{Duration, Instant, Rate, Rng, Streams};
use airlane_channel::trace::{FrameId, Trace, TraceHeader, TraceRecord};
use airlane_channel::{Channel, ChannelConfig, ErrorModel, ErrorModelConfig, LinkRate};
use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Link {
    rate: LinkRate,
    errors: ErrorModelConfig,
}

/// A channel of 25 ms with a queue of 60 kB.
fn channel(text: &str, seed: u64, name: &str) -> Channel<u64> {
    let link: Link = toml::from_str(text).unwrap();
    let rate = link.rate.mean().unwrap();
    let model = ErrorModel::new(&link.errors, rate, Streams::new(seed, 0), name);
    let config = ChannelConfig {
        rate,
        delay: Duration::from_millis(25),
        queue: "60 kB".parse().unwrap(),
    };
    Channel::new(config, model).with_rate(&link.rate)
}

/// The clock of the other end is 3 s ahead.
const AHEAD: Duration = Duration::from_secs(3);

/// Both views of one direction: frames of `len` bytes with exponential pauses, `load` times as many while `busy`.
fn direction(
    mut channel: Channel<u64>,
    (key, len, mbit): (u32, usize, f64),
    seconds: u64,
    busy: impl Fn(f64) -> f64,
    pauses: &mut Rng,
) -> [Vec<TraceRecord>; 2] {
    let [mut sent, mut came] = [vec![], vec![]];
    let (mut now, mut number) = (0.0, 0);
    // The last second delivers the frames in flight.
    while now < seconds as f64 + 1.0 {
        let at = Instant::from_nanos((now * 1e9) as u64);
        let frame = FrameId { key, number };
        let since = |at: Instant| at.saturating_since(Instant::ORIGIN);
        if now < seconds as f64 {
            sent.push(TraceRecord::Sent {
                at: since(at),
                frame,
                len: len as u32,
                queue: 0,
            });
        }
        while let Some(due) = channel.poll_timeout().filter(|due| *due <= at) {
            let number = channel.poll_deliver(due).unwrap();
            came.push(TraceRecord::Received {
                at: since(due) + AHEAD,
                frame: FrameId { key, number },
                len: len as u32,
            });
        }
        let _ = channel.send(at, len + 66, number);
        number += 1;
        now += pauses.exponential((len + 66) as f64 * 8.0 / (mbit * 1e6 * busy(now)));
    }
    [sent, came]
}

/// A recording of both ends: `mbit` out and a tenth of it, in short frames, back.
fn recording(out: &str, mbit: f64, seconds: u64, seed: u64, busy: impl Fn(f64) -> f64) -> Trace {
    let mut pauses = Streams::new(seed, 0).stream("pauses");
    let back = "rate = '20 Mbit/s'\nerrors = { kind = 'none' }";
    let [sent, came] = direction(
        channel(out, seed, "out"),
        (1, 1_400, mbit),
        seconds,
        busy,
        &mut pauses,
    );
    let [answers, got] = direction(
        channel(back, seed, "back"),
        (2, 100, mbit / 10.0),
        seconds,
        |_| 1.0,
        &mut pauses,
    );
    // The far end's clock stamps what it sends, the near end's what it gets.
    let moved = |record: TraceRecord, by: i64| {
        let at = |at: Duration| Duration::from_nanos((at.as_nanos() as i64 + by) as u64);
        match record {
            TraceRecord::Sent {
                at: t,
                frame,
                len,
                queue,
            } => TraceRecord::Sent {
                at: at(t),
                frame,
                len,
                queue,
            },
            TraceRecord::Received { at: t, frame, len } => TraceRecord::Received {
                at: at(t),
                frame,
                len,
            },
            missed => missed,
        }
    };
    let ahead = AHEAD.as_nanos() as i64;
    let mut near: Vec<_> = got
        .into_iter()
        .map(|r| moved(r, -ahead))
        .chain(sent)
        .collect();
    let mut far: Vec<_> = answers
        .into_iter()
        .map(|r| moved(r, ahead))
        .chain(came)
        .collect();
    near.sort_by_key(TraceRecord::at);
    far.sort_by_key(TraceRecord::at);
    Trace {
        header: TraceHeader {
            name: "left".to_owned(),
            rate_bps: 18_000_000,
            overhead_bytes: 66,
            started_unix_s: 0,
        },
        near,
        far,
        cut_at: None,
    }
}

fn fit(out: &str, mbit: f64, seconds: u64, seed: u64) -> (LinkFit, WayFit) {
    let fit = LinkFit::of(&recording(out, mbit, seconds, seed, |_| 1.0)).unwrap();
    let out = fit.out.clone().unwrap();
    (fit, out)
}

#[track_caller]
fn near(value: f64, truth: f64, part: f64) {
    assert!(
        (value - truth).abs() <= part * truth,
        "{value}, and {truth} is true"
    );
}

#[test]
fn uniform_losses_have_one_state() {
    for (seed, rate) in [(1, 0.02), (2, 0.05), (3, 0.2)] {
        let text = format!("rate = '20 Mbit/s'\nerrors = {{ kind = 'uniform', rate = {rate} }}");
        let (fit, out) = fit(&text, 15.0, 40, seed);
        let LossModel::Uniform { rate: found } = out.loss else {
            panic!("{:?}", out.loss);
        };
        near(found, rate, 4.0 * out.loss_error / rate);
        near(found, rate, 0.1);
        assert_eq!(out.lost_at_full_queue, 0);
        assert!(
            out.notes.iter().all(|n| *n == Note::NeverFilled),
            "{:?}",
            out.notes
        );
        near(fit.round_trip.unwrap().as_secs_f64(), 0.05, 0.02);
        assert_eq!(fit.into.unwrap().loss, LossModel::None);
    }
}

#[test]
fn bursts_have_two_states() {
    for (seed, bad_ms, loss_bad) in [(1, 100, 0.5), (2, 20, 0.9), (3, 400, 0.3)] {
        let text = format!(
            "rate = '20 Mbit/s'\nerrors = {{ kind = 'two-state-loss', good = '1 s', bad = '{bad_ms} ms', \
             loss_good = 0.005, loss_bad = {loss_bad} }}"
        );
        let (_, out) = fit(&text, 15.0, 120, seed);
        let LossModel::TwoState {
            good,
            bad,
            loss_good,
            loss_bad: found,
        } = out.loss
        else {
            panic!("{:?}", out.loss);
        };
        near(good.as_secs_f64(), 1.0, 0.35);
        near(bad.as_secs_f64() * 1e3, f64::from(bad_ms), 0.35);
        near(found, loss_bad, 0.15);
        near(loss_good, 0.005, 0.5);
    }
}

#[test]
fn a_standing_queue_shows_the_capacity() {
    let text = "rate = '20 Mbit/s'\nerrors = { kind = 'uniform', rate = 0.02 }";
    // The load is near the capacity, so that a queue comes and goes.
    let (_, out) = fit(text, 19.5, 20, 5);
    let Capacity::Constant(rate) = out.capacity else {
        panic!("{:?}", out.capacity);
    };
    near(rate.as_bps() as f64, 20e6, 0.02);
    let (_, idle) = fit(text, 6.0, 20, 5);
    assert!(idle.notes.contains(&Note::NeverFilled), "{:?}", idle.notes);
    let Capacity::AtLeast(rate) = idle.capacity else {
        panic!("{:?}", idle.capacity);
    };
    assert!((5.5e6..=8e6).contains(&(rate.as_bps() as f64)), "{rate}");
}

#[test]
fn a_standing_queue_at_the_end_does_not_raise_the_capacity() {
    let text = "rate = '2 Mbit/s'\nerrors = { kind = 'none' }";
    for seconds in [20, 21, 30] {
        let (_, out) = fit(text, 2.5, seconds, 5);
        let Capacity::Constant(rate) = out.capacity else {
            panic!("{:?}", out.capacity);
        };
        near(rate.as_bps() as f64, 2e6, 0.02);
    }
}

#[test]
fn losses_at_a_full_queue_are_not_link_losses() {
    let text = "rate = { kind = 'steps', every = '10 s', rates = ['20 Mbit/s', '10 Mbit/s'] }\n\
                errors = { kind = 'uniform', rate = 0.02 }";
    let (_, out) = fit(text, 12.0, 60, 6);
    let all = out.lost as f64 / out.frames as f64;
    assert!(all > 0.08, "{all}: the queue was not full");
    near(out.loss.mean(), 0.02, 0.15);
    near(out.queue.unwrap().as_bytes() as f64, 60e3, 0.15);
    // In each slow half the capacity shows; in the fast one the link is not filled.
    let Capacity::Steps { every, rates, .. } = &out.capacity else {
        panic!("{:?}", out.capacity);
    };
    let at = |s: f64| rates[(s / every.as_secs_f64()) as usize].as_bps() as f64;
    for s in [12.0, 15.0, 19.0, 33.0, 55.0] {
        near(at(s), 10e6, 0.03);
    }
}

#[test]
fn the_limits_of_a_recording_are_reported() {
    let text = "rate = '20 Mbit/s'\nerrors = { kind = 'uniform', rate = 0.002 }";
    let (_, short) = fit(text, 10.0, 5, 1);
    let is_short = |n: &Note| matches!(n, Note::Short { bursts: false, .. });
    assert!(short.notes.iter().any(is_short), "{:?}", short.notes);
    let idle = recording(text, 0.08, 600, 1, |_| 1.0);
    let error = LinkFit::of(&idle).unwrap_err();
    assert!(matches!(error, RecordingError::Idle { .. }), "{error}");
    let error = LinkFit::of(&recording(text, 0.01, 20, 1, |_| 1.0)).unwrap_err();
    assert!(matches!(error, RecordingError::TooFew { .. }), "{error}");
    assert!(error.to_string().contains("at least 1000"), "{error}");
}

#[test]
fn changes_and_load_dependence_are_reported() {
    let text =
        |rate: f64| format!("rate = '20 Mbit/s'\nerrors = {{ kind = 'uniform', rate = {rate} }}");
    let [first, second] = [0.01, 0.04].map(|rate| recording(&text(rate), 10.0, 30, 3, |_| 1.0));
    let [first, second] = [first, second].map(|trace| frames(&trace, Way::Out));
    let later = second.into_iter().map(|frame| Frame {
        at: frame.at + 30.0,
        ..frame
    });
    let both: Vec<Frame> = first.iter().copied().chain(later).collect();
    let fit = WayFit::of(&both).unwrap();
    assert!(
        fit.notes.iter().any(|n| matches!(n, Note::Changed { .. })),
        "{:?}",
        fit.notes
    );
    // A second of each load in turn, and the heavy one loses more.
    let busy = |at: f64| if at % 2.0 < 1.0 { 1.0 } else { 0.4 };
    let mut frames = frames(&recording(&text(0.01), 12.0, 60, 4, busy), Way::Out);
    let stable = WayFit::of(&frames).unwrap();
    assert!(
        !stable
            .notes
            .iter()
            .any(|n| matches!(n, Note::GrowsWithLoad { .. })),
        "{:?}",
        stable.notes
    );
    let mut draws = Streams::new(9, 0).stream("police");
    for frame in &mut frames {
        let policed = busy(frame.at) == 1.0 && draws.chance(0.03);
        if policed {
            frame.lost = true;
            frame.late = None;
        }
    }
    let policed = WayFit::of(&frames).unwrap();
    let grows = |n: &Note| matches!(n, Note::GrowsWithLoad { light, heavy } if heavy > light);
    assert!(policed.notes.iter().any(grows), "{:?}", policed.notes);
}

#[test]
fn one_end_alone_knows_one_direction() {
    let text = "rate = '20 Mbit/s'\nerrors = { kind = 'uniform', rate = 0.05 }";
    let both = recording(text, 15.0, 20, 1, |_| 1.0);
    let far = Trace {
        near: both.far,
        ..Trace::default()
    };
    let fit = LinkFit::of(&far).unwrap();
    assert!(fit.one_sided() && fit.out.is_none() && fit.round_trip.is_none());
    near(fit.into.unwrap().loss.mean(), 0.05, 0.1);
    let _: Option<Rate> = fit.shaped;
}
