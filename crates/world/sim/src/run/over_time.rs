//! The throughput of flows in each interval of a run.

use airlane_base::{Duration, Instant};

use crate::app::Flow;
use crate::engine::Engine;
use crate::engine::observe::Observer;
use crate::error::ScenarioError;
use crate::probe::rate_bps;
use crate::result::OverTimeResult;
use crate::scenario::Scenario;

/// The limit on numbers in the results of all runs together: 128 MB.
const MOST_NUMBERS: u128 = 1 << 24;
/// As many lines as can be taken in at a glance.
const USUAL_MOST: u64 = 20;

/// 1, 2 or 5 times a power of ten, so that a run of the scenario has at most 20 intervals.
pub fn usual_interval(scenario: &Scenario) -> Duration {
    let mut decade = 1;
    loop {
        for step in [1, 2, 5] {
            let interval = Duration::from_nanos(step * decade);
            if interval * USUAL_MOST >= scenario.duration {
                return interval;
            }
        }
        decade *= 10;
    }
}

/// Whether there is room for one number per flow, `interval` and run.
pub(super) fn check(
    interval: Duration,
    scenario: &Scenario,
    runs: u64,
) -> Result<(), ScenarioError> {
    let flows = scenario.flows.len();
    let intervals = match interval.as_nanos() {
        0 => u64::MAX,
        nanos => scenario.duration.as_nanos().div_ceil(nanos),
    };
    if u128::from(intervals) * flows as u128 * u128::from(runs) <= MOST_NUMBERS {
        return Ok(());
    }
    Err(ScenarioError::ShortInterval {
        interval: interval.to_string(),
        duration: scenario.duration.to_string(),
        flows,
        runs,
        most: MOST_NUMBERS as u64,
    })
}

/// The intervals of a run in progress.
pub(super) struct OverTime {
    interval: Duration,
    /// When the last interval ended, and how many bytes each flow had received then.
    since: Instant,
    before: Vec<u64>,
    flows: Vec<Vec<f64>>,
}

impl OverTime {
    pub(super) fn new(interval: Duration, flows: usize) -> Self {
        Self {
            interval,
            since: Instant::ORIGIN,
            before: vec![0; flows],
            flows: vec![vec![]; flows],
        }
    }

    /// [`Engine::run`] in steps of an interval; the steps do not affect the simulation.
    pub(super) fn run<O: Observer>(
        &mut self,
        engine: &mut Engine,
        end: Instant,
        until: Option<usize>,
        observer: &mut O,
    ) {
        while self.since < end {
            let next = (self.since + self.interval).min(end);
            let goes_on = engine.run(next, until, observer);
            self.ends(engine.now(), &engine.flows);
            if !goes_on {
                break;
            }
        }
    }

    fn ends(&mut self, now: Instant, flows: &[Flow]) {
        let length = now.saturating_since(self.since);
        self.since = now;
        let kept = self.flows.iter_mut().zip(&mut self.before);
        for (flow, (numbers, before)) in flows.iter().zip(kept) {
            let bytes = flow.delivered_bytes();
            let new = bytes - std::mem::replace(before, bytes);
            numbers.extend(rate_bps(new, length));
        }
    }

    /// The throughput of a flow.
    pub(super) fn result(&mut self, flow: usize) -> OverTimeResult {
        OverTimeResult {
            interval_s: self.interval.as_secs_f64(),
            throughput_bps: std::mem::take(&mut self.flows[flow]),
        }
    }
}
