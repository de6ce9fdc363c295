//! Signal handling of the loops of `up`, `air` and `relay`.

use std::io;
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use signal_hook::low_level::pipe;

use crate::privileges;

/// Returns a descriptor that becomes readable at the first SIGTERM, SIGINT or SIGQUIT. SIGQUIT then leaves
/// no core file, which would contain keys.
///
/// # Errors
/// If the descriptors cannot be created or the handlers not installed.
pub fn stop_on_signals() -> io::Result<UnixStream> {
    readable_on(&[SIGTERM, SIGINT, SIGQUIT])
}

/// Returns a descriptor that becomes readable with each SIGUSR1, for a loop that reports its own status.
///
/// # Errors
/// If the descriptors cannot be created or the handler not installed.
pub fn tell_on_signals() -> io::Result<UnixStream> {
    readable_on(&[SIGUSR1])
}

fn readable_on(signals: &[i32]) -> io::Result<UnixStream> {
    let (readable, write_end) = UnixStream::pair()?;
    for signal in signals {
        pipe::register(*signal, write_end.try_clone()?)?;
    }
    Ok(readable)
}

/// A signal that does not end the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalRequest {
    /// SIGHUP: reload the file.
    Reload,
    /// SIGUSR1: write the status to the log.
    Report,
}

/// Starts a thread that calls `grant` for each such signal.
///
/// # Errors
/// If the handlers cannot be installed or the thread not started.
pub fn on_signal_requests(mut grant: impl FnMut(SignalRequest) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGUSR1])?;
    let work = move || {
        privileges::give_up_all();
        for signal in signals.forever() {
            grant(match signal {
                SIGHUP => SignalRequest::Reload,
                _ => SignalRequest::Report,
            });
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(work)
        .map(drop)
}
