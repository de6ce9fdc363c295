//! SIGTERM and SIGINT as a descriptor that becomes readable, for the loops of `up` and `air`.

use std::io;
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

/// A descriptor that is readable from the first SIGTERM or SIGINT on.
///
/// # Errors
/// If the operating system gives no descriptors or refuses the handlers.
pub fn stop_on_signals() -> io::Result<UnixStream> {
    let (stop, write_end) = UnixStream::pair()?;
    pipe::register(SIGTERM, write_end.try_clone()?)?;
    pipe::register(SIGINT, write_end)?;
    Ok(stop)
}
