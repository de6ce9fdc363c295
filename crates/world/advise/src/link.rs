//! The simulated link: what the recording shows, and assumptions for the rest.

use airlane_base::{Duration, Probability, Rate, Size};
use airlane_channel::{ErrorModelConfig, LinkRate, RateSteps};
use airlane_fit::{Capacity, LinkFit, WayFit};
use serde::Serialize;
use toml::{Table, Value};

/// The round trip where neither the recording nor the user gives one.
pub const USUAL_ROUND_TRIP: Duration = Duration::from_millis(50);
/// A queue that was never full is assumed to hold what the link carries in this time, and at least these bytes.
const USUAL_QUEUE: Duration = Duration::from_millis(100);
const LEAST_QUEUE: u64 = 15_000;

/// A link of a scenario. Pairs are from its first end to its second, and back.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Rates.
    pub rates: [LinkRate; 2],
    /// Propagation delays.
    pub delay: Duration,
    /// Queue limits.
    pub queues: [Size; 2],
    /// Error models.
    pub errors: [ErrorModelConfig; 2],
    /// Mean lengths of the recorded frames, where a recording gives the losses.
    pub lengths: [Option<Size>; 2],
    /// Assumptions where the recording gives no value.
    pub assumed: Vec<Assumption>,
}

/// An assumption.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assumption {
    /// The direction whose receiver was not recorded equals the other one.
    OtherDirection,
    /// The round trip.
    RoundTrip(Duration),
    /// The capacity, as no queue was seen.
    Rate {
        /// The direction; none: both.
        way: Option<Way>,
        /// The assumed capacity.
        rate: Rate,
    },
    /// The queue limit, as no queue was seen full.
    Queue {
        /// The direction; none: both.
        way: Option<Way>,
        /// The assumed limit.
        size: Size,
    },
}

/// A direction of the recorded end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// What it sent.
    Out,
    /// What it received.
    In,
}

/// What is assumed of each direction, or of both if it is the same.
fn told<T: PartialEq>(
    each: [Option<T>; 2],
    of: impl Fn(Option<Way>, T) -> Assumption,
) -> Vec<Assumption> {
    match each {
        [Some(out), Some(into)] if out == into => vec![of(None, out)],
        [out, into] => {
            let out = out.map(|value| of(Some(Way::Out), value));
            let into = into.map(|value| of(Some(Way::In), value));
            out.into_iter().chain(into).collect()
        }
    }
}

impl Link {
    /// The link of a recording. `round_trip` overrides the recording's.
    pub fn of(fit: &LinkFit, round_trip: Option<Duration>) -> Self {
        let mut assumed = vec![];
        let ways = [&fit.out, &fit.into].map(Option::as_ref);
        let known = ways[0].or(ways[1]);
        if fit.one_sided() {
            assumed.push(Assumption::OtherDirection);
        }
        let round_trip = round_trip.or(fit.round_trip).unwrap_or_else(|| {
            assumed.push(Assumption::RoundTrip(USUAL_ROUND_TRIP));
            USUAL_ROUND_TRIP
        });
        let each = ways.map(|way| way.or(known));
        let rate = |way: &WayFit| match &way.capacity {
            Capacity::Constant(rate) => (LinkRate::Constant(*rate), None),
            Capacity::Steps { every, rates, .. } => {
                let steps = RateSteps::new(*every, rates.clone());
                let constant = || LinkRate::Constant(way.capacity.mean());
                (steps.map_or_else(constant, LinkRate::Steps), None)
            }
            Capacity::AtLeast(seen) => {
                // A node shapes to the rate that it found; more may have passed before.
                let rate = fit.shaped.map_or(*seen, |shaped| shaped.max(*seen));
                (LinkRate::Constant(rate), Some(rate))
            }
        };
        let nothing = || {
            let least = Rate::from_bps(1).expect("1 bit/s");
            (LinkRate::Constant(least), None)
        };
        let found = each.map(|way| way.map_or_else(nothing, rate));
        let assumed_rates = [found[0].1, found[1].1];
        assumed.extend(told(assumed_rates, |way, rate| Assumption::Rate {
            way,
            rate,
        }));
        let rates = found.map(|(rate, _)| rate);
        let queue = |at: usize| {
            let known = each[at].and_then(|way| way.queue);
            let mean = rates[at].mean().expect("it needs no file");
            let usual = mean.bytes_within(USUAL_QUEUE) as u64;
            known.ok_or_else(|| Size::from_bytes(usual.max(LEAST_QUEUE)))
        };
        let queues = [0, 1].map(queue);
        let assumed_queues = queues.map(Result::err);
        assumed.extend(told(assumed_queues, |way, size| Assumption::Queue {
            way,
            size,
        }));
        let errors = each.map(|way| way.map_or(ErrorModelConfig::None, |way| way.loss.errors()));
        Self {
            lengths: each.map(|way| way.map(|way| way.length)),
            rates,
            delay: round_trip / 2,
            queues: queues.map(|queue| queue.unwrap_or_else(|assumed| assumed)),
            errors,
            assumed,
        }
    }

