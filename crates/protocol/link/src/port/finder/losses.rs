//! What losses say of the rate: whether they are the link's, or a policer's that drops what exceeds its rate.
//!
//! ```text
//! much is lost         send a bit less than arrives, as a trial, and once more if as much is lost then and less arrives. If that is
//!                      so again it is the link, and that is its rule. Otherwise what arrived is the limit
//! at the limit         after `HOLD`, send an eighth more, as a trial: it stays if at least half of that arrived. Each that stays
//!                      doubles the next. Where a second is a few packets it is more, as that many show no eighth
//! ```
//!
//! The rule is learned at rates that were not raised since the round before, or that a queue showed the link to carry, so that what
//! exceeds a policer never counts as the link's.

use airlane_base::{DecayedLoss, Duration, Instant};

use super::seen::Stretch;

/// Bytes after which what was lost counts half, for what is lost now and as a rule.
const LOSS_NOW: f64 = 400_000.0;
const LOSS_RULE: f64 = 4_000_000.0;
/// A link that loses more than this is none: what is beyond is never taken for its rule.
const MOST_RULE: f64 = 0.5;
/// More is lost than as a rule where so much more is, and half as much again as the rule; at a rate that a queue showed the link
/// to carry it takes more to say so.
const MUCH: f64 = 0.08;
const MUCH_OF_CARRIED: f64 = 0.2;
/// Who uses less than this of a rate is not limited by it.
const USED: f64 = 0.25;
/// A trial is over after so many bytes; after so long it needs few.
const TRIAL: f64 = 150_000.0;
const FEW: f64 = 15_000.0;
const TRIAL_FOR: f64 = 1.0;
/// So long a limit holds before more is tried, and by so much; twice as long after each trial in which more was lost.
const HOLD: Duration = Duration::from_millis(1_500);
const MOST_DOUBLED: u32 = 3;
const RAISE: f64 = 0.125;
const MOST_RAISE: f64 = 1.0;
/// So much of what was lost beyond the rule is as much, and this part of a rate is too near to it to say whether less arrives.
const STILL: f64 = 0.35;
const CLEAR: f64 = 0.75;
/// What is sent of what arrived.
const BELOW: f64 = 0.97;

/// What is lost at first is more than as a rule, if it is much.
const NOTHING_LOST: DecayedLoss = DecayedLoss {
    lost: 0.0,
    all: LOSS_RULE / 2.0,
};

/// A rate beyond which less of it arrives.
#[derive(Clone, Copy, Debug)]
struct Limit {
    bps: u64,
    /// More is tried then, by this part.
    again: Instant,
    raise: f64,
    /// How many times in a row a higher rate was tried in vain.
    failed: u32,
}

/// Another rate, to see what it changes.
#[derive(Clone, Copy, Debug)]
struct Trial {
    kind: Kind,
    /// It is the second of its kind: the first may have been misled by what a full bucket let pass.
    again: bool,
    /// The rate before.
    bps: u64,
    /// What was lost at that, and what was sent and arrived, bit/s.
    was: f64,
    sent_bps: f64,
    arrived_bps: f64,
    // These say what was sent since, in bytes and seconds.
    lost: f64,
    all: f64,
    took: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Less,
    More,
}

/// A round that showed no queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) bps: u64,
    pub(super) busy: bool,
    /// Bytes sent in it.
    pub(super) all: f64,
    pub(super) seen: Stretch,
    /// What has arrived of late, bit/s.
    pub(super) arrived_bps: f64,
    /// Whether the last queue showed that the link carries this rate.
    pub(super) is_carried: bool,
}

/// What is to become of the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Advice {
    /// Losses have nothing against more.
    Grow,
    /// It stays for now.
    Hold,
    /// It is to be this.
    Set(u64),
}

