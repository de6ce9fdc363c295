//! The error models against closed forms: section 12.1 of docs/spec/multi-service.md (conformance items 18.1
//! and 18.9), within three standard errors over a million frames.

use airlane_base::{Duration, Instant, Probability, Rate, Size, Streams};
use airlane_channel::{ErrorModel, ErrorModelConfig};

const FRAMES: u64 = 1_000_000;
/// Independent repetitions: their spread gives the standard error, which for a model with memory is larger than for
/// independent losses.
const RUNS: u64 = 50;

fn p(p: f64) -> Probability {
    Probability::new(p).expect("a probability")
}

/// Mean loss over a million back-to-back frames and its standard error.
fn measure(config: &ErrorModelConfig, rate: Rate, bytes: usize, gap: Duration) -> (f64, f64) {
    let per_run = FRAMES / RUNS;
    let losses: Vec<f64> = (0..RUNS)
        .map(|run| {
            let name = format!("link.{bytes}.down");
            let mut model = ErrorModel::new(config, rate, Streams::new(1999, run), &name);
            let sending = rate.transmission_time(bytes);
            let mut start = Instant::ORIGIN;
            let mut lost = 0u64;
            for _ in 0..per_run {
                let end = start + sending;
                lost += u64::from(model.loses(start, end, bytes));
                start = end + gap;
            }
            lost as f64 / per_run as f64
        })
        .collect();
    let runs = RUNS as f64;
    let mean = losses.iter().sum::<f64>() / runs;
    let variance = losses.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (runs - 1.0);
    (mean, (variance / runs).sqrt())
}

#[track_caller]
fn assert_within_three_errors((mean, error): (f64, f64), expected: f64, printed: f64) {
    assert!(error > 0.0, "losses without any spread were not drawn");
    assert!(
        (mean - expected).abs() <= 3.0 * error,
        "measured {mean} +- {error}, closed form {expected}"
    );
    assert!(
        (expected * 100.0 - printed).abs() <= 0.006,
        "closed form {expected} is not the specification's {printed} %"
    );
}

#[test]
fn cellular_uniform() {
    let rate = Rate::from_bps(14_400).unwrap();
    for (level, percent) in [(0.01, 1.0), (0.02, 2.0), (0.05, 5.0), (0.1, 10.0)] {
        let config = ErrorModelConfig::Uniform { rate: p(level) };
        for bytes in [2, 51] {
            let measured = measure(&config, rate, bytes, Duration::ZERO);
            assert_within_three_errors(measured, config.loss_probability(rate, bytes), percent);
        }
    }
}

#[test]
fn wlan_byte_exponential() {
    let rate = Rate::from_bps(2_000_000).unwrap();
    let levels = [
        (131_072, 0.76),
        (65_536, 1.52),
        (32_768, 3.01),
        (16_384, 5.93),
    ];
    for (mean, percent) in levels {
        let config = ErrorModelConfig::ByteExponential {
            mean: Size::from_bytes(mean),
            burst: None,
        };
        let measured = measure(&config, rate, 1001, Duration::ZERO);
        assert_within_three_errors(measured, config.loss_probability(rate, 1001), percent);
    }
}

#[test]
fn pcs_two_state() {
    let rate = Rate::from_bps(64_000).unwrap();
    // Fades of the four levels, and the percentages of section 12.1 for each frame size.
    let sizes = [
        (251, [1.46, 2.43, 5.22, 9.53]),
        (41, [1.01, 1.94, 4.64, 8.81]),
        (3, [0.21, 0.42, 1.02, 1.95]),
        (2, [0.15, 0.29, 0.71, 1.35]),
    ];
    for (bytes, percents) in sizes {
        for (bad_ms, percent) in [100, 200, 500, 1000].into_iter().zip(percents) {
            let config = ErrorModelConfig::TwoState {
                good: Duration::from_secs(10),
                bad: Duration::from_millis(bad_ms),
                ber_good: p(1e-6),
                ber_bad: p(1e-2),
            };
            // Idle time between frames: even small frames then meet thousands of fades, and the start in the good state
            // does not matter.
            let gap = Duration::from_millis(60);
            let measured = measure(&config, rate, bytes, gap);
            assert_within_three_errors(measured, config.loss_probability(rate, bytes), percent);
        }
    }
}

#[test]
fn two_state_decided_at_arrival() {
    let config = ErrorModelConfig::TwoStateArrival {
        good: Duration::from_secs(10),
        bad: Duration::from_millis(500),
        ber_good: p(1e-6),
        ber_bad: p(1.0),
    };
    // 500 of 10,500 ms are bad; in the rest, single bits lose 1 - (1 - 1e-6)^2008.
    let rate = Rate::from_bps(64_000).unwrap();
    let measured = measure(&config, rate, 251, Duration::from_millis(60));
    assert_within_three_errors(measured, config.loss_probability(rate, 251), 4.95);
}