    /// The table of a link in a scenario, without its ends.
    pub fn table(&self) -> Table {
        let value = |what: &dyn Fn() -> Result<Value, toml::ser::Error>| {
            what().expect("checked: rates and errors have a TOML form")
        };
        let both = |a: Value, b: Value| match a == b {
            true => a,
            false => {
                let mut each = Table::new();
                each.insert("down".to_owned(), a);
                each.insert("up".to_owned(), b);
                each.into()
            }
        };
        let mut table = Table::new();
        let rates = self
            .rates
            .each_ref()
            .map(|rate| value(&|| Value::try_from(rate)));
        let errors = self
            .errors
            .each_ref()
            .map(|errors| value(&|| Value::try_from(errors)));
        let queues = self
            .queues
            .map(|queue| Value::from(format!("{} B", queue.as_bytes())));
        let [down, up] = rates;
        table.insert("rate".to_owned(), both(down, up));
        table.insert("delay".to_owned(), self.delay.to_string().into());
        let [down, up] = queues;
        table.insert("queue".to_owned(), both(down, up));
        let [down, up] = errors;
        table.insert("errors".to_owned(), both(down, up));
        table
    }

    /// The same link, where what changes over time is shifted by this fraction.
    #[must_use]
    pub(crate) fn later(&self, part: f64) -> Self {
        let rates = self.rates.clone().map(|rate| match rate {
            LinkRate::Steps(steps) => {
                let mut rates = steps.rates().to_vec();
                let by = ((rates.len() as f64 * part) as usize).min(rates.len());
                rates.rotate_left(by);
                let later = RateSteps::new(steps.every(), rates);
                LinkRate::Steps(later.expect("as many rates as before"))
            }
            other => other,
        });
        Self {
            rates,
            ..self.clone()
        }
    }

    /// The same link with rates multiplied by a factor.
    #[must_use]
    pub fn faster(&self, times: f64) -> Self {
        let scaled = |rate: &Rate| {
            Rate::from_bps((rate.as_bps() as f64 * times).max(1.0) as u64)
                .expect("at least 1 bit/s")
        };
        let rates = self.rates.clone().map(|rate| match rate {
            LinkRate::Constant(rate) => LinkRate::Constant(scaled(&rate)),
            LinkRate::Steps(steps) => {
                let rates = steps.rates().iter().map(scaled).collect();
                LinkRate::Steps(RateSteps::new(steps.every(), rates).expect("as many as before"))
            }
            other @ LinkRate::Opportunities(_) => other,
        });
        Self {
            rates,
            ..self.clone()
        }
    }

    /// The same link with loss multiplied by a factor.
    #[must_use]
    pub fn lossier(&self, times: f64) -> Self {
        let scaled = |p: Probability| {
            Probability::new((p.value() * times).clamp(0.0, 1.0)).expect("within 0 and 1")
        };
        let errors = self.errors.clone().map(|errors| match errors {
            ErrorModelConfig::Uniform { rate } => ErrorModelConfig::Uniform { rate: scaled(rate) },
            ErrorModelConfig::TwoStateLoss {
                good,
                bad,
                loss_good,
                loss_bad,
            } => ErrorModelConfig::TwoStateLoss {
                good,
                // A bad state that cannot lose more lasts longer.
                bad: match loss_bad.value() * times > 1.0 {
                    true => bad.mul_f64(loss_bad.value() * times),
                    false => bad,
                },
                loss_good: scaled(loss_good),
                loss_bad: scaled(loss_bad),
            },
            other => other,
        });
        Self {
            errors,
            ..self.clone()
        }
    }

    /// The same link where independent losses are of bits, so that long frames are lost more often than short ones and
    /// those of the recorded length as often as they were. None where losses come in bursts, or there are none.
    #[must_use]
    pub(crate) fn by_length(&self) -> Option<Self> {
        let mut link = self.clone();
        for (errors, length) in link.errors.iter_mut().zip(self.lengths) {
            if let (ErrorModelConfig::Uniform { rate }, Some(length)) = (&*errors, length) {
                let bits = 8.0 * length.as_bytes().max(1) as f64;
                let ber = -libm::expm1(libm::log1p(-rate.value()) / bits);
                let ber = Probability::new(ber.clamp(0.0, 1.0)).expect("within 0 and 1");
                *errors = ErrorModelConfig::UniformBer { ber };
            }
        }
        (link != *self).then_some(link)
    }

    /// The same link with delays multiplied by a factor.
    #[must_use]
    pub fn longer(&self, times: f64) -> Self {
        Self {
            delay: self.delay.mul_f64(times),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assumption_names_its_direction_unless_both_have_it() {
        let [five, nine] = [5_000_000, 9_000_000].map(|bps| Rate::from_bps(bps).unwrap());
        let told = |each| told(each, |way, rate| Assumption::Rate { way, rate });
        let of = |way, rate| Assumption::Rate { way, rate };
        assert_eq!(told([None, None]), []);
        assert_eq!(told([Some(five), Some(five)]), [of(None, five)]);
        assert_eq!(told([None, Some(five)]), [of(Some(Way::In), five)]);
        let each = [of(Some(Way::Out), nine), of(Some(Way::In), five)];
        assert_eq!(told([Some(nine), Some(five)]), each);
    }
}
