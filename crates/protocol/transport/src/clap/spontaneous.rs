//! The reports of CLAP-beta's forerunner (Gopal 2007, section 7.6): each packet that arrives while an earlier one is
//! missing causes a report of everything missing from there to the newest packet, as far as the bitmap reaches.
//!
//! A reported packet is already on its way when the next packet arrives, so most packets are requested many times.

use airlane_base::{Duration, Instant};

use super::config::{ClapConfig, GIVE_UP};
use super::packet::NackKind;
use super::progress::{Progress, Report};

#[derive(Clone, Debug)]
pub(super) struct Spontaneous {
    patience: Duration,
    span: u32,
    /// A packet that has arrived and has not been considered for a report yet.
    came: Option<u32>,
    /// When the last report was sent; the first packet of the file counts as one.
    said: Option<Instant>,
}

impl Spontaneous {
    pub(super) fn new(config: &ClapConfig) -> Self {
        Self {
            patience: config.nack_period(),
            span: config.report_span(),
            came: None,
            said: None,
        }
    }

    pub(super) fn on_data(&mut self, n: u32) {
        self.came = Some(n);
    }

    pub(super) fn poll(&mut self, now: Instant, progress: &Progress) -> Option<Report> {
        if progress.highest.is_some() {
            self.said.get_or_insert(now);
        }
        let first = progress.missing.first()?;
        let passed = self.came.take().is_some_and(|n| n > first);
        let silent = now >= self.silent_at(progress);
        let (from, end) = match progress.highest {
            _ if silent || passed => (first, progress.end(silent)?),
            // A sender that hears nothing gives up, so the newest packet is confirmed in time.
            Some(highest) if self.life_at().is_some_and(|at| now >= at) => (highest, highest),
            _ => return None,
        };
        self.said = Some(now);
        Some(Report {
            kind: NackKind::Periodic,
            from,
            to: end.min(from.saturating_add(self.span - 1)),
        })
    }

    fn silent_at(&self, progress: &Progress) -> Instant {
        let silent = progress.silent_at(self.patience);
        self.said
            .map_or(silent, |said| silent.max(said + self.patience))
    }

    fn life_at(&self) -> Option<Instant> {
        Some(self.said? + GIVE_UP / 2)
    }

    pub(super) fn due(&self, progress: &Progress) -> Instant {
        let silent = self.silent_at(progress);
        self.life_at().map_or(silent, |life| life.min(silent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clap::ClapVersion;

    #[test]
    fn every_packet_after_a_hole_and_silence_report_it() {
        let at = |ms| Instant::ORIGIN + Duration::from_millis(ms);
        let mut spontaneous = Spontaneous::new(&ClapConfig {
            version: ClapVersion::Spontaneous,
            ..ClapConfig::default()
        });
        let mut progress = Progress::new(at(0), 1_000);
        let mut said = vec![];
        for (ms, n) in (1..).zip([0, 1, 3, 4, 2, 5]) {
            progress.missing.remove(n);
            progress.highest = progress.highest.max(Some(n));
            progress.last_data = at(ms);
            spontaneous.on_data(n);
            let report = spontaneous.poll(at(ms), &progress);
            assert_eq!(spontaneous.poll(at(ms), &progress), None, "said once");
            said.extend(report.map(|report| (n, report.from, report.to)));
        }
        assert_eq!(said, [(3, 2, 3), (4, 2, 4)]);
        // Nothing more arrives: the report covers what 32 bytes of bitmap reach, and is repeated after a while.
        for ms in [106, 206] {
            assert_eq!(spontaneous.due(&progress), at(ms));
            let report = spontaneous.poll(at(ms), &progress).unwrap();
            assert_eq!((report.from, report.to), (6, 261));
        }
    }
}
