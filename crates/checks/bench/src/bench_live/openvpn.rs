//! OpenVPN at both ends: UDP, AES-256-GCM, freshly made certificates that are pinned by fingerprint, without its
//! kernel module.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use airlane_testkit::live::LiveError;
use airlane_testkit::program::Program;

use super::site::{NAMES, ToolSite, problem};

const INTERFACE: &str = "ovpn0";

/// Starts both ends and waits until they have authenticated each other.
pub(super) fn start(site: &ToolSite<'_>) -> Result<(Vec<Program>, String), LiveError> {
    let fingerprints = [certificate(site, 0)?, certificate(site, 1)?];
    let mut programs = Vec::new();
    for end in 0..2 {
        let mut command = site.hosts[end].command("openvpn");
        command.args(["--dev", INTERFACE, "--dev-type", "tun", "--mode", "p2p"]);
        command.args(["--proto", "udp4", "--port", "1194"]);
        let address = |of: usize| format!("192.0.2.{}", of + 1);
        let within = |of: usize| format!("10.7.0.{}", of + 1);
        command.args(["--local", &address(end), "--remote", &address(1 - end)]);
        command.args(["--ifconfig", &within(end), &within(1 - end)]);
        command.args([["--tls-server", "--tls-client"][end], "--dh", "none"]);
        let [certificate, key] = files(site, end);
        command.arg("--cert").arg(certificate).arg("--key").arg(key);
        command.args(["--peer-fingerprint", &fingerprints[1 - end]]);
        command.args(["--data-ciphers", "AES-256-GCM", "--disable-dco"]);
        programs.push(Program::start(command, site.directory, NAMES[end])?);
    }
    Ok((programs, INTERFACE.to_owned()))
}

fn files(site: &ToolSite<'_>, end: usize) -> [PathBuf; 2] {
    ["crt", "pem"].map(|kind| {
        site.directory
            .join(format!("openvpn-{}.{kind}", NAMES[end]))
    })
}

/// Makes key and certificate of an end, unless they exist; returns the certificate's fingerprint.
fn certificate(site: &ToolSite<'_>, end: usize) -> Result<String, LiveError> {
    let [certificate, key] = files(site, end);
    if !certificate.exists() {
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec"]);
        command.args(["-pkeyopt", "ec_paramgen_curve:prime256v1"]);
        command.args(["-subj", &format!("/CN={}", NAMES[end])]);
        command
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate);
        openssl(command)?;
    }
    let mut command = Command::new("openssl");
    command.args(["x509", "-noout", "-fingerprint", "-sha256", "-in"]);
    let said = openssl(command.arg(&certificate))?;
    let fingerprint = said.trim().split_once('=').map(|(_, print)| print);
    let fingerprint = fingerprint.ok_or_else(|| problem("openssl x509", "gave no fingerprint"))?;
    Ok(fingerprint.to_owned())
}

fn openssl(mut command: impl std::borrow::BorrowMut<Command>) -> Result<String, LiveError> {
    let output = command.borrow_mut().stdin(Stdio::null()).output();
    let output = output.map_err(|e| problem("openssl", e.to_string()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(problem("openssl", String::from_utf8_lossy(&output.stderr))),
    }
}
