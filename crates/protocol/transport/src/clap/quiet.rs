//! The receiver's half of the carousel (Gopal 2007, section 3.1): it reports nothing. A sender that hears nothing gives
//! up, so the newest packet is confirmed in time.

use airlane_base::Instant;

use super::config::GIVE_UP;
use super::packet::NackKind;
use super::progress::{Progress, Report};

#[derive(Clone, Debug, Default)]
pub(super) struct Quiet {
    /// When the last sign of life was sent; the first packet of the file counts as one.
    said: Option<Instant>,
}

impl Quiet {
    pub(super) fn poll(&mut self, now: Instant, progress: &Progress) -> Option<Report> {
        let highest = progress.highest?;
        self.said.get_or_insert(now);
        if self.due().is_none_or(|due| now < due) {
            return None;
        }
        self.said = Some(now);
        Some(Report {
            kind: NackKind::Milestone,
            from: highest,
            to: highest,
        })
    }

    pub(super) fn due(&self) -> Option<Instant> {
        Some(self.said? + GIVE_UP / 2)
    }
}
