//! What signals ask of the loops of `up`, `air` and `relay`.

use std::io;
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use signal_hook::low_level::pipe;

use crate::privileges;

/// A descriptor that is readable from the first SIGTERM, SIGINT or SIGQUIT on. The last leaves no core
/// file, in which keys would be.
///
/// # Errors
/// If the operating system gives no descriptors or refuses the handlers.
pub fn stop_on_signals() -> io::Result<UnixStream> {
    readable_on(&[SIGTERM, SIGINT, SIGQUIT])
}

/// A descriptor that becomes readable with each SIGUSR1, which asks where everything stands, for a loop that
/// says so itself.
///
/// # Errors
/// If the operating system gives no descriptors or refuses the handler.
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

/// What a signal asks for that ends nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// SIGHUP: to take over what changed in the file.
    Reload,
    /// SIGUSR1: to write to the log where everything stands.
    Report,
}

/// From now on has `grant` called, in a thread of its own, for each wish.
///
/// # Errors
/// If the operating system refuses the handlers or the thread.
pub fn on_wishes(mut grant: impl FnMut(Wish) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGUSR1])?;
    let work = move || {
        privileges::give_up_all();
        for signal in signals.forever() {
            grant(match signal {
                SIGHUP => Wish::Reload,
                _ => Wish::Report,
            });
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(work)
        .map(drop)
}
