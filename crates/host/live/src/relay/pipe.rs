//! A kernel pipe between two sockets: bytes pass without being copied to user space.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};

/// A pipe and the number of bytes in it.
#[derive(Debug)]
pub(super) struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
    held: usize,
}

impl Pipe {
    /// Opens an empty pipe of `size` bytes, or of the size that the system allows.
    pub(super) fn open(size: usize) -> io::Result<Self> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A smaller pipe only needs more steps.
        let _refused = rustix::pipe::fcntl_setpipe_size(&into, size);
        Ok(Self { out, into, held: 0 })
    }

    /// Bytes in the pipe.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// Reads at most `most` bytes from a socket; returns 0 at the FIN.
    pub(super) fn fill(&mut self, from: impl AsFd, most: usize) -> io::Result<usize> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let taken = splice(from, None, &self.into, None, most, flags)?;
        self.held += taken;
        Ok(taken)
    }

    /// Writes as much as possible to a socket.
    pub(super) fn drain(&mut self, to: impl AsFd) -> io::Result<usize> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let given = splice(&self.out, None, to, None, self.held, flags)?;
        self.held -= given;
        Ok(given)
    }
}
