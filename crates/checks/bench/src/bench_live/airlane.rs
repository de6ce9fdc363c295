//! The program under test at both ends, configured by files such as users write.

use std::process::{Command, Stdio};

use airlane_testkit::live::{self, LiveError};
use airlane_testkit::program::Program;

use super::site::{NAMES, ToolSite, problem};
use super::tool::Tool;

/// Starts a tool's build of Airlane at both ends with the site's files, and waits until they have a session.
pub(super) fn start(site: &ToolSite<'_>, tool: Tool) -> Result<(Vec<Program>, String), LiveError> {
    let build = site.programs.build(tool);
    let security = match tool {
        Tool::AirlaneNone => [(), ()].map(|()| "\"none\"".to_owned()),
        _ => keys(site)?,
    };
    let socket = |end: usize| site.directory.join(format!("{}.sock", NAMES[end]));
    let mut programs = Vec::new();
    for (end, security) in security.iter().enumerate() {
        let mut command = site.hosts[end].command(build);
        command.arg("up").arg(site.ends[end]);
        let socket = live::toml_string(&socket(end));
        command.args(["--set", &format!("control.socket={socket}")]);
        command.args(["--set", &format!("tun.name=\"{INTERFACE}\"")]);
        command.args(["--set", &format!("link.security={security}")]);
        if let Some(rate) = site.rate {
            command.args(["--set", &format!("link.rate=\"{rate}\"")]);
        }
        programs.push(Program::start(command, site.directory, NAMES[end])?);
    }
    for (end, program) in programs.iter_mut().enumerate() {
        program.wait_until(|| {
            live::status(build, &socket(end))
                .is_ok_and(|status| status["peers"][0]["session"]["state"] == "confirmed")
        })?;
    }
    Ok((programs, INTERFACE.to_owned()))
}

const INTERFACE: &str = "air0";

/// The keys of both ends, as lines for each file.
fn keys(site: &ToolSite<'_>) -> Result<[String; 2], LiveError> {
    let [left, right] = [keygen(site, 0)?, keygen(site, 1)?];
    Ok([(0, right), (1, left)].map(|(end, peer)| {
        let own = live::toml_string(&key_file(site, end));
        format!("{{ private-key = {own}, peer-key = \"{peer}\" }}")
    }))
}

/// Path of an end's private key.
pub(super) fn key_file(site: &ToolSite<'_>, end: usize) -> std::path::PathBuf {
    site.directory.join(format!("{}.key", NAMES[end]))
}

/// Makes the private key of an end, unless it exists; returns the public key.
pub(super) fn keygen(site: &ToolSite<'_>, end: usize) -> Result<String, LiveError> {
    let file = key_file(site, end);
    let mut command = Command::new(&site.programs.airlane);
    command.arg("keygen").arg(&file);
    if file.exists() {
        command.arg("--public");
    }
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|e| problem("airlane keygen", e.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(problem("airlane keygen", said));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
