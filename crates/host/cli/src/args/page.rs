//! Arguments of `lab`.

use clap::Args;

/// Arguments of `lab`.
#[derive(Debug, Args)]
pub struct PageArgs {
    /// The port of 127.0.0.1 on which browsers of this machine find the page; 0 lets the system choose
    #[arg(long, value_name = "PORT", default_value_t = 8470)]
    pub port: u16,
}

pub(super) const LAB_EXAMPLES: &str = "\
Examples:
  airlane lab
  airlane lab --port 0";
