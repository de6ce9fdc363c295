//! Observers of a node: of a link's datagrams, for a recording, and of a port's inputs, for a journal.

use std::io;

use airlane_base::Instant;

use crate::journal::Sink;

/// Observes the datagrams of a link: those sent, and the authentic ones received.
pub trait Tap: std::fmt::Debug {
    /// A datagram is sent; `waiting` bytes of packets are queued after it.
    fn sent(&mut self, now: Instant, datagram: &[u8], waiting: usize);
    /// A datagram was received.
    fn received(&mut self, now: Instant, datagram: &[u8]);
}

/// Creates the journals of ports.
pub trait Journals: std::fmt::Debug {
    /// Creates one; for the named peer, where peers are listed.
    ///
    /// # Errors
    /// If it cannot be created.
    fn begin(&mut self, peer: Option<&str>) -> io::Result<Box<dyn Sink>>;
}
