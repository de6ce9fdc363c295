//! The error models in operation (Xylomenos 1999, section 3.2; Gilbert 1960, Elliott 1963).
//!
//! The rules for when a model's state advances decide which frames meet an error, so they follow the sources exactly:
//!
//! | model | state advances with | draws for each frame |
//! |---|---|---|
//! | uniform | nothing; the size does not matter | one |
//! | uniform-ber | nothing | one |
//! | two-state | real time, whether or not frames are sent | one, and one for each state's duration |
//! | two-state-arrival | real time; the state at the end of a frame decides for all of it | the same |
//! | byte-exponential | bytes of transmitted frames | one for each bad byte |
//! | Gilbert-Elliott | frames | two |
//! | two-state-loss | real time; the state when a frame begins to leave decides | the same as two-state |
//! | trace | real time ([`trace`](crate::trace)) | one |
//! | blocks | real time ([`blocks`](crate::blocks)) | none; a generator draws runs of blocks from the fades |
//!
//! State durations and chain steps are drawn from the stream `<name>.fades`, everything else from `<name>.errors`.
//! Schemes compared under one seed therefore see the same fades, regardless of how many frames each of them sends.

use std::fmt;
use std::sync::Arc;

use airlane_base::{Duration, Instant, Rate, Rng, Streams};

use crate::ErrorModelConfig;
use crate::blocks::BlocksReplay;
use crate::trace::Replay;

/// An error model supplied by the caller.
///
/// Frames come in order of their start and do not overlap, as for [`ErrorModel::loses`].
pub trait CustomErrors: fmt::Debug + Send {
    /// Whether a frame of `len_bytes` on the air during `[start, end)` is lost. `random` is the stream from which the
    /// built-in models of this direction draw their errors.
    fn loses(&mut self, start: Instant, end: Instant, len_bytes: usize, random: &mut Rng) -> bool;
}

/// Decides which frames are lost on one direction of a link.
#[derive(Debug)]
pub struct ErrorModel {
    errors: Rng,
    fades: Rng,
    model: Model,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Good = 0,
    Bad = 1,
}

impl State {
    const fn other(self) -> Self {
        match self {
            Self::Good => Self::Bad,
            Self::Bad => Self::Good,
        }
    }
}

#[derive(Debug)]
enum Model {
    None,
    Uniform {
        rate: f64,
    },
    UniformBer {
        /// ln(1 - BER) per byte.
        log_ok_per_byte: f64,
    },
    TwoState {
        /// Mean duration of each state, s.
        mean: [f64; 2],
        /// ln(1 - BER) per nanosecond, in each state.
        log_ok_per_ns: [f64; 2],
        state: State,
        state_ends: Instant,
    },
    TwoStateArrival {
        mean: [f64; 2],
        /// ln(1 - BER) per byte, in each state.
        log_ok_per_byte: [f64; 2],
        state: State,
        state_ends: Instant,
    },
    ByteExponential(BadBytes),
    GilbertElliott {
        leave: [f64; 2],
        loss: [f64; 2],
        state: State,
    },
    TwoStateLoss {
        mean: [f64; 2],
        loss: [f64; 2],
        state: State,
        state_ends: Instant,
    },
    Trace {
        replay: Arc<Replay>,
        /// Position in the recording at the driver's origin.
        start: Duration,
        delays: bool,
    },
    Blocks(Box<BlocksReplay>),
    Custom(Box<dyn CustomErrors>),
}

/// Bad bytes at exponentially distributed distances.
#[derive(Debug)]
struct BadBytes {
    mean: f64,
    /// Bytes until the next bad one.
    gap: f64,
    /// Frames that a bad byte destroys after its own, and how many of them are still to come.
    followers: u32,
    left: u32,
}

impl BadBytes {
    #[inline]
    fn destroy(&mut self, bytes: usize, errors: &mut Rng) -> bool {
        let bytes = bytes as f64;
        if self.left == 0 && self.gap >= bytes {
            self.gap -= bytes;
            return false;
        }
        self.hit(bytes, errors);
        true
    }

    /// Handles a frame that has a bad byte or belongs to the burst of an earlier one.
    #[cold]
    fn hit(&mut self, bytes: f64, errors: &mut Rng) {
        if self.left > 0 {
            self.left -= 1;
            return;
        }
        while self.gap < bytes {
            self.gap += errors.exponential(self.mean);
        }
        self.gap -= bytes;
        self.left = self.followers;
    }
}

