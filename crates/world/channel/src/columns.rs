//! Tables from other programs as traces: a rate over time becomes [`Opportunities`], sequence numbers become [`Blocks`].
//!
//! A table has columns of numbers, separated by white space, a comma or a semicolon. A first line of words and lines
//! that begin with `#` are ignored.
//!
//! - *Rates*: seconds and Mbit/s. A rate holds until the next line, the last one as long as the one before it. Capacity
//!   becomes whole packets: an opportunity occurs whenever another packet fits, rounded up to whole milliseconds. The
//!   trace is as long as the table, so the last opportunity is at its end.
//! - *Sequence numbers*: those received, in the last column, in any order and with duplicates; a number missing between
//!   the lowest and the highest is lost. 16-bit numbers may wrap.

use airlane_base::Size;

use crate::blocks::{Blocks, BlocksHeader, MOST_BLOCKS};
use crate::opportunities::Opportunities;

/// More opportunities than any realistic trace has.
const MOST_OPPORTUNITIES: f64 = 20e6;
/// RTP sequence numbers wrap after this many.
const WRAPS: u64 = 1 << 16;

/// Why a text is not such a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnsError {
    /// A line has other columns than expected.
    #[error("line {line}: \"{text}\" is not {expected}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// The beginning of the line.
        text: String,
        /// The columns expected.
        expected: &'static str,
    },
    /// Times do not increase.
    #[error("line {line}: its time is not later than that above it; times go on")]
    Back {
        /// The line, from 1.
        line: usize,
    },
    /// The lines are readable but do not make a trace.
    #[error("{0}")]
    Whole(&'static str),
}

/// The line number and the numbers of each line.
fn rows(text: &str, expected: &'static str) -> Result<Vec<(usize, Vec<f64>)>, ColumnsError> {
    let mut rows = vec![];
    let mut first = true;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let cells = line.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        let cells = cells.filter(|cell| !cell.is_empty());
        let numbers: Option<Vec<f64>> = cells
            .map(|cell| {
                cell.parse()
                    .ok()
                    .filter(|n: &f64| n.is_finite() && *n >= 0.0)
            })
            .collect();
        match numbers {
            Some(numbers) => rows.push((at + 1, numbers)),
            None if first && line.starts_with(|c: char| c.is_alphabetic() || c == '"') => {}
            None => {
                let text = line.chars().take(40).collect();
                let line = at + 1;
                return Err(ColumnsError::Line {
                    line,
                    text,
                    expected,
                });
            }
        }
        first = false;
    }
    Ok(rows)
}

impl Opportunities {
    /// The opportunities of a rate over time, `size` bytes each.
    ///
    /// # Errors
    /// Names the wrong line, or what a trace needs.
    pub fn of_rates(text: &str, size: Size) -> Result<Self, ColumnsError> {
        const EXPECTED: &str = "a time in seconds and a rate in Mbit/s";
        let rows = rows(text, EXPECTED)?;
        let mut steps: Vec<[f64; 2]> = vec![];
        for (line, numbers) in rows {
            let [at, rate] = numbers[..] else {
                let text = format!("{} columns", numbers.len());
                return Err(ColumnsError::Line {
                    line,
                    text,
                    expected: EXPECTED,
                });
            };
            if steps.last().is_some_and(|[before, _]| *before >= at) {
                return Err(ColumnsError::Back { line });
            }
            steps.push([at, rate]);
        }
        let [.., before, last] = steps[..] else {
            return Err(ColumnsError::Whole(
                "a rate over time has two lines at least",
            ));
        };
        steps.push([2.0 * last[0] - before[0], 0.0]);
        Self::of_steps(&steps, size)
    }

    /// The opportunities of a rate that changes at given times, `size` bytes each: seconds in increasing order and
    /// Mbit/s; the last row gives the end.
    ///
    /// # Errors
    /// States what a trace needs.
    pub fn of_steps(steps: &[[f64; 2]], size: Size) -> Result<Self, ColumnsError> {
        let [[start, _], .., [last, _]] = *steps else {
            return Err(ColumnsError::Whole("a rate over time has an end"));
        };
        let size_bits = size.as_bytes().max(1) as f64 * 8.0;
        let bits: f64 = steps
            .windows(2)
            .map(|s| s[0][1] * 1e6 * (s[1][0] - s[0][0]))
            .sum();
        if bits / size_bits > MOST_OPPORTUNITIES {
            return Err(ColumnsError::Whole(
                "this is more than 20 million packets; give a shorter part of it",
            ));
        }
        let mut times_ms = vec![];
        // Bits available so far for the next opportunity.
        let mut ready = 0.0;
        for step in steps.windows(2) {
            let [[from, rate], [to, _]] = [step[0], step[1]];
            let bps = rate * 1e6;
            let mut at = from;
            while bps > 0.0 && ready + bps * (to - at) >= size_bits {
                at += (size_bits - ready) / bps;
                ready = 0.0;
                times_ms.push(libm::ceil((at - start) * 1e3 - 1e-6) as u64);
            }
            ready += bps * (to - at).max(0.0);
        }
        let end = libm::round((last - start) * 1e3) as u64;
        times_ms.iter_mut().for_each(|ms| *ms = (*ms).min(end));
        if times_ms.last() != Some(&end) {
            times_ms.push(end);
        }
        let text: String = times_ms.iter().map(|ms| format!("{ms}\n")).collect();
        Self::parse(text.as_bytes(), size).map_err(|_| {
            ColumnsError::Whole("the table lasts for less than a millisecond, or for too long")
        })
    }

