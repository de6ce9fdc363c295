//! How two stations negotiate their parameters: XID frames (GSM 04.22, section 5.2.2.6).
//!
//! Either station sends its own parameters, and the other answers with the agreed ones. Both compute these in the
//! same way, so it does not matter which station asks, or whether both do. A request is repeated until an answer or
//! the peer's own request arrives.

use airlane_base::Instant;

use crate::frame::{Body, Header, Unnumbered};
use crate::parameters::Parameters;

/// The state of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// Not needed yet: there is nothing to send.
    Unasked,
    /// It is sent next.
    Due,
    /// It is sent again at this time.
    Asked(Instant),
    /// Both stations have agreed.
    Over,
}

/// One end of the negotiation.
#[derive(Clone, Debug)]
pub struct Negotiation {
    own: Parameters,
    question: Question,
    /// The answer with these parameters is sent next.
    answer: Option<Parameters>,
}

impl Negotiation {
    /// An end with these parameters.
    pub fn new(own: Parameters) -> Self {
        Self {
            own,
            question: Question::Unasked,
            answer: None,
        }
    }

    /// There is something to send, so the parameters have to be negotiated first.
    pub fn begin(&mut self) {
        if self.question == Question::Unasked {
            self.question = Question::Due;
        }
    }

    /// Whether both ends have agreed.
    pub fn is_over(&self) -> bool {
        self.question == Question::Over
    }

    /// Whether [`Self::transmit`] has a frame.
    pub fn has_frame(&self) -> bool {
        self.answer.is_some() || self.question == Question::Due
    }

    /// The header and the information of the next frame.
    pub fn transmit(&mut self, now: Instant) -> Option<(Header, Vec<u8>)> {
        let (command, parameters) = if let Some(agreed) = self.answer.take() {
            (false, agreed)
        } else if self.question == Question::Due {
            self.question = Question::Asked(now + self.own.t1);
            (true, self.own)
        } else {
            return None;
        };
        let header = Header {
            command,
            poll: true,
            body: Body::Unnumbered(Unnumbered::Xid),
        };
        Some((header, parameters.xid()))
    }

    /// Takes the information of an XID frame; returns the agreed parameters, if any. An impossible request is not
    /// answered.
    pub fn handle_frame(&mut self, header: Header, items: &[u8]) -> Option<Parameters> {
        let agreed = self.own.agreed(items)?;
        if header.command {
            self.answer = Some(agreed);
        }
        self.question = Question::Over;
        Some(agreed)
    }

    /// When [`Self::handle_timeout`] has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.question {
            Question::Asked(until) => Some(until),
            _ => None,
        }
    }

    /// Repeats a request that has not been answered by now.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_some_and(|until| until <= now) {
            self.question = Question::Due;
        }
    }
}

#[cfg(test)]
mod tests {
    use airlane_base::Duration;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// All frames but the last are lost; one end asks, or both do.
        #[test]
        fn both_ends_agree_on_the_same(
            lost in prop::collection::vec(any::<bool>(), 0..12), both: bool, windows in [1_u8..=61, 1_u8..=61],
        ) {
            let own = |window| Parameters { window, ..Parameters::default() };
            let mut ends = windows.map(|window| Negotiation::new(own(window)));
            let mut agreed = [None; 2];
            ends[0].begin();
            if both {
                ends[1].begin();
            }
            let (mut now, mut lost) = (Instant::ORIGIN, lost.into_iter());
            for _ in 0..40 {
                for from in 0..2 {
                    ends[from].handle_timeout(now);
                    while let Some((header, items)) = ends[from].transmit(now) {
                        if !lost.next().unwrap_or(false) {
                            agreed[1 - from] = ends[1 - from].handle_frame(header, &items);
                        }
                    }
                }
                now += Duration::from_millis(480);
            }
            let window = windows[0].min(windows[1]);
            prop_assert_eq!(agreed.map(|agreed| agreed.map(|agreed| agreed.window)), [Some(window); 2]);
            prop_assert!(ends.iter().all(|end| end.is_over() && end.poll_timeout().is_none()));
        }
    }
}
