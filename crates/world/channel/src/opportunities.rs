//! A link that sends at given times only, as a cellular scheduler does and Mahimahi's traces record it.
//!
//! A trace is text with one time per line, in whole milliseconds and never decreasing. At each time a fixed number of
//! bytes may leave, of one frame or of several; unused capacity is lost. A frame leaves with its last byte. The last
//! line is the length of the trace, after which it repeats.
//!
//! ```text
//! 0          three opportunities in 5 ms; the one at 0 comes with the one at the end of the previous round
//! 2
//! 5
//! ```
//!
//! A frame handed over at the very time of an opportunity misses it, as in Mahimahi, which empties its queue before it
//! accepts a frame.

use std::sync::Arc;

use airlane_base::{Duration, Instant, Rate, Size};

const NANOS_PER_MS: u64 = 1_000_000;
/// Longest trace, ms: 11 days. Thousands of repetitions stay far within the range of nanoseconds.
const LONGEST_MS: u64 = 1_000_000_000;

/// The times at which a link may send, repeated without end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opportunities {
    /// `times_ms[opportunities]`: never decreasing, the last one above zero.
    times_ms: Vec<u64>,
    /// Bytes that may leave at each time.
    size: Size,
}

/// Why a text is not a trace of opportunities.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpportunitiesError {
    /// A line is not a time.
    #[error(
        "line {line}: \"{text}\" is no time; write one whole number of milliseconds a line, at most {LONGEST_MS}{}",
        of_rates(text)
    )]
    NoTime {
        /// The line, from 1.
        line: usize,
        /// The beginning of the line.
        text: String,
    },
    /// A time is earlier than the one before it.
    #[error("line {line}: {ms} ms comes after {before} ms; times never go back")]
    Back {
        /// The line, from 1.
        line: usize,
        /// The time on the line.
        ms: u64,
        /// The time on the line before.
        before: u64,
    },
    /// The trace has no lines, or only times of 0.
    #[error(
        "the trace lasts for no time; it needs a line above 0, which is its length in milliseconds"
    )]
    NoLength,
}

/// A hint for a line with two columns.
fn of_rates(line: &str) -> &'static str {
    match line
        .split([' ', '\t', ',', ';'])
        .filter(|cell| !cell.is_empty())
        .count()
    {
        2 => "; `airlane trace convert --from rates` makes such a file of seconds and Mbit/s",
        _ => "",
    }
}

impl Opportunities {
    /// Parses a trace. `size`, at least 1 B, may leave at each of its times.
    ///
    /// # Errors
    /// Names the first wrong line.
    pub fn parse(text: &[u8], size: Size) -> Result<Self, OpportunitiesError> {
        let mut times_ms: Vec<u64> = vec![];
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            let digits = !line.is_empty() && line.iter().all(u8::is_ascii_digit);
            let ms = std::str::from_utf8(line).ok().filter(|_| digits);
            let ms: Option<u64> = ms.and_then(|text| text.parse().ok());
            let Some(ms) = ms.filter(|ms| *ms <= LONGEST_MS) else {
                if text.is_empty() {
                    break;
                }
                let start = &line[..line.len().min(40)];
                return Err(OpportunitiesError::NoTime {
                    line: at + 1,
                    text: String::from_utf8_lossy(start).into_owned(),
                });
            };
            if let Some(before) = times_ms.last().copied().filter(|before| *before > ms) {
                let line = at + 1;
                return Err(OpportunitiesError::Back { line, ms, before });
            }
            times_ms.push(ms);
        }
        if times_ms.last().copied().unwrap_or(0) == 0 {
            return Err(OpportunitiesError::NoLength);
        }
        let size = Size::from_bytes(size.as_bytes().max(1));
        Ok(Self { times_ms, size })
    }

    /// Length of the trace before it repeats, ms.
    fn length_ms(&self) -> u64 {
        *self.times_ms.last().expect("checked: there is a line")
    }

    /// The times at which the link may send, from the beginning of the trace.
    pub fn times(&self) -> impl Iterator<Item = Duration> {
        self.times_ms.iter().map(|ms| Duration::from_millis(*ms))
    }

    /// Length of the trace before it repeats.
    pub fn length(&self) -> Duration {
        Duration::from_millis(self.times_ms.last().copied().unwrap_or(0))
    }

    /// The long-run rate.
    pub fn mean_rate(&self) -> Rate {
        let bits = self.times_ms.len() as u128 * u128::from(self.size.as_bytes()) * 8;
        let bps = bits * 1_000 / u128::from(self.length_ms());
        Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX).max(1)).expect("at least 1 bit/s")
    }

    /// The time of opportunity `number`, counted across all repetitions.
    fn time(&self, number: u64) -> Instant {
        let count = self.times_ms.len() as u64;
        let ms = (number / count).saturating_mul(self.length_ms())
            + self.times_ms[(number % count) as usize];
        Instant::from_nanos(ms.saturating_mul(NANOS_PER_MS))
    }

    /// The first opportunity later than `now`.
    fn after(&self, now: Instant) -> u64 {
        let ms = now.as_nanos() / NANOS_PER_MS;
        let (round, within) = (ms / self.length_ms(), ms % self.length_ms());
        let first = self.times_ms.partition_point(|time| *time <= within);
        round * self.times_ms.len() as u64 + first as u64
    }
}

