//! Provides the programs: Airlane has been built before, OpenVPN is a package, wireguard-go is built once from the Go
//! module proxy.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use airlane_testkit::live::LiveError;
use airlane_testkit::program::Program;

use super::site::Programs;
use super::tool::Tool;

const WIREGUARD_GO: &str = "golang.zx2c4.com/wireguard";
const WIREGUARD_GO_VERSION: &str = "v0.0.0-20260522210424-ecfc5a8d5446";
/// How long Go may take to fetch and build it.
const BUILD_PATIENCE: Duration = Duration::from_secs(300);

/// The path of our version of wireguard-go.
pub fn wireguard_go(kept: &Path) -> PathBuf {
    kept.join(WIREGUARD_GO_VERSION).join("wireguard")
}

/// Makes sure that the tool can be run.
///
/// # Errors
/// The reason to leave the tool out, in one line.
pub fn provide(tool: Tool, programs: &Programs) -> Result<(), String> {
    match tool {
        Tool::Plain | Tool::PlainTunPackets | Tool::PlainTun => Ok(()),
        Tool::Veth => answers("ethtool", "--version", "ethtool"),
        Tool::Airlane | Tool::AirlaneNone | Tool::Other => {
            let build = programs.build(tool);
            match build.is_file() {
                true => Ok(()),
                false => Err(format!(
                    "{} does not exist; build it with: cargo build --release -p airlane-cli",
                    build.display()
                )),
            }
        }
        Tool::OpenVpn => {
            answers("openvpn", "--version", "openvpn")?;
            answers("openssl", "version", "openssl")
        }
        Tool::WireguardGo => {
            // Its keys are made by `airlane keygen`.
            provide(Tool::Airlane, programs)?;
            match programs.wireguard_go.exists() {
                true => Ok(()),
                false => build_wireguard_go(&programs.wireguard_go),
            }
        }
    }
}

fn answers(program: &str, question: &str, package: &str) -> Result<(), String> {
    let mut command = Command::new(program);
    match command.arg(question).stdin(Stdio::null()).output() {
        Ok(_) => Ok(()),
        Err(e) => Err(format!(
            "{program}: {e}; install it with: apt-get install {package}"
        )),
    }
}

fn build_wireguard_go(program: &Path) -> Result<(), String> {
    answers("go", "version", "golang")?;
    let build = || -> Result<(), LiveError> {
        let directory = program.parent().unwrap_or(Path::new("."));
        let made = std::fs::create_dir_all(directory).and_then(|()| directory.canonicalize());
        let directory = made.map_err(|source| LiveError::File {
            path: directory.to_owned(),
            source,
        })?;
        let mut command = Command::new("go");
        command.env("GOBIN", &directory);
        command.args(["install", &format!("{WIREGUARD_GO}@{WIREGUARD_GO_VERSION}")]);
        let mut program = Program::start(command, &directory, "go-install")?;
        program.run(BUILD_PATIENCE).map(drop)
    };
    build().map_err(|error| error.to_string().trim().replace('\n', "; "))
}