    /// The trace as a file that Mahimahi reads.
    pub fn to_text(&self) -> String {
        self.times()
            .map(|at| format!("{}\n", at.as_nanos() / 1_000_000))
            .collect()
    }
}

impl Blocks {
    /// One block per packet, erased if its number was not received.
    ///
    /// # Errors
    /// Names the wrong line, or what a trace needs.
    pub fn of_sequence(text: &str, header: BlocksHeader) -> Result<Self, ColumnsError> {
        const EXPECTED: &str = "a sequence number, a whole one, in the last column";
        let mut numbers: Vec<u64> = vec![];
        for (line, row) in rows(text, EXPECTED)? {
            match row.last() {
                Some(number) if *number < 9e15 && libm::floor(*number) == *number => {
                    numbers.push(*number as u64);
                }
                _ => {
                    let text = row.last().map_or_else(String::new, f64::to_string);
                    return Err(ColumnsError::Line {
                        line,
                        text,
                        expected: EXPECTED,
                    });
                }
            }
        }
        if numbers.iter().all(|number| *number < WRAPS) {
            unwrap(&mut numbers);
        }
        let (Some(first), Some(last)) =
            (numbers.iter().min().copied(), numbers.iter().max().copied())
        else {
            return Err(ColumnsError::Whole("there is no sequence number in it"));
        };
        let len = last - first + 1;
        if len > u64::from(MOST_BLOCKS) {
            return Err(ColumnsError::Whole(
                "the lowest and the highest number are too far from each other: a trace has at most 100 million blocks",
            ));
        }
        let mut erased = vec![true; len as usize];
        for number in numbers {
            erased[(number - first) as usize] = false;
        }
        Ok(Self::from_blocks(header, erased))
    }
}

/// Unwraps 16-bit sequence numbers.
fn unwrap(numbers: &mut [u64]) {
    // Starts one cycle above zero, so that a packet late from before the first one still has a number.
    let mut last = None;
    for number in numbers {
        let next = match last {
            None => *number + WRAPS,
            Some(last) => {
                let ahead = (*number + WRAPS - last % WRAPS) % WRAPS;
                if ahead < WRAPS / 2 {
                    last + ahead
                } else {
                    last + ahead - WRAPS
                }
            }
        };
        *number = next;
        last = Some(next.max(last.unwrap_or(0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlane_base::Duration;
    use proptest::prelude::*;

    const FULL: Size = Size::from_bytes(1_500);

    #[test]
    fn a_recorded_rate_becomes_packet_opportunities() {
        // 12 Mbit/s make one packet per millisecond, 6 Mbit/s half of that; then nothing; then 12 again.
        let text = "seconds,Mbit/s\n10.0, 12\n10.003, 6\n# a gap\n10.007; 0\n10.010 12\n";
        let found = Opportunities::of_rates(text, FULL).unwrap();
        assert_eq!(found.to_text(), "1\n2\n3\n5\n7\n11\n12\n13\n");
        for (text, part) in [
            ("0 5\n0 6\n", "line 2: its time"),
            ("0 5\n1 x\n", "line 2: \"1 x\" is not a time"),
            ("0 5 6\n1 2 3\n", "3 columns"),
            ("0 5\n", "two lines"),
            ("0 1000000\n1000000 1\n", "20 million"),
            ("0 -5\n1 2\n", "line 1"),
        ] {
            let said = Opportunities::of_rates(text, FULL).unwrap_err().to_string();
            assert!(said.contains(part), "{text}: {said}");
        }
    }

    #[test]
    fn missing_numbers_are_lost() {
        let header = BlocksHeader {
            block: Duration::from_millis(20),
            ..BlocksHeader::default()
        };
        let of = |text: &str| Blocks::of_sequence(text, header.clone());
        let rows = |text: &str| {
            of(text)
                .unwrap()
                .to_text()
                .lines()
                .last()
                .unwrap()
                .to_owned()
        };
        assert_eq!(
            rows("time,seq\n0.1,7\n0.2,8\n0.3,11\n0.35,10\n0.4,11\n"),
            "00100"
        );
        assert_eq!(rows("65534\n65535\n1\n2\n"), "00100");
        for (text, part) in [
            ("", "no sequence number"),
            ("1.5\n", "line 1"),
            ("1\nx\n", "line 2"),
            ("0\n999999999\n", "too far"),
        ] {
            let said = of(text).unwrap_err().to_string();
            assert!(said.contains(part), "{text}: {said}");
        }
    }

    proptest! {
        /// However the rate changes, the opportunities carry as many bits as it does, to within one packet.
        #[test]
        fn opportunities_carry_what_rates_do(
            steps in prop::collection::vec((1_u32..5_000, 0.0_f64..50.0), 2..12),
        ) {
            let (mut text, mut at) = (String::new(), 0_u32);
            let (mut bits, mut last) = (0.0, 0_u32);
            for (i, (ms, rate)) in steps.iter().enumerate() {
                text.push_str(&format!("{} {rate}\n", f64::from(at) / 1e3));
                let lasts = if i + 1 == steps.len() { last } else { *ms };
                bits += rate * f64::from(lasts) * 1e3;
                at += lasts;
                last = lasts;
            }
            let found = Opportunities::of_rates(&text, FULL).unwrap();
            prop_assert_eq!(found.length(), Duration::from_millis(u64::from(at)));
            let room = found.times().count() as f64 * 12_000.0;
            prop_assert!((room - bits).abs() <= 12_001.0, "{} {}", room, bits);
        }
    }
}
