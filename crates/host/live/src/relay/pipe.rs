//! What waits between two sockets, in the kernel: bytes go in and out without being copied.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};

/// A pipe and how many bytes are in it.
#[derive(Debug)]
pub(super) struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
    held: usize,
}

impl Pipe {
    /// An empty one that takes `size` bytes, or what the system allows.
    pub(super) fn open(size: usize) -> io::Result<Self> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A smaller one passes on the same bytes in more steps.
        let _refused = rustix::pipe::fcntl_setpipe_size(&into, size);
        Ok(Self { out, into, held: 0 })
    }

    /// Bytes in it.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// Takes in at most `most` bytes of a socket; 0 at its end.
    pub(super) fn fill(&mut self, from: impl AsFd, most: usize) -> io::Result<usize> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let taken = splice(from, None, &self.into, None, most, flags)?;
        self.held += taken;
        Ok(taken)
    }

    /// Gives what it can to a socket.
    pub(super) fn drain(&mut self, to: impl AsFd) -> io::Result<usize> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let given = splice(&self.out, None, to, None, self.held, flags)?;
        self.held -= given;
        Ok(given)
    }
}
