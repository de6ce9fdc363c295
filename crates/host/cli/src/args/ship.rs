//! Arguments of `send` and `recv`.

use std::net::SocketAddr;
use std::path::PathBuf;

use airlane_base::{Duration, Rate};
use clap::{Args, ValueHint};

use super::address::address;

/// The ticket, which both ends share.
#[derive(Debug, Args)]
pub struct TicketArgs {
    /// A ticket that `airlane recv` printed; AIRLANE_TICKET may hold it, too
    #[arg(
        long,
        value_name = "TICKET",
        env = "AIRLANE_TICKET",
        hide_env_values = true
    )]
    pub ticket: Option<String>,
    /// A file with a permanent ticket, which both ends have; `airlane keygen --preshared FILE`
    /// makes one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "ticket")]
    pub ticket_file: Option<PathBuf>,
}

/// Arguments of `send`.
#[derive(Debug, Args)]
pub struct SendArgs {
    /// Files, and folders with all that is in them
    #[arg(required = true, value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// Where `airlane recv` runs; its port is 7008 unless another is named
    #[arg(value_name = "HOST[:PORT]", value_hint = ValueHint::Hostname)]
    pub host: String,
    /// The ticket
    #[command(flatten)]
    pub ticket: TicketArgs,
    /// Never send faster than this, whatever the path carries
    #[arg(long, value_name = "RATE", default_value = "10 Gbit/s")]
    pub most: Rate,
    /// Give up after hearing nothing from the other end for this time
    #[arg(long, value_name = "TIME", default_value = "64 s")]
    pub timeout: Duration,
    /// Send at the rate that this link's interface reports, not by what arrives: its name, its
    /// file, or its control socket [default: the running link that leads there, if one does]
    #[arg(long, value_name = "NODE")]
    pub link: Option<String>,
    /// Print what was sent as JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `recv`.
#[derive(Debug, Args)]
pub struct RecvArgs {
    /// The folder for received files
    #[arg(default_value = ".", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// Listen at this address and UDP port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "[::]:7008", value_parser = address)]
    pub listen: SocketAddr,
    /// The ticket
    #[command(flatten)]
    pub ticket: TicketArgs,
    /// Replace files that are there already
    #[arg(long)]
    pub overwrite: bool,
    /// Wait for more files after these, until Ctrl-C
    #[arg(long)]
    pub stay: bool,
    /// Give up after hearing nothing for this time [default: wait for ever]
    #[arg(long, value_name = "TIME", conflicts_with = "stay")]
    pub timeout: Option<Duration>,
    /// Print what was received as JSON, a line for each job; every name carries its unit
    #[arg(long)]
    pub json: bool,
}

pub(super) const SEND_EXAMPLES: &str = "\
Examples:
  airlane send photos.tar station.example --ticket-file pair.key
  airlane send notes/ map.png 192.0.2.7:9000 --ticket-file pair.key
  airlane send image.iso '[2001:db8::7]' --ticket-file pair.key --most '50 Mbit/s' --json

Exit codes: 0 everything has arrived, 1 not all of it: the transfer failed, or something in a folder was skipped, such as
a symbolic link, a socket or what may not be read; 2 the command line is wrong.";

pub(super) const RECV_EXAMPLES: &str = "\
Examples:
  airlane recv
  airlane recv /srv/inbox --ticket-file pair.key --stay
  airlane recv --listen 192.0.2.7:9000 --overwrite --json";
