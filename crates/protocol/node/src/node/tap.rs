//! Who listens to a node: to the datagrams of a link, for a recording, and to what goes into a port, for a journal.

use std::io;

use airlane_base::Instant;

use crate::journal::Sink;

/// Is told of each datagram of a link: those that leave, and those that came and are authentic.
pub trait Tap: std::fmt::Debug {
    /// One leaves; so many bytes of packets wait after it.
    fn sent(&mut self, now: Instant, datagram: &[u8], waiting: usize);
    /// One has come.
    fn received(&mut self, now: Instant, datagram: &[u8]);
}

/// Where journals of ports are kept.
pub trait Journals: std::fmt::Debug {
    /// Begins one; of the peer of this name, where peers are listed.
    ///
    /// # Errors
    /// If there is no place for it.
    fn begin(&mut self, peer: Option<&str>) -> io::Result<Box<dyn Sink>>;
}