/// A transmitter's position in its opportunities.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    opportunities: Arc<Opportunities>,
    /// The next opportunity with capacity left.
    next: u64,
    /// Its remaining capacity, bytes.
    left: u64,
}

impl Cursor {
    pub(crate) fn new(opportunities: Arc<Opportunities>) -> Self {
        let left = opportunities.size.as_bytes();
        Self {
            opportunities,
            next: 0,
            left,
        }
    }

    /// When a frame handed over at `now` begins to leave. Earlier opportunities expire.
    pub(crate) fn start(&mut self, now: Instant) -> Instant {
        let at = self.opportunities.time(self.next);
        if at > now {
            return at;
        }
        self.next = self.opportunities.after(now);
        self.left = self.opportunities.size.as_bytes();
        self.opportunities.time(self.next)
    }

    /// Capacity of the opportunities that have passed by `now`, bytes. An opportunity at the origin does not count:
    /// nothing can have been handed over before it.
    pub(crate) fn passed(&self, now: Instant) -> u64 {
        let opportunities = &self.opportunities;
        let count = opportunities.after(now) - opportunities.after(Instant::ORIGIN);
        count.saturating_mul(opportunities.size.as_bytes())
    }

    /// Bytes accepted by `now` that leave later; they fill the opportunities from the next one on without a gap.
    pub(crate) fn unsent(&self, now: Instant) -> u64 {
        let size = self.opportunities.size.as_bytes();
        let full = self.next.checked_sub(self.opportunities.after(now));
        full.map_or(0, |full| full.saturating_mul(size) + (size - self.left))
    }

    /// Takes capacity for a frame of `len` bytes from the next opportunity on; returns the time at which its last byte
    /// leaves.
    pub(crate) fn take(&mut self, len: usize) -> Instant {
        let (len, size) = (len as u64, self.opportunities.size.as_bytes());
        if let Some(more) = len.checked_sub(self.left).filter(|more| *more > 0) {
            self.next = self.next.saturating_add(more.div_ceil(size));
            self.left = size - (more - 1) % size - 1;
        } else {
            self.left -= len;
        }
        let departs = self.opportunities.time(self.next);
        if self.left == 0 {
            (self.next, self.left) = (self.next.saturating_add(1), size);
        }
        departs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Channel, ChannelConfig, ErrorModel, ErrorModelConfig, LinkRate, OpportunitiesConfig,
    };
    use airlane_base::{Duration, Streams};
    use proptest::prelude::*;

    fn opportunities(text: &str, size: u64) -> Result<Opportunities, OpportunitiesError> {
        Opportunities::parse(text.as_bytes(), Size::from_bytes(size))
    }

    fn channel(text: &str, size: u64, queue: &str) -> Channel<u64> {
        let size = Some(Size::from_bytes(size));
        let config = OpportunitiesConfig::new("x".to_owned(), size);
        let mut times = LinkRate::Opportunities(config);
        times.load(|_| Ok(text.as_bytes().to_vec())).unwrap();
        let rate = times.mean().unwrap();
        let errors = ErrorModel::new(&ErrorModelConfig::None, rate, Streams::new(1, 0), "x");
        let config = ChannelConfig {
            rate,
            delay: Duration::ZERO,
            queue: queue.parse().unwrap(),
        };
        Channel::new(config, errors).with_rate(&times)
    }

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    #[test]
    fn a_trace_is_read_line_by_line() {
        // 3 x 1504 B in 5 ms.
        let rate = opportunities("0\n2\r\n5\n", 1504).unwrap().mean_rate();
        assert_eq!(rate.as_bps(), 7_219_200);
        assert_eq!(opportunities("5", 1).unwrap().mean_rate().as_bps(), 1_600);
        for (text, part) in [
            ("", "no time"),
            ("0\n0\n", "no time"),
            ("1\n\n2", "line 2: \"\""),
            ("1\n2 3\n", "line 2: \"2 3\""),
            ("0 5.5\n1 3\n", "convert --from rates"),
            ("-1\n", "line 1"),
            ("3\n2\n", "line 2: 2 ms comes after 3 ms"),
            ("99999999999999999999", "line 1"),
        ] {
            let said = opportunities(text, 1).unwrap_err().to_string();
            assert!(said.contains(part), "{text:?}: {said}");
        }
    }

