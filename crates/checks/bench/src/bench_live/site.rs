//! The place where a tool runs: two hosts whose `wire` interfaces are connected, and the programs of this machine.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use airlane_testkit::live::LiveError;
use airlane_testkit::netns::Namespace;

use super::tool::Tool;

/// The left host's address on the cable of [`Tool::Veth`].
pub const BARE_SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
/// The interface of that cable.
pub const BARE: &str = "bare";
/// Names of the hosts, for files.
pub(super) const NAMES: [&str; 2] = ["left", "right"];

/// The programs that are run.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `airlane`.
    pub airlane: PathBuf,
    /// Another build of it.
    pub other: Option<PathBuf>,
    /// wireguard-go.
    pub wireguard_go: PathBuf,
    /// This program, which is also the plain forwarder.
    pub own: PathBuf,
}

impl Programs {
    /// The build of Airlane for a tool.
    pub(super) fn build(&self, tool: Tool) -> &Path {
        match (tool, &self.other) {
            (Tool::Other, Some(other)) => other,
            _ => &self.airlane,
        }
    }
}

/// The place where a tool runs.
#[derive(Clone, Copy, Debug)]
pub struct ToolSite<'a> {
    /// Left and right.
    pub hosts: [&'a Namespace; 2],
    /// For sockets, keys and output.
    pub directory: &'a Path,
    /// The programs.
    pub programs: &'a Programs,
    /// Files of Airlane's ends; their security settings are replaced.
    pub ends: [&'a Path; 2],
    /// The rate that they state, instead of that in the files.
    pub rate: Option<&'a str>,
}

impl ToolSite<'_> {
    /// Gives the tunnel's interface its address, 10.7.0.1 or .2, and brings it up.
    pub(super) fn address(&self, end: usize, interface: &str) -> Result<(), LiveError> {
        let address = format!("10.7.0.{}/24", end + 1);
        self.hosts[end].ip(&["address", "add", &address, "dev", interface])?;
        self.hosts[end].ip(&["link", "set", "dev", interface, "up"])?;
        Ok(())
    }

    /// Whether an end has an interface of this name.
    pub(super) fn has(&self, end: usize, interface: &str) -> bool {
        let shown = self.hosts[end].ip(&["link", "show", "dev", interface]);
        shown.is_ok()
    }
}

/// An error of something without an output file of its own.
pub(super) fn problem(what: impl ToString, problem: impl Into<String>) -> LiveError {
    LiveError::Program {
        what: what.to_string(),
        problem: problem.into(),
        said: String::new(),
    }
}
