//! The receiver's half of CLAP's sender-driven reports (Gopal 2007, section 7.6): it reports what is missing when the
//! sender asks, and at no other time.

use super::config::ClapConfig;
use super::packet::NackKind;
use super::progress::{Progress, Report};

#[derive(Clone, Debug)]
pub(super) struct Solicited {
    span: u32,
    /// The sender has asked.
    due: bool,
}

impl Solicited {
    pub(super) fn new(config: &ClapConfig) -> Self {
        Self {
            span: config.report_span(),
            due: false,
        }
    }

    pub(super) fn on_data(&mut self, solicits: bool) {
        self.due |= solicits;
    }

    /// From the first packet that is missing to the newest, as far as the bitmap reaches. Where none is missing before
    /// the newest, that one is confirmed, and with it all before it.
    pub(super) fn poll(&mut self, progress: &Progress) -> Option<Report> {
        let highest = progress.highest.filter(|_| std::mem::take(&mut self.due))?;
        let missing = progress.missing.first();
        let from = missing.map_or(highest, |first| first.min(highest));
        Some(Report {
            kind: NackKind::Periodic,
            from,
            to: highest.min(from.saturating_add(self.span - 1)),
        })
    }
}

#[cfg(test)]
mod tests {
    use airlane_base::Instant;

    use super::*;

    #[test]
    fn a_report_is_sent_when_it_is_asked_for() {
        let mut solicited = Solicited::new(&ClapConfig::default());
        let mut progress = Progress::new(Instant::ORIGIN, 10);
        let mut said = vec![];
        for (n, solicits) in [(0, false), (1, true), (3, false), (4, true), (2, true)] {
            progress.missing.remove(n);
            progress.highest = progress.highest.max(Some(n));
            solicited.on_data(solicits);
            let report = solicited.poll(&progress);
            assert_eq!(solicited.poll(&progress), None, "said once");
            said.extend(report.map(|report| (n, report.from, report.to)));
        }
        assert_eq!(said, [(1, 1, 1), (4, 2, 4), (2, 4, 4)]);
    }
}
