//! Arguments of `setup`.

use std::path::PathBuf;

use airlane_base::Rate;
use clap::{Args, ValueHint};

/// Arguments of `setup`.
#[derive(Debug, Args)]
pub struct SetupArgs {
    /// Address or host name at which the other end reaches this one, or "none": this end then calls
    #[arg(long, value_name = "ADDRESS")]
    pub here: Option<String>,
    /// Address or host name at which this end reaches the other, or "none": the other then calls
    #[arg(long, value_name = "ADDRESS")]
    pub there: Option<String>,
    /// Make this end a base, and files for a station of this name; once for each station. Stations call the base
    #[arg(long, value_name = "NAME", conflicts_with = "there")]
    pub station: Vec<String>,
    /// Network inside, of which the ends have the first addresses, such as 10.7.0.0/24
    #[arg(long, value_name = "NETWORK")]
    pub network: Option<String>,
    /// UDP port of all ends, such as 7007
    #[arg(long, value_name = "PORT")]
    pub port: Option<String>,
    /// Name of all interfaces, with which the names of the ends begin
    #[arg(long, value_name = "NAME", default_value = "air0")]
    pub name: String,
    /// Folder for the files, which is made if there is none
    #[arg(long, value_name = "FOLDER", default_value = ".", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// Rate of the link below; left out, it is found out
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// Give the ends a pre-shared key beside their own
    #[arg(long)]
    pub preshared: bool,
    /// Replace files that are there
    #[arg(long)]
    pub force: bool,
    /// Print JSON, and ask nothing
    #[arg(long)]
    pub json: bool,
}

pub(super) const SETUP_EXAMPLES: &str = "\
Examples:
  airlane setup
  airlane setup --here none --there gate.example.org --network 10.7.0.0/24 --port 7007
  airlane setup --here 192.0.2.1 --station farm --station mill --network 10.7.0.0/24 --port 7007
  airlane setup --here 192.0.2.1 --there 192.0.2.2 --network fd07::/64 --port 7007 --preshared --json

Exit codes: 0 the files are written, 1 the system refused, 2 an answer is wrong, or files are there.";
