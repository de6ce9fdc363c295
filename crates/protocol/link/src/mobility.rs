//! Mobility hints (Xylomenos 1999, section 8.4; section 10.5 of docs/spec/multi-service.md).
//!
//! A link layer reports when a link comes and goes; the order of these hints tells what happened:
//!
//! ```text
//! disconnected(a), connected(a)      the same link: adverse conditions, now over
//! disconnected(a), connected(b)      another link: a handoff, horizontal within one technology,
//!                                    vertical between two
//! ```
//!
//! Each higher layer reacts in its own way: transport pauses during the outage, applications change their
//! coding after a vertical handoff. Left out: the criterion by which a link counts as disconnected (the
//! driver decides), and telling distant hosts.

/// A link layer's report about a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint<L> {
    /// The link can carry frames.
    Connected(L),
    /// The link carries nothing.
    Disconnected(L),
}

/// A link, as handoffs distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attachment<L> {
    /// Which link: a cell, a base station.
    pub link: L,
    /// Equal for links of one technology, such as WLAN or cellular.
    pub technology: usize,
}

/// The meaning of a hint, given those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<L> {
    /// The first link, or an additional one.
    Attached(L),
    /// The link that carried packets is gone.
    Lost(L),
    /// The lost link is back: channel conditions were adverse.
    Returned(L),
    /// A link of the same technology replaced the lost one.
    HorizontalHandoff {
        /// The lost link.
        from: L,
        /// The new link.
        to: L,
    },
    /// A link of another technology replaced the lost one.
    VerticalHandoff {
        /// The lost link.
        from: L,
        /// The new link.
        to: L,
    },
}

/// Turns hints into changes.
#[derive(Clone, Debug)]
pub struct Mobility<L> {
    /// The first link lost and not yet replaced.
    lost: Option<Attachment<L>>,
}

impl<L> Default for Mobility<L> {
    fn default() -> Self {
        Self { lost: None }
    }
}

impl<L: Copy + Eq> Mobility<L> {
    /// Starts with no link attached.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a hint. After several disconnections without a connection in between, a handoff is from the
    /// first link lost.
    pub fn handle_hint(&mut self, hint: Hint<Attachment<L>>) -> Change<L> {
        match hint {
            Hint::Disconnected(gone) => {
                self.lost.get_or_insert(gone);
                Change::Lost(gone.link)
            }
            Hint::Connected(here) => match self.lost.take() {
                None => Change::Attached(here.link),
                Some(lost) if lost.link == here.link => Change::Returned(here.link),
                Some(lost) if lost.technology == here.technology => Change::HorizontalHandoff {
                    from: lost.link,
                    to: here.link,
                },
                Some(lost) => Change::VerticalHandoff {
                    from: lost.link,
                    to: here.link,
                },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_interpreted_by_their_order() {
        let at = |link, technology| Attachment { link, technology };
        let mut mobility = Mobility::new();
        let script = [
            (Hint::Connected(at("wlan 1", 1)), Change::Attached("wlan 1")),
            (Hint::Disconnected(at("wlan 1", 1)), Change::Lost("wlan 1")),
            (Hint::Connected(at("wlan 1", 1)), Change::Returned("wlan 1")),
            (Hint::Disconnected(at("wlan 1", 1)), Change::Lost("wlan 1")),
            (
                Hint::Connected(at("wlan 2", 1)),
                Change::HorizontalHandoff {
                    from: "wlan 1",
                    to: "wlan 2",
                },
            ),
            // Another link comes and goes during the outage: the handoff is from the first.
            (Hint::Disconnected(at("wlan 2", 1)), Change::Lost("wlan 2")),
            (Hint::Disconnected(at("wlan 3", 1)), Change::Lost("wlan 3")),
            (
                Hint::Connected(at("cell", 2)),
                Change::VerticalHandoff {
                    from: "wlan 2",
                    to: "cell",
                },
            ),
            (Hint::Connected(at("wlan 2", 1)), Change::Attached("wlan 2")),
        ];
        for (hint, change) in script {
            assert_eq!(mobility.handle_hint(hint), change, "{hint:?}");
        }
    }
}
