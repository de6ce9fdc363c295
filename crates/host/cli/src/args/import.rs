//! Arguments of what makes live files of what other tunnels were told.

use std::path::PathBuf;

use airlane_base::Rate;
use clap::{Args, Subcommand, ValueHint};

/// The tunnels.
#[derive(Debug, Subcommand)]
pub enum ImportVerb {
    /// Translate a file of `wg` or `wg-quick`
    ///
    /// Addresses, port, peers, their endpoints and allowed IPs become a live file. Its keys are WireGuard's own, as
    /// both use Curve25519: the private one is written to a file beside, pre-shared ones beside that. What a link here does otherwise, or
    /// not at all, is named on standard error and in the first lines.
    #[command(name = "wg", after_help = WG_EXAMPLES)]
    Wireguard(WireguardArgs),
}

/// Arguments of `import wg`.
#[derive(Debug, Args)]
pub struct WireguardArgs {
    /// The file, such as /etc/wireguard/wg0.conf
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// What the link below can carry [default: what both ends find]
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// Where the private key is written, for its owner alone [default: beside OUTPUT, or FILE's name with .key]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key: Option<PathBuf>,
    /// Write to a file, which is replaced, instead of standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

const WG_EXAMPLES: &str = "\
Examples:
  airlane import wg /etc/wireguard/wg0.conf --output /etc/airlane/wg0.toml
  airlane import wg wg0.conf --rate 20Mbit/s --key /etc/airlane/wg0.key";