/// What is lost, and why.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    now: DecayedLoss,
    rule: DecayedLoss,
    limit: Option<Limit>,
    trial: Option<Trial>,
    /// The rate before losses first had less sent, until something else than losses limits it.
    sound: Option<u64>,
    /// They have had less sent since somebody asked.
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

    /// What the link loses at any rate.
    pub(super) fn rule(&self) -> f64 {
        self.rule.ratio().clamp(0.0, MOST_RULE)
    }

    /// More is lost than this only where something overflows, as a rule. Always less than all.
    pub(super) fn much(&self, is_carried: bool) -> f64 {
        let beside = if is_carried { MUCH_OF_CARRIED } else { MUCH };
        1.5 * self.rule() + beside
    }

    /// The rate beyond which no more arrives, where there is one.
    pub(super) fn limit(&self) -> Option<u64> {
        self.limit.map(|limit| limit.bps)
    }

    /// The rate before losses first had less sent, where nothing else has limited it since.
    pub(super) const fn sound(&self) -> Option<u64> {
        self.sound
    }

    /// Whether losses have had less sent since this was asked: the path may swallow long frames.
    pub(super) const fn take_news(&mut self) -> bool {
        std::mem::replace(&mut self.news, false)
    }

    /// The rate before less was sent as a trial, while that lasts.
    pub(super) fn before_trial(&self) -> Option<u64> {
        let less = self.trial.filter(|trial| trial.kind == Kind::Less);
        less.map(|trial| trial.bps)
    }

    /// A queue was found: what limits the rate drops nothing.
    pub(super) fn on_queue(&mut self, overflows: bool) {
        self.give_up_trial();
        if !overflows {
            (self.limit, self.sound) = (None, None);
        }
    }

    /// What is tried has become another thing.
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
            let few = match trial.kind {
                Kind::Less => FEW,
                Kind::More => FEW * RAISE / (round.bps as f64 / trial.bps as f64 - 1.0).max(RAISE),
            };
            let is_over = trial.all >= TRIAL || trial.took >= TRIAL_FOR && trial.all >= few;
            return match is_over {
                true => self.end(now, round.bps, &trial),
                false => Advice::Hold,
            };
        }
        self.now.add(lost, round.all, LOSS_NOW);
        // Repairs that a policer drops again keep no queue of the port's filled.
        let uses = round.seen.sent_bps >= USED * round.bps as f64;
        let much = self.much(round.is_carried || !round.busy);
        if (round.busy || uses) && self.now.ratio() > much {
            let carried = round.arrived_bps / (1.0 - self.rule());
            let most = round.bps as f64;
            let bps = BELOW * carried.clamp(most / 64.0, most);
            self.sound.get_or_insert(round.bps);
            self.news = true;
            return self.begin(Kind::Less, round, bps);
        }
        if !raised {
            self.rule.add(lost, round.all, LOSS_RULE);
        }
        match self.limit {
            Some(limit) if round.bps as f64 >= 0.99 * limit.bps as f64 => {
                if !round.busy || now < limit.again {
                    return Advice::Hold;
                }
                self.begin(Kind::More, round, round.bps as f64 * (1.0 + limit.raise))
            }
            _ => Advice::Grow,
        }
    }

    fn begin(&mut self, kind: Kind, round: &Round, bps: f64) -> Advice {
        self.trial = Some(Trial {
            kind,
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

    /// A trial has shown what it can.
    fn end(&mut self, now: Instant, bps: u64, trial: &Trial) -> Advice {
        self.give_up_trial();
        let (loss, rule) = (trial.lost / trial.all, self.rule());
        match trial.kind {
            Kind::Less => {
                // As much of less is lost, and less arrives by as much.
                let sent_bps = trial.all * 8.0 / trial.took;
                let part = (sent_bps / trial.sent_bps).min(1.0);
                let arrived = sent_bps * (1.0 - loss) / trial.arrived_bps;
                // What was much by chance is less afterwards.
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
                self.hold(now, bps, 0);
                Advice::Hold
            }
            Kind::More => {
                let raise = bps as f64 / trial.bps as f64 - 1.0;
                if loss - rule > raise / (1.0 + raise) / 2.0 {
                    let failed = self.limit.map_or(0, |limit| limit.failed + 1);
                    self.hold(now, trial.bps, failed.min(MOST_DOUBLED));
                    return Advice::Set(trial.bps);
                }
                // Where twice as much arrives it is not limited here.
                self.limit = (raise < 0.5).then_some(Limit {
                    bps,
                    again: now,
                    raise: 2.0 * raise,
                    failed: 0,
                });
                Advice::Hold
            }
        }
    }

    fn hold(&mut self, now: Instant, bps: u64, failed: u32) {
        self.limit = Some(Limit {
            bps,
            again: now + HOLD * (1 << failed),
            raise: RAISE * (FEW * 8.0 / TRIAL_FOR / bps as f64).clamp(1.0, MOST_RAISE / RAISE),
            failed,
        });
    }
}
