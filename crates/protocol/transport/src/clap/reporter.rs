//! When a receiver reports what is missing, by the version of the protocol.

use airlane_base::Instant;

use super::config::{ClapConfig, ClapVersion};
use super::packet::Data;
use super::periodic::Periodic;
use super::pivots::Pivots;
use super::progress::{Progress, Report};
use super::quiet::Quiet;
use super::solicited::Solicited;
use super::spontaneous::Spontaneous;

/// When to report what is missing.
#[derive(Clone, Debug)]
pub(super) enum Reporter {
    Quiet(Quiet),
    Solicited(Solicited),
    Spontaneous(Spontaneous),
    Periodic(Periodic),
    Pivots(Pivots),
}

impl Reporter {
    pub(super) fn new(config: &ClapConfig) -> Self {
        match config.version {
            ClapVersion::Carousel => Self::Quiet(Quiet::default()),
            ClapVersion::SenderDriven => Self::Solicited(Solicited::new(config)),
            ClapVersion::Spontaneous => Self::Spontaneous(Spontaneous::new(config)),
            ClapVersion::Beta => Self::Periodic(Periodic::new(config)),
            ClapVersion::Final => Self::Pivots(Pivots::new(config)),
        }
    }

    /// Packet `n` of the file has arrived; it may echo a report, or ask for one.
    pub(super) fn on_data(&mut self, now: Instant, n: u32, data: &Data) {
        match self {
            Self::Solicited(solicited) => solicited.on_data(data.solicits),
            Self::Spontaneous(spontaneous) => spontaneous.on_data(n),
            Self::Quiet(_) | Self::Periodic(_) => {}
            Self::Pivots(pivots) => pivots.on_echo(now, data.echo),
        }
    }

    /// A report was sent.
    pub(super) fn on_report(&mut self, now: Instant) {
        if let Self::Pivots(pivots) = self {
            pivots.on_report(now);
        }
    }

    /// The report to send now; asked after every input.
    pub(super) fn poll(&mut self, now: Instant, progress: &Progress) -> Option<Report> {
        match self {
            Self::Quiet(quiet) => quiet.poll(now, progress),
            Self::Solicited(solicited) => solicited.poll(progress),
            Self::Spontaneous(spontaneous) => spontaneous.poll(now, progress),
            Self::Periodic(periodic) => periodic.poll(now, progress),
            Self::Pivots(pivots) => pivots.poll(now, progress),
        }
    }

    /// When a report may become due although nothing arrives.
    pub(super) fn due(&self, progress: &Progress) -> Option<Instant> {
        match self {
            Self::Quiet(quiet) => quiet.due(),
            Self::Solicited(_) => None,
            Self::Spontaneous(spontaneous) => Some(spontaneous.due(progress)),
            Self::Periodic(periodic) => Some(periodic.due(progress)),
            Self::Pivots(pivots) => pivots.due(progress),
        }
    }
}
