//! The figures of applications over a path, live or simulated, and the criteria for them.

use serde::Serialize;

use super::world::{Asked, PathWorld};
use crate::bench_live::ceiling::Ceiling;
use crate::bench_live::criteria::CriterionVerdict;
use crate::bench_live::never_worse::TOLERATED;

/// Bound on bytes sent over bytes delivered.
const MOST_SENT: f64 = 1.3;
/// Bound on the 95th percentile of the queueing delay in the path below, ms; or half a round trip if that is more.
const MOST_QUEUE_MS: f64 = 30.0;
/// On a radio, pages must take at most half as long with Airlane, and at most a third as much of a call be useless.
const OF_PAGES: f64 = 1.0 / 2.0;
const OF_CALLS: f64 = 1.0 / 3.0;

/// Packets of a call are useless after this delay.
pub(super) const LATE_MS: f64 = 300.0;
/// Resolution of the measurement: a timer tick, and a packet of a call.
const RESOLUTION_MS: f64 = 1.0;
const RESOLUTION: f64 = 0.001;

/// The figures of the applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct PathFigures {
    /// Bytes of frames sent down the path, over those delivered.
    pub(super) sent_of_carried: f64,
    /// Throughput of the file.
    pub(super) file_mbps: f64,
    /// Share of the path's capacity used by file, pages and call, headers included.
    pub(super) used: f64,
    /// Mean time of a page.
    pub(super) page_mean_ms: Option<f64>,
    /// 95th percentile of the delay over all packets sent in the call, in the worse direction.
    pub(super) call_p95_ms: Option<f64>,
    /// Share of the call's packets that were lost or took more than 300 ms; on a path with such a delay, that were
    /// lost.
    pub(super) call_useless: Option<f64>,
}

/// Packets of one direction of a call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallWay {
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) late: u64,
    /// Of the packets that arrived.
    pub(super) p95_ms: f64,
}

impl CallWay {
    /// A lost packet counts as infinitely late.
    fn p95_of_sent_ms(&self) -> f64 {
        match self.lost * 20 > self.sent {
            true => f64::INFINITY,
            false => self.p95_ms,
        }
    }
}

impl PathFigures {
    /// From the raw measurements: the file's rate, the mean page time in ms, and the call down and up.
    pub(super) fn of(
        world: &PathWorld,
        sent_of_carried: f64,
        file_mbps: f64,
        page_mean_ms: Option<f64>,
        call: Option<[CallWay; 2]>,
        ceiling: &Ceiling,
    ) -> Self {
        let both = |count: fn(&CallWay) -> u64| {
            let ways = call.as_ref();
            ways.map(|ways| ways.iter().map(count).sum::<u64>() as f64)
        };
        // On a path with such a delay, all packets would be late.
        let useless = match world.delay_ms() < LATE_MS {
            true => both(|way| way.lost + way.late),
            false => both(|way| way.lost),
        };
        let p95 = call.map(|ways| ways.map(|way| way.p95_of_sent_ms()));
        let arrived = |way: &CallWay| 1.0 - way.lost as f64 / way.sent.max(1) as f64;
        let ceiling = Ceiling {
            voice: call.as_ref().map_or(0.0, |[down, _]| arrived(down)),
            ..*ceiling
        };
        Self {
            sent_of_carried,
            file_mbps,
            used: ceiling.used(file_mbps * 1e6),
            page_mean_ms,
            call_p95_ms: p95.map(|[down, up]| down.max(up)),
            call_useless: useless
                .zip(both(|way| way.sent))
                .map(|(useless, sent)| useless / sent.max(1.0)),
        }
    }
}

/// The verdict on each figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathVerdicts {
    pub(super) sent: CriterionVerdict,
    pub(super) used: CriterionVerdict,
    pub(super) page: CriterionVerdict,
    pub(super) call: CriterionVerdict,
}

impl PathVerdicts {
    /// `part`: the share of the path that must be used.
    pub(super) fn of(
        world: &PathWorld,
        part: f64,
        without: &PathFigures,
        airlane: &PathFigures,
    ) -> Self {
        let radio = world.asked == Asked::OfWithout;
        let least = match world.asked {
            Asked::OfPath => part.max(without.used * (1.0 - TOLERATED)),
            Asked::OfWithout => 0.85 * without.used,
        };
        let most = |without: f64, of_radio: f64| match radio {
            true => of_radio * without,
            false => without * (1.0 + TOLERATED),
        };
        let page = match (without.page_mean_ms, airlane.page_mean_ms) {
            (Some(without), Some(airlane)) => {
                CriterionVerdict::of(airlane <= most(without, OF_PAGES))
            }
            // No page was completed with Airlane, without it, or with either.
            (Some(_), None) => CriterionVerdict::Missed,
            (None, Some(_)) => CriterionVerdict::Holds,
            (None, None) => CriterionVerdict::Open,
        };
        let call = match (
            without.call_p95_ms.zip(without.call_useless),
            airlane.call_p95_ms.zip(airlane.call_useless),
        ) {
            (Some((_, without)), Some((_, airlane))) if radio => {
                CriterionVerdict::of(airlane <= most(without, OF_CALLS))
            }
            (Some((without, useless)), Some((p95, airlane_useless))) => {
                let delay = world.delay_ms();
                let queued = delay + delay.max(MOST_QUEUE_MS);
                let no_later = p95 <= most(without, OF_CALLS) + RESOLUTION_MS;
                let no_fewer = airlane_useless <= most(useless, OF_CALLS) + RESOLUTION;
                CriterionVerdict::of(p95 <= queued && no_later && no_fewer)
            }
            _ => CriterionVerdict::Open,
        };
        Self {
            sent: CriterionVerdict::of(airlane.sent_of_carried <= MOST_SENT),
            used: CriterionVerdict::of(airlane.used >= least),
            page,
            call,
        }
    }

