//! Page fetches of fixed sizes: request and reply, each over fresh TCP state, one page at a time.
//!
//! A client at the second end sends a request against the main direction; when the server at the first end has all of
//! it, it replies at once (no processing time). A page is complete when the client has the whole reply; the next
//! request follows after a pause.
//!
//! The empirical model with embedded objects is [`web`](super::web).

use airlane_base::{Duration, Instant};

use super::exchange::Completed;
use super::talk::{Line, Script};

/// What one page consists of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// Bytes.
    pub(crate) request: u64,
    /// Bytes.
    pub(crate) reply: u64,
    pub(crate) pause: Duration,
}

/// One client and its server.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    page: Page,
    asked: Instant,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Pages {
    pub(crate) fn new(start: Instant, page: Page) -> Self {
        Self {
            page,
            asked: start,
            first: None,
            last: None,
        }
    }

    /// When the first request was sent, if any, and when the last reply was complete, if any.
    pub(crate) fn period(&self) -> Option<(Instant, Option<Instant>)> {
        Some((self.first?, self.last))
    }
}

impl Script for Pages {
    fn begin(&mut self, now: Instant, line: &mut Line) {
        self.first.get_or_insert(now);
        self.asked = now;
        line.ask(self.page.request);
    }

    fn follow(&mut self, now: Instant, completed: Option<Completed>, line: &mut Line) {
        match completed {
            Some(Completed::Request) => line.exchange.answer(self.page.reply),
            Some(Completed::Reply) => {
                line.times.record(now.saturating_since(self.asked));
                self.last = Some(now);
                line.next = Some(now + self.page.pause);
            }
            None => {}
        }
    }
}
