//! Distinguishes losses of the link from those of a policer, which drops what exceeds its rate.
//!
//! ```text
//! high loss      send slightly less than arrives, as a trial, and repeat it if the loss stays and less arrives. If the
//!                second trial agrees, the loss is the link's own: the rule. Otherwise the arrival rate is the limit
//! at the limit   after `HOLD`, send an eighth more, as a trial: the rate stays if at least half of that arrived. Each
//!                success doubles the next step, up to twice the rate. Where a second is a few packets the step is
//!                larger, as so few cannot show an eighth. What trials lose in vain is at most `IN_VAIN` of what is sent
//! ```
//!
//! The rule is learned only at rates that were not raised since the last round, or that a queue has
//! confirmed, so that what exceeds a policer never counts as the link's own loss.

use airlane_base::{DecayedLoss, Duration, Instant};

use super::seen::{Stretch, USED};

/// Bytes after which past losses count half, for the present loss and for the rule.
const LOSS_NOW: f64 = 400_000.0;
const LOSS_RULE: f64 = 4_000_000.0;
/// No usable link loses more than this: higher loss never becomes the rule.
const MOST_RULE: f64 = 0.5;
/// Loss is high if it exceeds one and a half times the rule by `MUCH`, or by `MUCH_OF_CARRIED` at a rate that
/// a queue has confirmed.
const MUCH: f64 = 0.08;
const MUCH_OF_CARRIED: f64 = 0.2;
/// A trial ends after this many bytes, fewer where the step is larger, or with `FEW` after `TRIAL_FOR`.
const TRIAL: f64 = 150_000.0;
const FEW: f64 = 15_000.0;
const TRIAL_FOR: f64 = 1.0;
/// Minimum time at a limit before a higher rate is tried, the fraction of what is sent that such trials may lose, and
/// the size of the step.
const HOLD: Duration = Duration::from_millis(1_500);
const IN_VAIN: f64 = 0.02;
const RAISE: f64 = 0.125;
const MOST_RAISE: f64 = 1.0;
/// The loss stays if the fraction `STILL` of its excess over the rule remains. A trial above the fraction
/// `CLEAR` of the old rate is too near to it to show whether less arrives.
const STILL: f64 = 0.35;
const CLEAR: f64 = 0.75;
/// Sending rate as a fraction of the arrival rate.
const BELOW: f64 = 0.97;

/// The initial rule: only high loss exceeds it.
const NOTHING_LOST: DecayedLoss = DecayedLoss {
    lost: 0.0,
    all: LOSS_RULE / 2.0,
};

/// A rate above which the surplus is lost.
#[derive(Clone, Copy, Debug)]
struct Limit {
    bps: u64,
    /// When a higher rate is tried, and the size of the step.
    again: Instant,
    raise: f64,
    /// Whether more was dropped. Otherwise the last trial of more succeeded.
    is_shown: bool,
}

/// Another rate, on trial.
#[derive(Clone, Copy, Debug)]
struct Trial {
    kind: Kind,
    began: Instant,
    /// Whether it is the second of its kind: a full token bucket may have misled the first.
    again: bool,
    /// The rate before.
    bps: u64,
    /// The loss at that rate, and what was sent and arrived, bit/s.
    was: f64,
    sent_bps: f64,
    arrived_bps: f64,
    // Totals since the start, in bytes and seconds.
    lost: f64,
    all: f64,
    took: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Less,
    More,
}

/// A round without a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) bps: u64,
    pub(super) busy: bool,
    /// Bytes sent in it.
    pub(super) all: f64,
    pub(super) seen: Stretch,
    /// Recent arrival rate, bit/s.
    pub(super) arrived_bps: f64,
    /// Whether the last queue showed that the link carries this rate.
    pub(super) is_carried: bool,
}

/// What to do with the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Advice {
    /// Losses permit growth.
    Grow,
    /// Keep the rate for now.
    Hold,
    /// Change the rate to this.
    Set(u64),
}

