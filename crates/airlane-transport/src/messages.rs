//! What one connection carries: messages, one after the other, each beginning a new segment.
//!
//! A connection for one transfer has one message, and the length of a segment follows from its
//! number. Only a connection that is reused has more: those that are not acknowledged are kept,
//! because their segments may have to leave again.

use std::collections::VecDeque;

use crate::config::Transfer;

/// Where a message begins: its first segment, and the user bytes before it.
#[derive(Clone, Copy, Debug)]
struct Message {
    first: u64,
    before: u64,
    transfer: Transfer,
}

impl Message {
    fn end(&self) -> u64 {
        self.first.saturating_add(self.transfer.segments())
    }
}

/// The messages of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    newest: Message,
    /// Older ones that are not acknowledged, oldest first.
    earlier: VecDeque<Message>,
}

impl Messages {
    pub(crate) fn new(transfer: Transfer) -> Self {
        Self {
            newest: Message {
                first: 0,
                before: 0,
                transfer,
            },
            earlier: VecDeque::new(),
        }
    }

    /// One more message; segments below `acknowledged` are asked for no more.
    pub(crate) fn append(&mut self, bytes: u64, acknowledged: u64) {
        let Some(newest) = self.newest.transfer.bytes else {
            return;
        };
        while self
            .earlier
            .front()
            .is_some_and(|m| m.end() <= acknowledged)
        {
            self.earlier.pop_front();
        }
        let first = self.newest.end();
        if first > acknowledged {
            self.earlier.push_back(self.newest);
        }
        self.newest = Message {
            first,
            before: self.newest.before + newest,
            transfer: Transfer {
                bytes: Some(bytes),
                ..self.newest.transfer
            },
        };
    }

    /// Segments of all messages.
    pub(crate) fn segments(&self) -> u64 {
        self.newest.end()
    }

    #[inline]
    fn message_of(&self, seq: u64) -> &Message {
        if seq >= self.newest.first {
            return &self.newest;
        }
        let found = self.earlier.iter().rev().find(|m| seq >= m.first);
        found.unwrap_or(&self.newest)
    }

    /// User bytes of segment `seq`, which must not be acknowledged.
    #[inline]
    pub(crate) fn segment_len(&self, seq: u64) -> u32 {
        let message = self.message_of(seq);
        message
            .transfer
            .segment_len(seq.saturating_sub(message.first))
    }

    /// User bytes of all segments below `seq`, which is the oldest that is not acknowledged.
    pub(crate) fn bytes_below(&self, seq: u64) -> u64 {
        let message = self.message_of(seq);
        message.before
            + message
                .transfer
                .bytes_below(seq.saturating_sub(message.first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list of all segments' lengths, with any part of them acknowledged.
        #[test]
        fn agrees_with_a_list_of_segments(
            sizes in prop::collection::vec((1u64..2_000, 0.0f64..1.0), 1..12),
            segment in 1u32..700,
        ) {
            let transfer = |bytes| Transfer { bytes: Some(bytes), segment };
            let mut messages = Messages::new(transfer(sizes[0].0));
            let mut lengths: Vec<u32> = vec![];
            let mut acknowledged = 0u64;
            for (index, (bytes, share)) in sizes.iter().enumerate() {
                if index > 0 {
                    messages.append(*bytes, acknowledged);
                }
                let whole = transfer(*bytes);
                lengths.extend((0..whole.segments()).map(|s| whole.segment_len(s)));
                prop_assert_eq!(messages.segments(), lengths.len() as u64);
                for seq in acknowledged..lengths.len() as u64 {
                    prop_assert_eq!(messages.segment_len(seq), lengths[seq as usize]);
                }
                let left = lengths.len() as u64 - acknowledged;
                acknowledged += (left as f64 * share) as u64;
                let below: u64 = lengths[..acknowledged as usize].iter().map(|l| u64::from(*l)).sum();
                prop_assert_eq!(messages.bytes_below(acknowledged), below);
            }
        }
    }
}