    pub(super) const fn all(self) -> [(&'static str, CriterionVerdict); 4] {
        let Self {
            sent,
            used,
            page,
            call,
        } = self;
        [
            ("sent", sent),
            ("used", used),
            ("page", page),
            ("call", call),
        ]
    }
}

#[cfg(test)]
mod tests {
    use CriterionVerdict::{Holds, Missed, Open};

    use super::*;

    const WITHOUT: PathFigures = PathFigures {
        sent_of_carried: 2.0,
        file_mbps: 10.0,
        used: 0.95,
        page_mean_ms: Some(200.0),
        call_p95_ms: Some(100.0),
        call_useless: Some(0.3),
    };

    fn world(name: &str) -> PathWorld {
        let mut all = PathWorld::all().into_iter();
        all.find(|world| world.name == name).unwrap()
    }

    /// The verdicts on a path of this name: sent, used, page, call.
    fn judged(name: &str, without: PathFigures, airlane: PathFigures) -> [CriterionVerdict; 4] {
        let world = world(name);
        let part = world.asked_part(&world.times(None));
        PathVerdicts::of(&world, part, &without, &airlane)
            .all()
            .map(|(_, verdict)| verdict)
    }

    #[test]
    fn a_path_is_used_as_well_as_without_airlane_and_without_a_queue() {
        let good = PathFigures {
            sent_of_carried: 1.3,
            used: 0.93,
            page_mean_ms: Some(205.0),
            call_p95_ms: Some(55.0),
            call_useless: Some(0.3),
            ..WITHOUT
        };
        let of = |airlane| judged("police-30-50", WITHOUT, airlane);
        assert_eq!(of(good), [Holds; 4]);
        let bad = PathFigures {
            sent_of_carried: 1.31,
            used: 0.92,
            page_mean_ms: None,
            call_p95_ms: Some(55.1),
            ..good
        };
        assert_eq!(of(bad), [Missed; 4]);
        // Nine tenths of the path suffice, even if plain TCP uses less.
        let little = PathFigures {
            used: 0.5,
            call_p95_ms: Some(25.0),
            page_mean_ms: None,
            ..WITHOUT
        };
        let less = PathFigures { used: 0.89, ..good };
        // A queue of 30 ms is allowed, but not if plain traffic had none.
        let judged = judged("police-30-50", little, less);
        assert_eq!(judged, [Holds, Missed, Holds, Missed]);
    }

    #[test]
    fn a_radio_is_judged_by_its_gain() {
        let of = |airlane| judged("verizon-lte", WITHOUT, airlane);
        let good = PathFigures {
            sent_of_carried: 1.0,
            used: 0.82,
            page_mean_ms: Some(100.0),
            call_p95_ms: Some(f64::INFINITY),
            call_useless: Some(0.099),
            ..WITHOUT
        };
        assert_eq!(of(good), [Holds; 4]);
        let bad = PathFigures {
            used: 0.8,
            page_mean_ms: Some(101.0),
            call_useless: Some(0.11),
            ..good
        };
        assert_eq!(of(bad), [Holds, Missed, Missed, Missed]);
    }

    #[test]
    fn a_lost_call_packet_counts_as_later_than_any_delivered() {
        let way = CallWay {
            sent: 100,
            lost: 5,
            late: 10,
            p95_ms: 80.0,
        };
        let of_path = |name: &str, lost| {
            let ceiling = Ceiling {
                rate_bps: 1e6,
                survival: 1.0,
                mtu: 1500,
                overhead: 14,
                compact_headers: false,
                pages_per_s: 0.0,
                voice: 0.0,
            };
            let call = [way, CallWay { lost, ..way }];
            PathFigures::of(&world(name), 1.0, 0.5, None, Some(call), &ceiling)
        };
        let of = |lost| of_path("steps-2", lost);
        assert_eq!(of_path("geo", 5).call_useless, Some(0.05));
        assert_eq!(of(5).call_p95_ms, Some(80.0));
        assert_eq!(of(6).call_p95_ms, Some(f64::INFINITY));
        assert_eq!(of(5).call_useless, Some(0.15));
        // 0.5 Mbit/s of a file with headers, and 95 % of a call down.
        assert!((of(5).used - (0.5 * 1514.0 / 1448.0 + 0.95 * 0.0808)).abs() < 1e-9);
        let alone = judged(
            "64k",
            PathFigures {
                page_mean_ms: None,
                call_p95_ms: None,
                call_useless: None,
                ..WITHOUT
            },
            PathFigures {
                page_mean_ms: None,
                call_p95_ms: None,
                call_useless: None,
                ..WITHOUT
            },
        );
        assert_eq!(alone, [Missed, Holds, Open, Open]);
    }
}