/// The loss estimates and what follows from them.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    now: DecayedLoss,
    rule: DecayedLoss,
    limit: Option<Limit>,
    trial: Option<Trial>,
    /// The rate before losses first reduced it, until something other than losses limits it.
    sound: Option<u64>,
    /// Whether losses have reduced the rate since the last call.
    news: bool,
    /// The rate of the last round.
    last_bps: u64,
}

impl Losses {
    pub(super) fn new() -> Self {
        Self {
            now: DecayedLoss::default(),
            rule: NOTHING_LOST,
            limit: None,
            trial: None,
            sound: None,
            news: false,
            last_bps: 0,
        }
    }

    /// The loss of the link at any rate.
    pub(super) fn rule(&self) -> f64 {
        self.rule.ratio().clamp(0.0, MOST_RULE)
    }

    /// The loss above which something probably overflows. Always below one.
    pub(super) fn much(&self, is_carried: bool) -> f64 {
        let beside = if is_carried { MUCH_OF_CARRIED } else { MUCH };
        1.5 * self.rule() + beside
    }

    /// The rate above which each step is a trial, where losses have shown one.
    pub(super) fn limit(&self) -> Option<u64> {
        self.limit.map(|limit| limit.bps)
    }

    /// Whether what exceeds the limit is dropped, as far as is known.
    pub(super) fn drops_more(&self) -> bool {
        self.limit.is_some_and(|limit| limit.is_shown)
    }

    /// The rate before losses first reduced it, where nothing else has limited it since.
    pub(super) const fn sound(&self) -> Option<u64> {
        self.sound
    }

    /// Whether losses have reduced the rate since the last call: the path may swallow long frames.
    pub(super) const fn take_news(&mut self) -> bool {
        std::mem::replace(&mut self.news, false)
    }

    /// The rate before a trial of a lower one, while that lasts.
    pub(super) fn before_trial(&self) -> Option<u64> {
        let less = self.trial.filter(|trial| trial.kind == Kind::Less);
        less.map(|trial| trial.bps)
    }

    /// A queue was found: the bottleneck queues what exceeds its rate, and does not drop it.
    pub(super) fn on_queue(&mut self, overflows: bool) {
        self.give_up_trial();
        if !overflows {
            (self.limit, self.sound) = (None, None);
        }
    }

    /// Notes that losses reduce this rate.
    pub(super) fn note_fall(&mut self, bps: u64) {
        self.sound.get_or_insert(bps);
        self.news = true;
    }

    /// Abandons the trial.
    pub(super) fn give_up_trial(&mut self) {
        (self.trial, self.now) = (None, DecayedLoss::default());
    }

    pub(super) fn judge(&mut self, now: Instant, round: &Round) -> Advice {
        let lost = round.seen.loss * round.all;
        let raised =
            std::mem::replace(&mut self.last_bps, round.bps) < round.bps && !round.is_carried;
        if let Some(trial) = &mut self.trial {
            if trial.kind == Kind::More && !round.busy {
                let bps = trial.bps;
                self.give_up_trial();
                return Advice::Set(bps);
            }
            trial.lost += lost;
            trial.all += round.all;
            trial.took += round.all * 8.0 / round.seen.sent_bps;
            let trial = *trial;
            // A larger step shows in fewer bytes.
            let part = match trial.kind {
                Kind::Less => 1.0,
                Kind::More => RAISE / (round.bps as f64 / trial.bps as f64 - 1.0).max(RAISE),
            };
            let is_over = trial.all >= TRIAL || trial.took >= TRIAL_FOR && trial.all >= part * FEW;
            return match is_over {
                true => self.end(now, round.bps, &trial),
                false => Advice::Hold,
            };
        }
        self.now.add(lost, round.all, LOSS_NOW);
        // Repairs that a policer drops again keep no queue of the port filled.
        let uses = round.seen.sent_bps >= USED * round.bps as f64;
        let much = self.much(round.is_carried || !round.busy);
        if (round.busy || uses) && self.now.ratio() > much {
            let carried = round.arrived_bps / (1.0 - self.rule());
            let most = round.bps as f64;
            let bps = BELOW * carried.clamp(most / 64.0, most);
            self.note_fall(round.bps);
            return self.begin(now, Kind::Less, round, bps);
        }
        if !raised {
            self.rule.add(lost, round.all, LOSS_RULE);
        }
        match self.limit {
            Some(limit) if round.bps as f64 >= 0.99 * limit.bps as f64 => {
                if !round.busy || now < limit.again {
                    return Advice::Hold;
                }
                self.begin(
                    now,
                    Kind::More,
                    round,
                    round.bps as f64 * (1.0 + limit.raise),
                )
            }
            _ => Advice::Grow,
        }
    }