impl ErrorModel {
    /// The model of the link direction `name`, in its initial state.
    ///
    /// The source does not say how the models start. Here the two-state models start in the good state, time starts at
    /// the driver's origin, and the intervals are fresh draws. `rate`, the link's, converts time into bits.
    ///
    /// # Panics
    /// If it replays a trace that was not loaded ([`load_traces`](crate::load_traces)).
    pub fn new(config: &ErrorModelConfig, rate: Rate, streams: Streams, name: &str) -> Self {
        Self::with_fades(config, rate, streams, name, name)
    }

    /// Like [`new`](Self::new), but with the fades of the link direction `fades`: two directions with the same fades are
    /// in the same state at any time, if the model runs in real time.
    ///
    /// # Panics
    /// Like [`new`](Self::new).
    pub fn with_fades(
        config: &ErrorModelConfig,
        rate: Rate,
        streams: Streams,
        name: &str,
        fades: &str,
    ) -> Self {
        let mut errors = streams.stream(&format!("{name}.errors"));
        let mut fades = streams.stream(&format!("{fades}.fades"));
        let model = match *config {
            ErrorModelConfig::None => Model::None,
            ErrorModelConfig::Uniform { rate } => Model::Uniform { rate: rate.value() },
            ErrorModelConfig::UniformBer { ber } => Model::UniformBer {
                log_ok_per_byte: libm::log1p(-ber.value()) * 8.0,
            },
            ErrorModelConfig::TwoState {
                good,
                bad,
                ber_good,
                ber_bad,
            } => {
                let mean = means(good, bad);
                let bits_per_ns = rate.as_bps() as f64 * 1e-9;
                Model::TwoState {
                    mean,
                    log_ok_per_ns: [ber_good, ber_bad]
                        .map(|ber| libm::log1p(-ber.value()) * bits_per_ns),
                    state: State::Good,
                    state_ends: Instant::ORIGIN + draw_duration(&mut fades, mean[0]),
                }
            }
            ErrorModelConfig::TwoStateArrival {
                good,
                bad,
                ber_good,
                ber_bad,
            } => {
                let mean = means(good, bad);
                Model::TwoStateArrival {
                    mean,
                    log_ok_per_byte: [ber_good, ber_bad].map(|ber| libm::log1p(-ber.value()) * 8.0),
                    state: State::Good,
                    state_ends: Instant::ORIGIN + draw_duration(&mut fades, mean[0]),
                }
            }
            ErrorModelConfig::ByteExponential { mean, burst } => {
                let mean = mean.as_bytes().max(1) as f64;
                let gap = errors.exponential(mean);
                Model::ByteExponential(BadBytes {
                    mean,
                    gap,
                    followers: burst.map_or(0, |burst| burst.saturating_sub(1)),
                    left: 0,
                })
            }
            ErrorModelConfig::GilbertElliott {
                good_to_bad,
                bad_to_good,
                loss_good,
                loss_bad,
            } => Model::GilbertElliott {
                leave: [good_to_bad.value(), bad_to_good.value()],
                loss: [loss_good.value(), loss_bad.value()],
                state: State::Good,
            },
            ErrorModelConfig::TwoStateLoss {
                good,
                bad,
                loss_good,
                loss_bad,
            } => {
                let mean = means(good, bad);
                Model::TwoStateLoss {
                    mean,
                    loss: [loss_good.value(), loss_bad.value()],
                    state: State::Good,
                    state_ends: Instant::ORIGIN + draw_duration(&mut fades, mean[0]),
                }
            }
            ErrorModelConfig::Trace(ref trace) => {
                let (replay, start) = trace.replay(streams);
                let delays = trace.delays;
                Model::Trace {
                    replay,
                    start,
                    delays,
                }
            }
            ErrorModelConfig::Blocks(ref blocks) => {
                Model::Blocks(Box::new(blocks.replay(streams, &mut fades)))
            }
        };
        Self {
            errors,
            fades,
            model,
        }
    }

    /// Wraps a caller's error model for the link direction `name`.
    pub fn custom(model: Box<dyn CustomErrors>, streams: Streams, name: &str) -> Self {
        Self {
            errors: streams.stream(&format!("{name}.errors")),
            fades: streams.stream(&format!("{name}.fades")),
            model: Model::Custom(model),
        }
    }

    /// Whether the caller supplied the model.
    pub const fn is_custom(&self) -> bool {
        matches!(self.model, Model::Custom(_))
    }

    /// Whether a frame of `bytes` on the air during `[start, end)` is lost.
    ///
    /// Frames must come in order of their start and must not overlap: one transmitter sends one frame at a time.
    #[inline]
    pub fn loses(&mut self, start: Instant, end: Instant, bytes: usize) -> bool {
        match &mut self.model {
            Model::None => false,
            Model::ByteExponential(bad) => bad.destroy(bytes, &mut self.errors),
            _ => self.draw(start, end, bytes),
        }
    }