    #[test]
    fn frames_leave_at_opportunities_and_share_them() {
        let mut c = channel("2\n3\n10\n", 1_000, "9 packets");
        // Two leave at once, a third needs two opportunities, and a fourth leaves in the next round.
        assert_eq!(c.send(at(0), 400, 0), Ok(at(2_000)));
        assert_eq!(c.send(at(0), 600, 1), Ok(at(2_000)));
        assert_eq!(c.send(at(0), 1_500, 2), Ok(at(10_000)));
        assert_eq!(c.send(at(500), 501, 3), Ok(at(12_000)));
        assert_eq!(c.last_start(), at(10_000));
        // Leftover capacity goes to a frame handed over before the opportunity, not at its time.
        assert_eq!(c.send(at(11_999), 900, 4), Ok(at(12_000)));
        assert_eq!(c.send(at(12_000), 1, 5), Ok(at(13_000)));
        // After a long idle time, at the end of a round.
        assert_eq!(c.send(at(40_000), 1, 6), Ok(at(42_000)));
        assert_eq!(c.send(at(1_000_003_000), 1, 7), Ok(at(1_000_010_000)));
    }

    #[test]
    fn the_queue_holds_what_waits_for_an_opportunity() {
        let mut c = channel("1\n5\n", 1_000, "2 packets");
        for id in 0..2 {
            assert!(c.send(at(0), 1_000, id).is_ok());
        }
        assert_eq!(c.send(at(0), 1_000, 2), Err(2), "nothing has left yet");
        assert_eq!(c.send(at(1_000), 1_000, 3), Ok(at(6_000)));
        assert_eq!(c.stats().dropped_queue.frames, 1);
    }

    #[test]
    fn utilisation_compares_departures_with_past_opportunities() {
        // 1 kB at 1 ms, then nothing until 100 ms: all capacity so far was used, however low the mean rate is.
        let mut c = channel("1\n100\n100\n", 1_000, "9 packets");
        assert_eq!(c.utilisation(at(0)), 0.0);
        c.send(at(0), 1_000, 0).unwrap();
        assert_eq!(
            [999, 1_000, 99_999].map(|us| c.utilisation(at(us))),
            [0.0, 1.0, 1.0]
        );
        // Half of the next opportunity; of the frame that needs two, half has left after the first.
        c.send(at(50_000), 500, 1).unwrap();
        assert_eq!(c.utilisation(at(100_000)), 0.5);
        c.send(at(100_000), 2_000, 2).unwrap();
        assert_eq!(c.utilisation(at(101_000)), 2_500.0 / 4_000.0);
        assert_eq!(c.utilisation(at(200_000)), 3_500.0 / 6_000.0);
        // Nothing can use an opportunity at time 0.
        let mut c = channel("0\n2\n", 1_000, "9 packets");
        c.send(at(0), 1_000, 0).unwrap();
        assert_eq!(c.utilisation(at(2_000)), 0.5);
    }

    proptest! {
        /// A link that always has something to send uses every opportunity, and at no time is more used than has passed.
        #[test]
        fn utilisation_is_one_where_something_always_waits(
            times in prop::collection::vec(1u64..50, 1..12),
            frames in prop::collection::vec((1u64..3_000, 0u64..10), 1..60),
            until in 1u64..200,
            greedy in any::<bool>(),
        ) {
            let mut times = times;
            times.sort_unstable();
            let text: String = times.iter().map(|ms| format!("{ms}\n")).collect();
            let mut c = channel(&text, 1_000, "1000000 packets");
            let mut now = 0;
            for (len, gap) in frames {
                c.send(at(now), len as usize, 0).unwrap();
                now += if greedy { 0 } else { gap * 1_000 };
            }
            if greedy {
                (0..10_000).for_each(|_| { c.send(at(now), 1_000, 0).unwrap(); });
            }
            let used = c.utilisation(at(now + until * 1_000));
            prop_assert!((0.0..=1.0).contains(&used), "{}", used);
            if greedy && until >= times[0] {
                prop_assert_eq!(used, 1.0);
            }
        }

        /// The departures are those of a transmitter that is polled every millisecond.
        #[test]
        fn departures_are_those_of_an_emulator(
            steps in prop::collection::vec(0u64..4, 1..12),
            size in 1u64..40,
            frames in prop::collection::vec((0u64..20_000, 0usize..100), 1..40),
        ) {
            let mut times: Vec<u64> = steps
                .iter()
                .scan(0, |at, step| { *at += step; Some(*at) })
                .collect();
            times.push(times.last().unwrap() + 1);
            let text: String = times.iter().map(|ms| format!("{ms}\n")).collect();
            let mut c = channel(&text, size, "1000 packets");
            let mut frames: Vec<(u64, usize)> = frames;
            frames.sort_by_key(|frame| frame.0);
            let got: Vec<Instant> =
                frames.iter().map(|(us, len)| c.send(at(*us), *len, 0).unwrap()).collect();

            let mut expected = vec![];
            let (mut head, mut rest) = (0, frames[0].1 as u64);
            'rounds: for round in 0.. {
                for time in &times {
                    let now = (round * times.last().unwrap() + time) * 1_000;
                    let mut left = size;
                    while frames[head].0 < now && left > 0 {
                        let sent = rest.min(left);
                        (rest, left) = (rest - sent, left - sent);
                        if rest > 0 { break; }
                        expected.push(at(now));
                        head += 1;
                        if head == frames.len() { break 'rounds; }
                        rest = frames[head].1 as u64;
                    }
                }
            }
            prop_assert_eq!(got, expected);
        }
    }
}
