//! Traffic for tests only, in addition to that of [`airlane_probe`].
//!
//! For the speed of a clean link: [`bulk_send`] and [`bulk_receive`], one TCP connection with unchecked content, and
//! [`echo()`]. For a node exposed to unknown senders: [`flood()`].
//!
//! Every socket operation has a timeout and every loop a deadline.

mod bulk;
mod echo;
mod flood;

use std::time::Duration;

pub use bulk::{BULK_PORT, bulk_receive, bulk_send};
pub use echo::{EchoTally, echo};
pub use flood::flood;

/// How long a blocking call may take before a loop checks its deadline again.
const GLANCE: Duration = Duration::from_millis(100);
