//! What compares Airlane with others and runs it for long. Development only, as [`airlane_testkit`] is.
//!
//! * [`bench_live`]: Airlane beside other tunnels, on a clean and on an impaired link.
//! * [`confusion`]: which service each kind of traffic gets.
//! * [`kernel`]: the kernel's TCP beside ours.
//! * [`mesh`]: a saturated grid of radio stations, for ns-2, [`ns3`] and ours.
//! * [`ns2`]: bulk transfers in ns-2 beside ours.
//! * [`packetdrill`]: scripts of others against our TCP.
//! * [`relay`]: relays of split connections beside each other.
//! * [`send`]: files by `airlane send`, live.
//! * [`soak`]: a link for a long time under everything that happens to links.

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

use std::process::ExitCode;

/// How a program of these ends: 0 if all that it asks for holds, 1 if not, 2 if it could not be measured.
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
