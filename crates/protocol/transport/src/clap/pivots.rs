//! The reports of CLAP-final (Gopal 2007, section 3.2.2.2). *Pivots* report each loss once, as soon as enough later
//! packets have been sent. From nine tenths of the file on (or from the point that the settings give), and when the
//! sender has fallen silent, *sweeps* report everything that is missing, an average round trip apart.
//!
//! Invariant: no two pivots report the same packet, so no packet is sent twice before the first sweep. A path that
//! reorders breaks this (CLAP-Z14), because a pivot reaches up to the newest packet.

use airlane_base::{Duration, Instant};

use super::config::{ClapConfig, GIVE_UP};
use super::packet::{NackKind, Stamp};
use super::progress::{Progress, Report};

#[derive(Clone, Debug)]
pub(super) struct Pivots {
    interval: Duration,
    threshold: u32,
    sweep_last: Option<u32>,
    milestone: u32,
    /// No report has covered this number or a higher one.
    next_unreported: u32,
    /// Once set, it stays set.
    sweeping: bool,
    last_sweep: Option<Instant>,
    /// Packets below this one have been reported complete.
    completed: u32,
    /// Sum and number of the round trips; the average is over all of them.
    round_trips: Duration,
    samples: u64,
    /// The newest echo that has been measured.
    last_echo: Option<Stamp>,
    /// When the last report was sent.
    last_report: Option<Instant>,
    /// When the first packet of the file came.
    begun: Option<Instant>,
}

impl Pivots {
    pub(super) fn new(config: &ClapConfig) -> Self {
        Self {
            interval: config.interval,
            threshold: config.nack_threshold(),
            sweep_last: config.sweep_last,
            milestone: config.milestone(),
            next_unreported: 0,
            sweeping: false,
            last_sweep: None,
            completed: 0,
            round_trips: Duration::ZERO,
            samples: 0,
            last_echo: None,
            last_report: None,
            begun: None,
        }
    }

    /// Only the first packet that carries a new echo is a sample: later ones echo the same report (CLAP-A16).
    pub(super) fn on_echo(&mut self, now: Instant, echo: Option<Stamp>) {
        let Some(echo) = echo else { return };
        let sent = self.last_report.map(Stamp::of);
        // An echo of a report that was never sent, or was sent long ago, gives no sample.
        let possible = sent.is_some_and(|sent| !echo.is_after(sent));
        if !possible || self.last_echo.is_some_and(|last| !echo.is_after(last)) {
            return;
        }
        self.last_echo = Some(echo);
        let sample = Stamp::of(now).since(echo);
        if sample <= GIVE_UP {
            self.round_trips = self.round_trips + sample;
            self.samples += 1;
        }
    }

    pub(super) fn on_report(&mut self, now: Instant) {
        self.last_report = Some(now);
    }

    fn round_trip(&self) -> Duration {
        match self.samples {
            0 => self.interval,
            n => self.round_trips / n,
        }
    }

    /// How long nothing arrives before the sender counts as silent (CLAP-P11).
    fn patience(&self) -> Duration {
        self.interval.max(self.round_trip()) * 2
    }

    fn next_sweep(&self) -> Option<Instant> {
        Some(self.last_sweep? + self.round_trip())
    }

    pub(super) fn poll(&mut self, now: Instant, progress: &Progress) -> Option<Report> {
        let beyond = progress.highest.map_or(0, |highest| highest + 1);
        if progress.highest.is_some() {
            self.begun.get_or_insert(now);
        }
        self.sweeping |= match self.sweep_last {
            None => u64::from(beyond) * 10 >= u64::from(progress.total) * 9,
            Some(last) => progress.total - beyond <= last,
        };
        let silent = now >= progress.silent_at(self.patience());
        let report = match self.sweeping || silent {
            true => self.sweep(now, progress, silent),
            false => self.pivot(progress, beyond),
        };
        report
            .or_else(|| self.milestone(progress))
            .or_else(|| self.sign_of_life(now, progress))
    }

    fn sweep(&mut self, now: Instant, progress: &Progress, silent: bool) -> Option<Report> {
        let end = progress.end(silent)?;
        let missing = progress.missing.first().is_some_and(|first| first <= end);
        if !missing || self.next_sweep().is_some_and(|next| now < next) {
            return None;
        }
        self.last_sweep = Some(now);
        self.next_unreported = progress.highest.map_or(0, |highest| highest + 1);
        Some(Report {
            kind: NackKind::Sweep,
            from: 0,
            to: end,
        })
    }

    /// `beyond` is one more than the highest number received.
    fn pivot(&mut self, progress: &Progress, beyond: u32) -> Option<Report> {
        let first = progress.missing.first_from(self.next_unreported);
        let Some(first) = first.filter(|first| *first < beyond) else {
            self.next_unreported = self.next_unreported.max(beyond);
            return None;
        };
        // Everything in between has arrived, so the next search need not start earlier.
        self.next_unreported = first;
        if beyond - first < self.threshold {
            return None;
        }
        self.next_unreported = beyond;
        Some(Report {
            kind: NackKind::Pivot,
            from: first,
            to: beyond - 1,
        })
    }

