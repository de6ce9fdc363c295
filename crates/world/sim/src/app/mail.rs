//! Mail checks in the manner of POP3 (RFC 1939; Xylomenos 1999, section 9.2): not interactive, but
//! bidirectional.
//!
//! A client at the second end takes turns with a server at the first: short commands and responses (log in, list
//! messages), then one command per message with the message as the reply, and a last short turn. Each check has fresh
//! TCP state, which its turns share. The metric is the time from the first command to the last response.
//!
//! Message sizes are exponential and drawn when their command arrives; they are the same in every repetition.

use airlane_base::{Duration, Instant, Rng};

use super::exchange::Completed;
use super::talk::{Line, Script};

/// What a check consists of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MailCheck {
    /// Short turns; the last of them comes after the messages.
    pub(crate) turns: u32,
    /// Bytes.
    pub(crate) command: u64,
    /// Bytes.
    pub(crate) response: u64,
    pub(crate) messages: u32,
    /// Mean bytes of a message.
    pub(crate) message: u64,
    pub(crate) pause: Duration,
}

impl MailCheck {
    /// Whether turn `turn`, counted from 0, fetches a message.
    fn is_message(&self, turn: u32) -> bool {
        let first = self.turns - 1;
        (first..first + self.messages).contains(&turn)
    }
}

/// One mail client and its server.
#[derive(Clone, Debug)]
pub(crate) struct Mail {
    check: MailCheck,
    sizes: Rng,
    began: Instant,
    /// The turn in progress.
    turn: u32,
}

impl Mail {
    pub(crate) fn new(start: Instant, check: MailCheck, sizes: Rng) -> Self {
        Self {
            check,
            sizes,
            began: start,
            turn: 0,
        }
    }
}

impl Script for Mail {
    fn begin(&mut self, now: Instant, line: &mut Line) {
        self.began = now;
        self.turn = 0;
        line.ask(self.check.command);
    }

    fn follow(&mut self, now: Instant, completed: Option<Completed>, line: &mut Line) {
        match completed {
            Some(Completed::Request) => {
                let bytes = if self.check.is_message(self.turn) {
                    let drawn = self.sizes.exponential(self.check.message as f64);
                    (drawn as u64).max(1)
                } else {
                    self.check.response
                };
                line.exchange.answer(bytes);
            }
            Some(Completed::Reply) => {
                self.turn += 1;
                if self.turn < self.check.turns + self.check.messages {
                    line.ask(self.check.command);
                    return;
                }
                line.times.record(now.saturating_since(self.began));
                line.exchange.close();
                line.next = Some(now + self.check.pause);
            }
            None => {}
        }
    }
}
