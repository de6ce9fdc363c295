//! Traffic for tests alone, beside that of [`airlane_probe`], which users have, too.
//!
//! For how fast a clean link is: [`bulk_send`] and [`bulk_receive`], one TCP connection that nobody looks
//! into, and [`echo()`]. For a node that strangers reach: [`flood()`].
//!
//! Every socket operation has a timeout and every loop a deadline.

mod bulk;
mod echo;
mod flood;

use std::time::Duration;

pub use bulk::{BULK_PORT, bulk_receive, bulk_send};
pub use echo::{EchoTally, echo};
pub use flood::flood;

/// How long a blocking call may take before a loop looks at its deadline again.
const GLANCE: Duration = Duration::from_millis(100);
