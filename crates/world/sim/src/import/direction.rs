//! One direction of a link, while it is assembled.

use airlane_base::{Duration, Probability, QueueLimit, Rate};
use airlane_channel::{ErrorModelConfig, JitterConfig, LinkRate};

/// One direction, as a link of the scenario has it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Direction {
    pub(super) rate: LinkRate,
    pub(super) delay: Duration,
    pub(super) jitter: Option<JitterConfig>,
    pub(super) queue: QueueLimit,
    pub(super) errors: ErrorModelConfig,
}

/// Stands for no limit: more than one TCP connection here is likely to need.
pub(super) const UNLIMITED: Rate = Rate::from_bps(1_000_000_000).expect("not zero");

impl Direction {
    /// No limit, no delay, no loss.
    pub(super) const fn open(queue: QueueLimit) -> Self {
        Self {
            rate: LinkRate::Constant(UNLIMITED),
            delay: Duration::ZERO,
            jitter: None,
            queue,
            errors: ErrorModelConfig::None,
        }
    }

    /// Adds independent loss. False if it cannot be combined with the errors so far.
    pub(super) fn also_loses(&mut self, part: Probability) -> bool {
        let also = |p: Probability| {
            let all = 1.0 - (1.0 - p.value()) * (1.0 - part.value());
            Probability::new(all).unwrap_or(p)
        };
        self.errors = match &self.errors {
            _ if part == Probability::ZERO => return true,
            ErrorModelConfig::None => ErrorModelConfig::Uniform { rate: part },
            ErrorModelConfig::Uniform { rate } => ErrorModelConfig::Uniform { rate: also(*rate) },
            ErrorModelConfig::GilbertElliott {
                good_to_bad,
                bad_to_good,
                loss_good,
                loss_bad,
            } => ErrorModelConfig::GilbertElliott {
                good_to_bad: *good_to_bad,
                bad_to_good: *bad_to_good,
                loss_good: also(*loss_good),
                loss_bad: also(*loss_bad),
            },
            _ => return false,
        };
        true
    }

    /// Adds an error model. False if it cannot be combined with the errors so far.
    pub(super) fn also_errs(&mut self, model: &ErrorModelConfig) -> bool {
        match (model, &self.errors) {
            (ErrorModelConfig::None, _) => true,
            (ErrorModelConfig::Uniform { rate }, _) => self.also_loses(*rate),
            (model, ErrorModelConfig::None) => {
                self.errors = model.clone();
                true
            }
            (model, ErrorModelConfig::Uniform { rate }) => {
                let rate = *rate;
                self.errors = model.clone();
                self.also_loses(rate)
            }
            _ => false,
        }
    }
}
