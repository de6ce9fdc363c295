//! Compares Airlane with other programs, and runs it for a long time. For development only, like [`airlane_testkit`].
//!
//! * [`bench_live`]: Airlane and other tunnels, on a clean and on an impaired link.
//! * [`confusion`]: which service each kind of traffic gets.
//! * [`kernel`]: the kernel's TCP and ours.
//! * [`mesh`]: a saturated grid of radio stations, in ns-2, ns-3 and ours.
//! * [`ns2`]: bulk transfers in ns-2 and in ours.
//! * [`ns3`]: 802.11 over one hop in ns-3, ns-2 and ours.
//! * [`packetdrill`]: packetdrill's scripts against our TCP.
//! * [`relay`]: relays of split connections.
//! * [`send`]: files with `airlane send`, live.
//! * [`soak`]: a link over a long time, under everything that happens to links.

#![forbid(unsafe_code)]

pub mod bench_live;
pub mod confusion;
pub mod kernel;
pub mod mesh;
pub mod ns2;
pub mod ns3;
pub mod packetdrill;
pub mod progress;
pub mod relay;
pub mod send;
pub mod soak;
mod workers;

use std::process::ExitCode;

/// The exit code of these programs: 0 if all criteria hold, 1 if not, 2 if it could not be measured.
pub fn exit_code(held: Result<bool, String>) -> ExitCode {
    match held {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}