    fn milestone(&mut self, progress: &Progress) -> Option<Report> {
        let complete = progress.missing.first().unwrap_or(progress.total);
        if self.milestone == 0 || complete.saturating_sub(self.completed) < self.milestone {
            return None;
        }
        let from = std::mem::replace(&mut self.completed, complete);
        Some(Report {
            kind: NackKind::Milestone,
            from,
            to: complete - 1,
        })
    }

    /// Without losses there is nothing to report for the first nine tenths of the file, and a sender that hears
    /// nothing gives up. So the newest packet is confirmed in time.
    fn sign_of_life(&self, now: Instant, progress: &Progress) -> Option<Report> {
        let highest = progress.highest?;
        (now >= self.life_at()?).then_some(Report {
            kind: NackKind::Milestone,
            from: highest,
            to: highest,
        })
    }

    fn life_at(&self) -> Option<Instant> {
        Some(self.last_report.or(self.begun)? + GIVE_UP / 2)
    }

    pub(super) fn due(&self, progress: &Progress) -> Option<Instant> {
        let hole = match (progress.missing.first(), progress.highest) {
            (Some(first), Some(highest)) => self.sweeping && first <= highest,
            _ => false,
        };
        let silent = progress.silent_at(self.patience());
        let sweep = match (self.next_sweep(), hole) {
            (Some(next), true) => next,
            (Some(next), false) => next.max(silent),
            (None, _) => silent,
        };
        let life = self.life_at().filter(|_| progress.highest.is_some());
        life.into_iter().chain([sweep]).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(ms)
    }

    struct World {
        pivots: Pivots,
        progress: Progress,
        now: u64,
    }

    impl World {
        fn new(total: u32) -> Self {
            Self {
                pivots: Pivots::new(&ClapConfig::default()),
                progress: Progress::new(at(0), total),
                now: 0,
            }
        }

        /// A packet arrives, one millisecond after the last.
        fn data(&mut self, n: u32) -> Option<(NackKind, u32, u32)> {
            self.now += 1;
            self.progress.missing.remove(n);
            self.progress.highest = self.progress.highest.max(Some(n));
            self.progress.last_data = at(self.now);
            self.poll()
        }

        fn poll(&mut self) -> Option<(NackKind, u32, u32)> {
            let report = self.pivots.poll(at(self.now), &self.progress)?;
            self.pivots.on_report(at(self.now));
            Some((report.kind, report.from, report.to))
        }
    }

    #[test]
    fn a_loss_is_reported_once_after_enough_later_packets() {
        let mut world = World::new(1_000);
        let reports: Vec<_> = (0..200)
            .filter(|n| ![10, 12, 100].contains(n))
            .filter_map(|n| world.data(n))
            .collect();
        let pivot = NackKind::Pivot;
        assert_eq!(reports, [(pivot, 10, 41), (pivot, 100, 131)]);
    }

    #[test]
    fn sweeps_begin_at_nine_tenths_and_are_a_round_trip_apart() {
        let mut world = World::new(1_000);
        (0..899).filter(|n| *n != 5).for_each(|n| {
            world.data(n);
        });
        assert_eq!(world.data(899), Some((NackKind::Sweep, 0, 899)));
        assert_eq!(world.data(900), None);
        // It arrived at 899 ms, and no round trip is known: 100 ms.
        assert_eq!(world.pivots.due(&world.progress), Some(at(999)));
        world.now = 999;
        assert_eq!(world.poll(), Some((NackKind::Sweep, 0, 900)));
    }

    #[test]
    fn pivots_last_for_the_configured_time() {
        let mut world = World::new(1_000);
        world.pivots.sweep_last = Some(32);
        let mut said: Vec<_> = (0..967)
            .filter(|n| ![5, 900, 960].contains(n))
            .filter_map(|n| world.data(n))
            .collect();
        said.extend(world.data(967));
        let (pivot, sweep) = (NackKind::Pivot, NackKind::Sweep);
        assert_eq!(said, [(pivot, 5, 36), (pivot, 900, 931), (sweep, 0, 967)]);
    }

    #[test]
    fn a_silent_sender_is_told_of_the_whole_file() {
        let mut world = World::new(100);
        (0..50).for_each(|n| assert_eq!(world.data(n), None));
        assert_eq!(world.pivots.due(&world.progress), Some(at(250)));
        world.now = 250;
        assert_eq!(world.poll(), Some((NackKind::Sweep, 0, 99)));
        assert_eq!(world.pivots.due(&world.progress), Some(at(350)));
        // The sender is no longer silent: back to pivots.
        assert_eq!(world.data(50), None);
    }

    #[test]
    fn only_the_first_packet_with_a_new_echo_is_a_sample() {
        let mut world = World::new(100);
        world.pivots.on_report(at(10));
        let echo = Some(Stamp::of(at(10)));
        for ms in [40, 60, 90] {
            world.pivots.on_echo(at(ms), echo);
        }
        assert_eq!(world.pivots.round_trip(), Duration::from_millis(30));
        // No report was sent at this time.
        world.pivots.on_echo(at(95), Some(Stamp::of(at(50))));
        assert_eq!(world.pivots.samples, 1);
        world.pivots.on_report(at(100));
        world.pivots.on_echo(at(150), Some(Stamp::of(at(100))));
        assert_eq!(world.pivots.round_trip(), Duration::from_millis(40));
    }
}
