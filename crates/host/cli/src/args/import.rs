//! Arguments of the verbs that convert configurations of other tunnels to live files.

use std::path::PathBuf;

use airlane_base::Rate;
use clap::{Args, Subcommand, ValueHint};

/// The tunnels.
#[derive(Debug, Subcommand)]
pub enum ImportVerb {
    /// Translate a file of `wg` or `wg-quick`
    ///
    /// Addresses, port, peers, their endpoints and allowed IPs become a live file. Its keys are
    /// WireGuard's own, as both use Curve25519: the private one is written to a file next to it,
    /// pre-shared ones next to that. What a link here does differently, or not at all, is named on
    /// standard error and in the first lines.
    #[command(name = "wg", after_help = WG_EXAMPLES)]
    Wireguard(WireguardArgs),
}

/// Arguments of `import wg`.
#[derive(Debug, Args)]
pub struct WireguardArgs {
    /// The file, such as /etc/wireguard/wg0.conf
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Rate of the path below [default: both ends find it]
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// File for the private key, which only its owner may read [default: next to OUTPUT, or FILE's
    /// name with .key]
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
