//! Arguments of `relay`.

use std::net::SocketAddr;

use airlane_base::{Duration, Size};
use clap::{ArgGroup, Args};

use super::address::address;
use super::node::LogFormat;

/// Arguments of `relay`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).args(["to", "transparent"])))]
pub struct RelayArgs {
    /// Take connections at this address and port
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub listen: SocketAddr,
    /// Pass all of them on to this host and port
    #[arg(long, value_name = "HOST:PORT")]
    pub to: Option<String>,
    /// Relay each to its original destination; a TPROXY rule or a route brings connections here.
    /// Needs root, or CAP_NET_ADMIN
    #[arg(long)]
    pub transparent: bool,
    /// Let servers see the address of the client instead of the relay's; their answers have to come this way
    #[arg(long, requires = "transparent")]
    pub keep_source: bool,
    /// Hold at most this much of one direction of one connection, besides the kernel's socket buffers
    #[arg(long, value_name = "SIZE", default_value = "64 kB")]
    pub pool: Size,
    /// Allow this many connections at a time, and reset those in excess
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    pub connections: usize,
    /// Give each socket buffers of this size [default: chosen by the system, at most some MB]
    #[arg(long, value_name = "SIZE")]
    pub socket_buffer: Option<Size>,
    /// Reset a connection whose target does not answer within this time
    #[arg(long, value_name = "TIME", default_value = "30 s")]
    pub connect_timeout: Duration,
    /// Reset a connection that has relayed nothing for this time; if all places are taken, one that
    /// has been idle for a minute makes room
    #[arg(long, value_name = "TIME", default_value = "120 min")]
    pub idle_timeout: Duration,
    /// Also let clients that choose their own target reach this machine, with its services that
    /// trust local callers
    #[arg(long, requires = "transparent")]
    pub local_targets: bool,
    /// Print the counters as JSON at the end; every name carries its unit
    #[arg(long)]
    pub json: bool,
    /// How the log on standard error is written
    ///
    /// The environment variable AIRLANE_LOG chooses its lines: error, warn, info (default), debug, which has each
    /// connection.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,
}

pub(super) const EXAMPLES: &str = "\
Examples:
  airlane relay --listen 0.0.0.0:8080 --to server.example:80
  airlane relay --listen 0.0.0.0:9000 --transparent --keep-source
  airlane relay --listen 127.0.0.1:2222 --to 192.0.2.7:22 --pool '16 kB' --connections 50 --json

docs/operations.md has the rules that bring connections of others here.";
