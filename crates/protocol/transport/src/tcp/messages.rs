//! The content of a connection: messages, one after another, each starting a new segment.
//!
//! A connection for one transfer has one message, and the length of a segment follows from its number. Only a
//! connection that is reused has more. Messages that are not acknowledged are kept, because their segments may have
//! to be sent again.

use std::collections::VecDeque;

/// One message: its first segment, and the user bytes before it and in it.
#[derive(Clone, Copy, Debug, Default)]
struct Message {
    first: u64,
    before: u64,
    bytes: u64,
}

impl Message {
    fn end(&self, segment: u64) -> u64 {
        self.first + self.bytes.div_ceil(segment)
    }
}

/// The messages of one connection.
#[derive(Clone, Debug)]
pub(super) struct Messages {
    /// User bytes of a full segment. At least 1.
    segment: u64,
    newest: Message,
    /// Older messages that are not fully acknowledged, oldest first.
    earlier: VecDeque<Message>,
}

impl Messages {
    /// No messages.
    pub(super) fn new(segment: u32) -> Self {
        Self {
            segment: u64::from(segment),
            newest: Message::default(),
            earlier: VecDeque::new(),
        }
    }

    /// User bytes of a full segment.
    pub(super) fn segment(&self) -> u32 {
        self.segment as u32
    }

    /// Adds a message; segments below `acknowledged` are no longer needed.
    pub(super) fn append(&mut self, bytes: u64, acknowledged: u64) {
        let segment = self.segment;
        while self
            .earlier
            .front()
            .is_some_and(|m| m.end(segment) <= acknowledged)
        {
            self.earlier.pop_front();
        }
        let first = self.newest.end(segment);
        if first > acknowledged {
            self.earlier.push_back(self.newest);
        }
        // The sum saturates here; no connection lives long enough to reach that.
        let before = self.bytes();
        self.newest = Message {
            first,
            before,
            bytes: bytes.min(u64::MAX - before),
        };
    }

    /// Segments of all messages.
    pub(super) fn segments(&self) -> u64 {
        self.newest.end(self.segment)
    }

    /// User bytes of all messages.
    pub(super) fn bytes(&self) -> u64 {
        self.newest.before + self.newest.bytes
    }

    #[inline]
    fn message_of(&self, seq: u64) -> &Message {
        if seq >= self.newest.first {
            return &self.newest;
        }
        let found = self.earlier.iter().rev().find(|m| seq >= m.first);
        found.unwrap_or(&self.newest)
    }

    /// User bytes of segment `seq`, which must not be acknowledged yet; the last segment of a message may be short.
    #[inline]
    pub(super) fn segment_len(&self, seq: u64) -> u32 {
        let message = self.message_of(seq);
        let offset = seq
            .saturating_sub(message.first)
            .saturating_mul(self.segment);
        message.bytes.saturating_sub(offset).min(self.segment) as u32
    }

    /// User bytes of all segments below `seq`, the oldest that is not acknowledged.
    pub(super) fn bytes_below(&self, seq: u64) -> u64 {
        let message = self.message_of(seq);
        let offset = seq
            .saturating_sub(message.first)
            .saturating_mul(self.segment);
        message.before + offset.min(message.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a list of all segments' lengths, with any part of them acknowledged.
        #[test]
        fn agrees_with_a_list_of_segments(
            sizes in prop::collection::vec((1u64..2_000, 0.0f64..1.0), 1..12),
            segment in 1u32..700,
        ) {
            let mut messages = Messages::new(segment);
            let mut lengths: Vec<u32> = vec![];
            let mut acknowledged = 0u64;
            for (bytes, share) in &sizes {
                messages.append(*bytes, acknowledged);
                let mut rest = *bytes;
                while rest > 0 {
                    let len = rest.min(u64::from(segment));
                    lengths.push(len as u32);
                    rest -= len;
                }
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