#[test]
fn gilbert_elliott_stationary() {
    let config = ErrorModelConfig::GilbertElliott {
        good_to_bad: p(0.02),
        bad_to_good: p(0.18),
        loss_good: p(0.001),
        loss_bad: p(0.6),
    };
    // A tenth of the frames meets the bad state: 0.9 * 0.001 + 0.1 * 0.6.
    let rate = Rate::from_bps(1_000_000).unwrap();
    let measured = measure(&config, rate, 500, Duration::ZERO);
    assert_within_three_errors(measured, config.loss_probability(rate, 500), 6.09);
}

/// Burst lengths of the Gilbert-Elliott chain are geometric with mean `1 / bad_to_good`.
#[test]
fn gilbert_elliott_bursts() {
    let config = ErrorModelConfig::GilbertElliott {
        good_to_bad: p(0.05),
        bad_to_good: p(0.25),
        loss_good: p(0.0),
        loss_bad: p(1.0),
    };
    let rate = Rate::from_bps(1_000_000).unwrap();
    let mut model = ErrorModel::new(&config, rate, Streams::new(1, 0), "bursts");
    let (mut bursts, mut lost, mut before) = (0u32, 0u32, false);
    for _ in 0..FRAMES {
        let hit = model.loses(Instant::ORIGIN, Instant::ORIGIN, 1);
        bursts += u32::from(hit && !before);
        lost += u32::from(hit);
        before = hit;
    }
    let mean = f64::from(lost) / f64::from(bursts);
    let error = (0.75f64 / (0.25 * 0.25) / f64::from(bursts)).sqrt();
    assert!((mean - 4.0).abs() <= 3.0 * error, "{mean} +- {error}");
}

/// Two schemes that send at different times and sizes see the same fades: when one finds the channel dead, so does the
/// other.
#[test]
fn two_schemes_see_the_same_fades() {
    let config = ErrorModelConfig::TwoState {
        good: Duration::from_secs(1),
        bad: Duration::from_millis(300),
        ber_good: p(0.0),
        ber_bad: p(1.0),
    };
    let rate = Rate::from_bps(8_000_000).unwrap();
    let us = |n| Instant::from_nanos(n * 1_000);
    let map = |every: u64, bytes: u64| -> Vec<(u64, bool)> {
        let mut model = ErrorModel::new(&config, rate, Streams::new(7, 2), "link.radio.down");
        // 8 Mbit/s: a byte is a microsecond.
        (0..100_000_000 / every)
            .map(|i| i * every)
            .map(|t| (t, model.loses(us(t), us(t + bytes), bytes as usize)))
            .collect()
    };
    let saturated = map(100, 100);
    let sparse = map(1_700, 100);
    let mut fades = 0;
    for (t, lost) in sparse {
        assert_eq!(saturated[(t / 100) as usize], (t, lost));
        fades += u32::from(lost);
    }
    assert!(fades > 1000, "only {fades} frames met a fade");
}

/// Two directions that share their fades are dead at the same time and draw their losses independently.
#[test]
fn shared_fades_are_the_same_in_both_directions() {
    let config = ErrorModelConfig::TwoState {
        good: Duration::from_secs(1),
        bad: Duration::from_secs(1),
        ber_good: p(0.0),
        ber_bad: p(0.001),
    };
    let rate = Rate::from_bps(8_000_000).unwrap();
    let us = |n| Instant::from_nanos(n * 1_000);
    let map = |name: &str| -> Vec<bool> {
        let streams = Streams::new(7, 2);
        let mut model = ErrorModel::with_fades(&config, rate, streams, name, "link.radio");
        (0..200_000u64)
            .map(|i| i * 1_000)
            .map(|t| model.loses(us(t), us(t + 100), 100))
            .collect()
    };
    let (down, up) = (map("link.radio.down"), map("link.radio.up"));
    // A frame of 100 bytes survives the bad state with 45 %. Losses of the two directions must coincide with 55 %; with
    // independent fades it would be half of that.
    let lost = down.iter().filter(|lost| **lost).count() as f64;
    let both = down.iter().zip(&up).filter(|(a, b)| **a && **b).count() as f64;
    let expected = 1.0 - libm::exp(800.0 * libm::log1p(-0.001));
    assert!((both / lost - expected).abs() < 0.02, "{}", both / lost);
}

/// Two states in real time: idle time counts as well, and sizes do not.
#[test]
fn two_state_loss_stationary() {
    let config = ErrorModelConfig::TwoStateLoss {
        good: Duration::from_millis(300),
        bad: Duration::from_millis(100),
        loss_good: p(0.01),
        loss_bad: p(0.61),
    };
    let rate = Rate::from_bps(2_000_000).unwrap();
    for (bytes, gap) in [(1_000, Duration::ZERO), (50, Duration::from_millis(4))] {
        let measured = measure(&config, rate, bytes, gap);
        assert_within_three_errors(measured, config.loss_probability(rate, bytes), 16.0);
    }
}