    /// The models that draw per frame or replay a recording.
    fn draw(&mut self, start: Instant, end: Instant, bytes: usize) -> bool {
        match &mut self.model {
            Model::None | Model::ByteExponential(_) => false,
            Model::Uniform { rate } => self.errors.chance(*rate),
            Model::UniformBer { log_ok_per_byte } => {
                let log_ok = if bytes > 0 {
                    bytes as f64 * *log_ok_per_byte
                } else {
                    0.0
                };
                self.errors.chance(-libm::expm1(log_ok))
            }
            Model::TwoState {
                mean,
                log_ok_per_ns,
                state,
                state_ends,
            } => {
                while *state_ends <= start {
                    *state = state.other();
                    *state_ends += draw_duration(&mut self.fades, mean[*state as usize]);
                }
                let mut log_ok = 0.0;
                let mut from = start;
                while from < end {
                    let to = end.min(*state_ends);
                    let ns = to.saturating_since(from).as_nanos();
                    // Skip an empty piece: with BER 1 the logarithm is minus infinity, and times zero it is NaN.
                    if ns > 0 {
                        log_ok += ns as f64 * log_ok_per_ns[*state as usize];
                    }
                    from = to;
                    if to == *state_ends {
                        *state = state.other();
                        *state_ends += draw_duration(&mut self.fades, mean[*state as usize]);
                    }
                }
                self.errors.chance(-libm::expm1(log_ok))
            }
            Model::TwoStateArrival {
                mean,
                log_ok_per_byte,
                state,
                state_ends,
            } => {
                while *state_ends <= end {
                    *state = state.other();
                    *state_ends += draw_duration(&mut self.fades, mean[*state as usize]);
                }
                // A frame without bytes meets no error; with BER 1 the product would be NaN.
                let log_ok = if bytes > 0 {
                    bytes as f64 * log_ok_per_byte[*state as usize]
                } else {
                    0.0
                };
                self.errors.chance(-libm::expm1(log_ok))
            }
            Model::GilbertElliott { leave, loss, state } => {
                let lost = self.errors.chance(loss[*state as usize]);
                if self.fades.chance(leave[*state as usize]) {
                    *state = state.other();
                }
                lost
            }
            Model::TwoStateLoss {
                mean,
                loss,
                state,
                state_ends,
            } => {
                while *state_ends <= start {
                    *state = state.other();
                    *state_ends += draw_duration(&mut self.fades, mean[*state as usize]);
                }
                self.errors.chance(loss[*state as usize])
            }
            Model::Trace {
                replay, start: at, ..
            } => self.errors.chance(replay.loss_at(*at, start)),
            Model::Blocks(replay) => replay.erases(start, end, &mut self.fades),
            Model::Custom(model) => model.loses(start, end, bytes, &mut self.errors),
        }
    }

    /// How much later than the link's delay a frame arrives that starts at `start`.
    #[inline]
    pub fn lateness(&self, start: Instant) -> Duration {
        match &self.model {
            Model::Trace {
                replay,
                start: at,
                delays: true,
            } => replay.delay_at(*at, start),
            _ => Duration::ZERO,
        }
    }
}

/// Mean durations, s; at least a nanosecond, so that drawing states always makes progress.
fn means(good: Duration, bad: Duration) -> [f64; 2] {
    [good, bad].map(|d| d.max(Duration::from_nanos(1)).as_secs_f64())
}

