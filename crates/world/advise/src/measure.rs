//! Measures of applications: one number for each run.

use airlane_sim::{FlowResult, RunResult};
use serde::{Serialize, Serializer};

use crate::WORTH;
use crate::apps::{App, AppKind, Apps};

/// A quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Throughput of user data of all applications of the kind together, bit/s.
    Throughput,
    /// Mean time from a request to the end of the reply, s.
    PageTime,
    /// The time that 95 % of the pages do not exceed, s; of several users of pages the mean of theirs.
    PageTail,
    /// Fraction of a call's packets lost, in the worse direction.
    CallLoss,
    /// 99th percentile of the delay of a call's packets, in the worse direction, s.
    CallDelay,
}

/// A quantity of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The application.
    pub app: App,
    /// A quantity.
    pub what: What,
}

impl What {
    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput_bps",
            Self::PageTime => "page_time_mean_s",
            Self::PageTail => "page_time_p95_s",
            Self::CallLoss => "loss_ratio",
            Self::CallDelay => "delay_p99_s",
        }
    }
}

impl Serialize for Measure {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&format_args!("{}.{}", self.app.name(), self.what.name()))
    }
}

impl Measure {
    /// All measures of these applications.
    pub fn all(apps: &Apps) -> Vec<Self> {
        let each = apps.0.iter().flat_map(|app| {
            let what: &[What] = match app.kind {
                AppKind::File | AppKind::Upload => &[What::Throughput],
                AppKind::Pages => &[What::PageTime, What::PageTail],
                AppKind::Call => &[What::CallLoss, What::CallDelay],
            };
            what.iter().map(|what| Self {
                app: *app,
                what: *what,
            })
        });
        each.collect()
    }

    /// Its value in a run. A time without any sample, as nothing finished or arrived, is the length of the run.
    pub fn of(&self, run: &RunResult) -> f64 {
        let name = self.app.name();
        let is_own = |flow: &&FlowResult| {
            let rest = flow.name.strip_prefix(&name);
            rest.is_some_and(|rest| rest.starts_with(['-']) && !rest.starts_with("-bbr"))
        };
        let flows = run.flows.iter().filter(is_own);
        let all = |of: &dyn Fn(&FlowResult) -> Option<f64>, otherwise: f64| -> Vec<f64> {
            flows
                .clone()
                .map(|flow| of(flow).unwrap_or(otherwise))
                .collect()
        };
        let worst = |values: Vec<f64>| values.into_iter().fold(0.0, f64::max);
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
        match self.what {
            What::Throughput => all(&|f| f.throughput_bps, 0.0).into_iter().sum(),
            What::PageTime => mean(all(&|f| f.page_time_mean_s, run.stopped_s)),
            What::PageTail => mean(all(&|f| f.page_time_p95_s, run.stopped_s)),
            What::CallLoss => worst(all(&|f| f.loss_ratio, 1.0)),
            What::CallDelay => worst(all(&|f| f.delay_p99_s, run.stopped_s)),
        }
    }

    /// The gain of `value` over `base`; positive is better. For rates and times it is the logarithm of their ratio, so that
    /// one run with a factor of ten does not outweigh all others; for losses it is a difference.
    pub fn gain(&self, value: f64, base: f64) -> f64 {
        let log = |value: f64, least: f64| libm::log(value.max(least));
        match self.what {
            What::Throughput => log(value, 1.0) - log(base, 1.0),
            What::PageTime | What::PageTail | What::CallDelay => log(base, 1e-6) - log(value, 1e-6),
            What::CallLoss => base - value,
        }
    }

    /// A gain as a relative change, for rates and times.
    pub fn said(&self, gain: f64) -> f64 {
        match self.what {
            What::Throughput => libm::expm1(gain),
            What::PageTime | What::PageTail | What::CallDelay => -libm::expm1(-gain),
            What::CallLoss => gain,
        }
    }

    /// The least gain that counts.
    pub const fn worth(&self) -> f64 {
        match self.what {
            What::Throughput | What::PageTime | What::PageTail | What::CallDelay => WORTH,
            What::CallLoss => WORTH / 10.0,
        }
    }
}
