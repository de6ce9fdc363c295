//! Arguments of `lab`.

use clap::Args;

/// Arguments of `lab`.
#[derive(Debug, Args)]
pub struct PageArgs {
    /// Show a live node as well, and advice for it: its name, its file, or its control socket
    ///
    /// The printed address ends in a token, without which a browser can neither see nor change the node. Changes need a
    /// user whom the control socket allows to make them, and advice can be applied only if its file is given.
    #[cfg(feature = "live")]
    #[arg(value_name = "NODE")]
    pub node: Option<String>,
    /// The port of 127.0.0.1 on which browsers of this machine find the page; 0 lets the system choose
    #[arg(long, value_name = "PORT", default_value_t = 8470)]
    pub port: u16,
}

#[cfg(feature = "live")]
pub(super) const LAB_EXAMPLES: &str = "\
Examples:
  airlane lab
  airlane lab /etc/airlane/hill-top.toml
  airlane lab hill-top --port 0";
#[cfg(not(feature = "live"))]
pub(super) const LAB_EXAMPLES: &str = "\
Examples:
  airlane lab
  airlane lab --port 0";