fn draw_duration(fades: &mut Rng, mean: f64) -> Duration {
    Duration::from_secs_f64(fades.exponential(mean))
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlane_base::{Probability, Size};

    fn p(p: f64) -> Probability {
        Probability::new(p).unwrap()
    }

    fn model(config: &ErrorModelConfig, bps: u64, run: u64) -> ErrorModel {
        let rate = Rate::from_bps(bps).unwrap();
        ErrorModel::new(config, rate, Streams::new(1, run), "test")
    }

    #[test]
    fn uniform_ignores_size_and_time() {
        let config = ErrorModelConfig::Uniform { rate: p(0.3) };
        let (mut small, mut large) = (model(&config, 1, 0), model(&config, 1, 0));
        for i in 0..1000 {
            let late = Instant::from_nanos(i * 1_000_000);
            assert_eq!(
                small.loses(Instant::ORIGIN, Instant::ORIGIN, 2),
                large.loses(late, late + Duration::from_secs(1), 1000),
            );
        }
    }

    #[test]
    fn certain_losses_are_certain() {
        let t = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut always = model(&ErrorModelConfig::Uniform { rate: p(1.0) }, 1000, 0);
        let mut never = model(&ErrorModelConfig::Uniform { rate: p(0.0) }, 1000, 0);
        let hopeless = ErrorModelConfig::TwoState {
            good: Duration::from_millis(1),
            bad: Duration::from_millis(1),
            ber_good: p(1.0),
            ber_bad: p(1.0),
        };
        let mut hopeless = model(&hopeless, 1000, 0);
        for i in 0..10_000 {
            assert!(always.loses(t(i), t(i + 1), 1));
            assert!(!never.loses(t(i), t(i + 1), 1));
            assert!(hopeless.loses(t(i), t(i + 1), 1));
        }
    }

    #[test]
    fn byte_exponential_advances_with_bytes_only() {
        let mean = Size::from_bytes(1000);
        let config = ErrorModelConfig::ByteExponential { mean, burst: None };
        let (mut whole, mut split) = (model(&config, 1, 0), model(&config, 1, 0));
        let now = Instant::ORIGIN;
        for i in 0..10_000 {
            // Pieces of a frame meet the same bad bytes, whatever time passes between them.
            let late = Instant::from_nanos(i * 1_000_000_000);
            let pieces = [300, 200, 500].map(|n| split.loses(late, late, n));
            assert_eq!(whole.loses(now, now, 1000), pieces.contains(&true));
        }
    }

    #[test]
    fn a_burst_takes_the_next_frames_and_no_distance_to_the_next_error() {
        let mean = Size::from_bytes(20_000);
        let config = |burst| ErrorModelConfig::ByteExponential { mean, burst };
        let (mut single, mut bursts) = (model(&config(None), 1, 0), model(&config(Some(4)), 1, 0));
        let now = Instant::ORIGIN;
        for _ in 0..10_000 {
            let hit = single.loses(now, now, 1000);
            assert_eq!(bursts.loses(now, now, 1000), hit);
            if hit {
                assert!((0..3).all(|_| bursts.loses(now, now, 1500)));
            }
        }
    }

    #[test]
    fn two_state_advances_with_time_whatever_is_sent() {
        // Certain errors in the bad state and none in the good one make the state visible.
        let config = ErrorModelConfig::TwoState {
            good: Duration::from_millis(500),
            bad: Duration::from_millis(200),
            ber_good: p(0.0),
            ber_bad: p(1.0),
        };
        let (mut busy, mut idle) = (model(&config, 8_000_000, 3), model(&config, 8_000_000, 3));
        let us = |n| Instant::from_nanos(n * 1_000);
        let mut bad = 0;
        for i in 0..1_000_000u64 {
            let lost = busy.loses(us(i), us(i + 1), 1);
            if i % 997 == 0 {
                assert_eq!(lost, idle.loses(us(i), us(i + 1), 1), "at {i} us");
                bad += u32::from(lost);
            }
        }
        assert!(bad > 0, "no fade was met");
    }

    #[test]
    fn two_state_arrival_asks_only_for_the_end_of_a_frame() {
        let config = ErrorModelConfig::TwoStateArrival {
            good: Duration::from_millis(500),
            bad: Duration::from_millis(200),
            ber_good: p(0.0),
            ber_bad: p(1.0),
        };
        // Frames that end together share their fate, whatever their length; time advances without frames.
        let (mut long, mut short) = (model(&config, 8_000, 3), model(&config, 8_000, 3));
        let ms = |n| Instant::from_nanos(n * 1_000_000);
        let mut lost = 0;
        for i in 1..100_000u64 {
            let fate = long.loses(ms(10 * i - 9), ms(10 * i), 9);
            assert_eq!(fate, short.loses(ms(10 * i - 1), ms(10 * i), 1), "{i}");
            lost += u32::from(fate);
        }
        // 2/7 of the time is bad: 1000 s hold 1400 cycles, whose share varies by 2 %.
        let share = f64::from(lost) / 1e5;
        assert!((share - 2.0 / 7.0).abs() < 0.03, "{share}");
    }

    #[test]
    fn two_state_combines_the_pieces_of_a_frame() {
        // A frame that spans a whole fade is lost even though most of its bits are good.
        let config = ErrorModelConfig::TwoState {
            good: Duration::from_secs(1),
            bad: Duration::from_millis(1),
            ber_good: p(0.0),
            ber_bad: p(1.0),
        };
        let mut lost = 0;
        for run in 0..200 {
            let end = Instant::ORIGIN + Duration::from_secs(20);
            lost += u32::from(model(&config, 1000, run).loses(Instant::ORIGIN, end, 2500));
        }
        // Survival without a fade in 20 s: exp(-20).
        assert_eq!(lost, 200);
    }
}
