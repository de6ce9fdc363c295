//! BIC (Xu, Harfoush and Rhee, INFOCOM 2004) with the numbers of Linux 2.6, whose default it was: after a loss the window
//! searches for the largest one that loses nothing.
//!
//! Below the window of the last loss it grows by a quarter of the distance in each round trip, from [`LEAST`] to
//! [`MOST`] segments; above that window it probes as slowly at first, and faster the farther it gets. A loss takes an
//! eighth away. Up to [`LOW_WINDOW`] segments it is Reno. Each acknowledgment counts once, however much it covers, and
//! only those of a fully used window open it.
//!
//! Left out: the fault of Linux before 2.6.11, by which a loss at a smaller window than before set the window to search
//! for to 15/4 of it, where the paper has 15/16.

use super::acked::{Acked, InUse};
use super::cwnd::Cwnd;
use super::reno;

/// Up to this many segments Reno decides.
const LOW_WINDOW: f64 = 14.0;
/// The share of the window that a loss takes away.
const BETA: f64 = 0.125;
/// In a round trip the window grows by the distance to that of the last loss, divided by this.
const PARTS: f64 = 4.0;
/// The most and the least segments by which it grows in a round trip.
const MOST: f64 = 32.0;
const LEAST: f64 = PARTS / 11.0;

/// BIC's state besides the window.
#[derive(Clone, Debug, Default)]
pub(super) struct Bic {
    /// The window of the last loss, segments; 0 before the first.
    last: f64,
    in_use: InUse,
}

impl Bic {
    /// New data was acknowledged outside of recovery.
    pub(super) fn on_ack(&mut self, cwnd: &mut Cwnd, acked: &Acked) {
        let used = self.in_use.note(acked) as f64;
        if used + 1.0 <= cwnd.segments {
            return;
        }
        if cwnd.in_slow_start() {
            cwnd.segments += 1.0;
        } else {
            cwnd.segments += self.growth(cwnd.segments) / cwnd.segments;
        }
    }

    /// By how many segments the window grows in a round trip.
    fn growth(&self, window: f64) -> f64 {
        if window <= LOW_WINDOW {
            return 1.0;
        }
        let (below, above) = (self.last - window, window - self.last);
        let step = match below > 0.0 {
            true => below / PARTS,
            false if above < PARTS => LEAST,
            false => above / (PARTS - 1.0),
        };
        if step <= 1.0 { LEAST } else { step.min(MOST) }
    }

    /// Duplicate acknowledgments indicate a loss while `in_use` segments of the window were used.
    pub(super) fn on_loss(&mut self, cwnd: &mut Cwnd, in_use: u64) {
        self.cut(cwnd, in_use);
        cwnd.resume();
    }

    /// The loss was so heavy that the capacity of the path is unknown: slow start.
    pub(super) fn on_collapse(&mut self, cwnd: &mut Cwnd, in_use: u64) {
        self.cut(cwnd, in_use);
        cwnd.segments = 1.0;
    }

    fn cut(&mut self, cwnd: &mut Cwnd, in_use: u64) {
        let used = in_use as f64;
        // Fast convergence: a flow that loses at a smaller window than before leaves capacity to others.
        self.last = match used < self.last {
            true => used * (1.0 - BETA / 2.0),
            false => used,
        };
        if used <= LOW_WINDOW {
            reno::cut(cwnd, in_use);
        } else {
            cwnd.ssthresh = (used * (1.0 - BETA)) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use airlane_base::{Duration, Instant};

    use super::*;
    use crate::tcp::{Profile, TcpConfig};

    fn lost_at(window: u64) -> (Bic, Cwnd) {
        let config = TcpConfig {
            window: 10_000,
            ..TcpConfig::profile(Profile::Ns2In1999)
        };
        let (mut bic, mut cwnd) = (Bic::default(), Cwnd::new(&config, 1000));
        bic.on_loss(&mut cwnd, window);
        (bic, cwnd)
    }

    /// A round trip in which the window is always in use.
    fn round((bic, cwnd): &mut (Bic, Cwnd), una: &mut u64) {
        for _ in 0..cwnd.segments as u64 {
            let flight = cwnd.segments as u64;
            *una += 1;
            bic.on_ack(
                cwnd,
                &Acked {
                    now: Instant::ORIGIN,
                    segments: 1,
                    flight,
                    una: *una,
                    nxt: *una + flight,
                    max: *una + flight,
                    srtt: Duration::from_millis(100),
                    rtt: None,
                },
            );
        }
    }

    #[test]
    fn a_loss_takes_an_eighth_and_the_search_returns_to_where_it_was() {
        let mut tcp = lost_at(400);
        assert!((tcp.1.segments - 350.0).abs() < 1e-9);
        let (mut una, mut before) = (0, tcp.1.segments);
        let mut steps = vec![];
        while tcp.1.segments < 399.0 {
            round(&mut tcp, &mut una);
            steps.push(tcp.1.segments - before);
            before = tcp.1.segments;
        }
        // A quarter of 50 first, and ever smaller steps near the old window.
        assert!((10.0..12.5).contains(&steps[0]), "{steps:?}");
        assert!(
            steps.windows(2).all(|pair| pair[1] < pair[0] + 0.2),
            "{steps:?}"
        );
        assert!(*steps.last().unwrap() < 1.0, "{steps:?}");
    }

    #[test]
    fn far_windows_are_approached_and_left_by_the_most() {
        let mut tcp = lost_at(4_000);
        let (mut una, begin) = (0, tcp.1.segments);
        round(&mut tcp, &mut una);
        assert!((31.0..=32.0).contains(&(tcp.1.segments - begin)));
        tcp.1.segments = 4_200.0;
        tcp.1.ssthresh = 3_500;
        round(&mut tcp, &mut una);
        assert!((31.0..=32.0).contains(&(tcp.1.segments - 4_200.0)));
    }

    #[test]
    fn small_windows_are_renos() {
        let mut tcp = lost_at(10);
        assert!((tcp.1.segments - 5.0).abs() < 1e-9);
        let mut una = 0;
        round(&mut tcp, &mut una);
        assert!((0.8..=1.0).contains(&(tcp.1.segments - 5.0)), "{:?}", tcp.1);
    }

    #[test]
    fn a_lower_loss_leaves_capacity_to_others() {
        let (mut bic, mut cwnd) = lost_at(400);
        bic.on_loss(&mut cwnd, 320);
        assert!((bic.last - 300.0).abs() < 1e-9, "{bic:?}");
        assert_eq!(cwnd.ssthresh, 280);
    }
}
