//! The reports of CLAP-beta (Gopal 2007, section 3.2.2.1): one per period, from the first missing packet on, as far
//! as the bitmap reaches.
//!
//! Every report is forced, because the longest time without one is the period itself (CLAP-P6). When nothing is
//! missing, a report confirms the newest packets, so that the sender hears something. A period starts with the
//! previous report.

use airlane_base::{Duration, Instant};

use super::config::ClapConfig;
use super::packet::NackKind;
use super::progress::{Progress, Report};

#[derive(Clone, Debug)]
pub(super) struct Periodic {
    period: Duration,
    span: u32,
    /// When the last report was sent; the first packet of the file counts as one.
    last: Option<Instant>,
}

impl Periodic {
    pub(super) fn new(config: &ClapConfig) -> Self {
        Self {
            period: config.nack_period(),
            span: config.report_span(),
            last: None,
        }
    }

    pub(super) fn poll(&mut self, now: Instant, progress: &Progress) -> Option<Report> {
        if progress.highest.is_some() && self.last.is_none() {
            self.last = Some(now);
        }
        if now < self.due(progress) {
            return None;
        }
        self.last = Some(now);
        let silent = now >= progress.silent_at(self.period);
        let end = progress.end(silent)?;
        let most = self.span - 1;
        let (from, to) = match progress.missing.first().filter(|first| *first <= end) {
            Some(first) => (first, end.min(first.saturating_add(most))),
            None => (end.saturating_sub(most), end),
        };
        Some(Report {
            kind: NackKind::Periodic,
            from,
            to,
        })
    }

    pub(super) fn due(&self, progress: &Progress) -> Instant {
        match self.last {
            Some(last) => last + self.period,
            None => progress.silent_at(self.period),
        }
    }
}