    fn begin(&mut self, now: Instant, kind: Kind, round: &Round, bps: f64) -> Advice {
        self.trial = Some(Trial {
            kind,
            began: now,
            again: false,
            bps: round.bps,
            was: self.now.ratio(),
            sent_bps: round.seen.sent_bps,
            arrived_bps: round.arrived_bps,
            lost: 0.0,
            all: 0.0,
            took: 0.0,
        });
        Advice::Set(bps as u64)
    }

    /// Evaluates a trial.
    fn end(&mut self, now: Instant, bps: u64, trial: &Trial) -> Advice {
        self.give_up_trial();
        let (loss, rule) = (trial.lost / trial.all, self.rule());
        match trial.kind {
            Kind::Less => {
                // The loss stays although less is sent, and arrivals fall in proportion.
                let sent_bps = trial.all * 8.0 / trial.took;
                let part = (sent_bps / trial.sent_bps).min(1.0);
                let arrived = sent_bps * (1.0 - loss) / trial.arrived_bps;
                // A loss that was high by chance regresses afterwards.
                let as_much = loss > rule + (trial.was - rule) * STILL;
                let less_arrives = part > CLEAR || arrived < (1.0 + part) / 2.0;
                if as_much && less_arrives && !trial.again {
                    let arrived_bps = sent_bps * (1.0 - loss);
                    self.trial = Some(Trial {
                        again: true,
                        was: loss,
                        sent_bps,
                        arrived_bps,
                        lost: 0.0,
                        all: 0.0,
                        took: 0.0,
                        ..*trial
                    });
                    return Advice::Set((BELOW * arrived_bps / (1.0 - rule)) as u64);
                }
                if as_much && less_arrives {
                    let all = LOSS_RULE / 2.0;
                    let lost = loss.min(MOST_RULE) * all;
                    (self.rule, self.limit, self.sound) = (DecayedLoss { lost, all }, None, None);
                    return Advice::Set(trial.bps);
                }
                self.hold(now, bps, HOLD);
                Advice::Hold
            }
            Kind::More => {
                let raise = bps as f64 / trial.bps as f64 - 1.0;
                let in_vain = loss - rule;
                if in_vain > raise / (1.0 + raise) / 2.0 {
                    let lasted = now.saturating_since(trial.began).as_secs_f64();
                    let pause = Duration::from_secs_f64(lasted * in_vain / IN_VAIN);
                    self.hold(now, trial.bps, pause.max(HOLD));
                    return Advice::Set(trial.bps);
                }
                self.limit = Some(Limit {
                    bps,
                    again: now,
                    raise: (2.0 * raise).min(MOST_RAISE),
                    is_shown: false,
                });
                Advice::Hold
            }
        }
    }

    /// Stays at this rate, above which more is dropped, for this time.
    fn hold(&mut self, now: Instant, bps: u64, pause: Duration) {
        self.limit = Some(Limit {
            bps,
            again: now + pause,
            raise: RAISE * (FEW * 8.0 / TRIAL_FOR / bps as f64).clamp(1.0, MOST_RAISE / RAISE),
            is_shown: true,
        });
    }
}
