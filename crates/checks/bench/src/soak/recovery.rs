//! Measures how long each application waits for its next bytes, from an event to the next one.

use std::time::{Duration, Instant};

use airlane_probe::Counts;
use serde::Serialize;

/// From the end of an event to the next bytes of each application, s; none if there were none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Recovered {
    /// How long the link was blocked, s.
    pub outage_s: f64,
    /// The file.
    pub file_s: Option<f64>,
    /// A complete page.
    pub page_s: Option<f64>,
    /// Voice from left to right.
    pub voice_down_s: Option<f64>,
    /// Voice from right to left.
    pub voice_up_s: Option<f64>,
}

/// Observes the applications after an event.
#[derive(Debug)]
pub struct RecoveryWatch {
    since: Instant,
    outage: Duration,
    /// Time to the first bytes after the event; here and below in the order of [`NAMES`].
    took: [Option<Duration>; 4],
    last: [u64; 4],
    moved: [Duration; 4],
    /// The longest time without any bytes.
    longest: [Duration; 4],
}

const NAMES: [&str; 4] = ["the file", "pages", "voice down", "voice up"];

/// Voice shows the link itself: 1 s and two round trips, and the handshake may be lost a few times.
const LINK: Duration = Duration::from_secs(5);
/// For the segments in flight, in addition to TCP's RTO, which an outage may have backed off to its own length.
const TCP: Duration = Duration::from_secs(10);

impl RecoveryWatch {
    /// After an event that ends now, and that blocked the link for `outage`.
    pub fn new(since: Instant, base: Counts, outage: Duration) -> Self {
        Self {
            since,
            outage,
            took: [None; 4],
            last: numbers(base),
            moved: [Duration::ZERO; 4],
            longest: [Duration::ZERO; 4],
        }
    }

    /// Records what has arrived by now.
    pub fn observe(&mut self, now: Instant, counts: Counts) {
        let watched = now.saturating_duration_since(self.since);
        for (i, count) in numbers(counts).into_iter().enumerate() {
            self.longest[i] = self.longest[i].max(watched - self.moved[i]);
            if count > self.last[i] {
                self.last[i] = count;
                self.moved[i] = watched;
                self.took[i].get_or_insert(watched);
            }
        }
    }

    fn bounds(&self) -> [Duration; 4] {
        let tcp = TCP + self.outage * 2;
        [tcp, tcp, LINK, LINK]
    }

    /// Applications that stalled for too long.
    pub fn problems(&self) -> impl Iterator<Item = String> {
        let all = NAMES.into_iter().zip(self.longest).zip(self.bounds());
        all.filter(|((_, longest), bound)| longest > bound)
            .map(|((name, longest), bound)| {
                format!("{name} stood still for {longest:.1?}, not {bound:.1?}")
            })
    }

    /// How long each waited.
    pub fn recovered(&self) -> Recovered {
        let [file_s, page_s, voice_down_s, voice_up_s] =
            self.took.map(|took| took.map(|took| took.as_secs_f64()));
        Recovered {
            outage_s: self.outage.as_secs_f64(),
            file_s,
            page_s,
            voice_down_s,
            voice_up_s,
        }
    }
}

const fn numbers(counts: Counts) -> [u64; 4] {
    [
        counts.file_bytes,
        counts.pages,
        counts.voice_down,
        counts.voice_up,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_and_missing_recoveries_are_named() {
        let start = Instant::now();
        let mut recovery = RecoveryWatch::new(start, Counts::default(), Duration::ZERO);
        let s = Duration::from_secs;
        let mut counts = Counts {
            voice_down: 1,
            file_bytes: 9,
            ..Counts::default()
        };
        recovery.observe(start + s(1), counts);
        assert_eq!(recovery.problems().count(), 0);
        counts.voice_up = 1;
        recovery.observe(start + s(6), counts);
        counts.voice_down += 1;
        recovery.observe(start + s(6), counts);
        // The file received data once, and then no more.
        for second in 7..=11 {
            counts.voice_down += 1;
            counts.voice_up += 1;
            recovery.observe(start + s(second), counts);
        }
        let problems = |recovery: &RecoveryWatch| recovery.problems().collect::<Vec<_>>();
        let names = ["pages stood", "voice up stood"];
        let found = problems(&recovery);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().zip(names).all(|(f, name)| f.starts_with(name)));
        recovery.observe(start + s(12), counts);
        assert_eq!(problems(&recovery).len(), 3);
        assert_eq!(recovery.recovered().voice_down_s, Some(1.0));
    }
}
