//! wireguard-go at both ends, configured through its socket (the cross-platform userspace interface,
//! <https://www.wireguard.com/xplatform/>).

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64ct::{Base64, Encoding};

use airlane_testkit::live::LiveError;
use airlane_testkit::program::Program;

use super::airlane::{key_file, keygen};
use super::site::{NAMES, ToolSite, problem};

const PORT: u16 = 51820;

/// Starts both ends and makes them peers. Airlane's program makes the keys, which have the same form.
pub(super) fn start(site: &ToolSite<'_>) -> Result<(Vec<Program>, String), LiveError> {
    let public = [keygen(site, 0)?, keygen(site, 1)?];
    let mut programs = Vec::new();
    for end in 0..2 {
        // The sockets of both ends and of other benches are in one directory.
        let interface = interface(end);
        let mut command = site.hosts[end].command(&site.programs.wireguard_go);
        command.arg("--foreground").arg(&interface);
        let mut program = Program::start(command, site.directory, NAMES[end])?;
        let socket = PathBuf::from(format!("/var/run/wireguard/{interface}.sock"));
        program.wait_until(|| socket.exists() && site.has(end, &interface))?;
        programs.push(program);
        let file = key_file(site, end);
        let private = std::fs::read_to_string(&file);
        let private = private.map_err(|source| LiveError::File { path: file, source })?;
        let order = format!(
            "set=1\nprivate_key={}\nlisten_port={PORT}\nreplace_peers=true\npublic_key={}\n\
             endpoint=192.0.2.{}:{PORT}\nallowed_ip=0.0.0.0/0\n\n",
            hex(&private)?,
            hex(&public[1 - end])?,
            2 - end,
        );
        configure(&socket, &order)?;
        site.address(end, &interface)?;
    }
    Ok((programs, interface(0)))
}

fn interface(end: usize) -> String {
    format!("wg{}-{end}", std::process::id())
}

fn configure(socket: &Path, order: &str) -> Result<(), LiveError> {
    let ask = || {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(order.as_bytes())?;
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        std::io::Result::Ok(answer)
    };
    let answer = ask().map_err(|source| LiveError::File {
        path: socket.to_owned(),
        source,
    })?;
    match answer.trim() {
        "errno=0" => Ok(()),
        refused => Err(problem(socket.display(), format!("answered {refused:?}"))),
    }
}

/// Converts a base64 key to hex, as the socket expects it.
fn hex(key: &str) -> Result<String, LiveError> {
    let mut bytes = [0; 32];
    match Base64::decode(key.trim(), &mut bytes) {
        Ok(decoded) if decoded.len() == 32 => {}
        _ => return Err(problem("airlane keygen", "made no key of 32 bytes")),
    }
    let mut text = String::with_capacity(64);
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_in_hex() {
        let mut text = [0; 44];
        let key = Base64::encode(&[0x0a; 32], &mut text).unwrap();
        assert_eq!(hex(key).unwrap(), "0a".repeat(32));
        assert!(hex("AAAA").is_err());
        assert!(hex("no key").is_err());
    }
}
