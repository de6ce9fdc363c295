//! `airlane send` live: a file over a clean veth, and over a lossy emulated link: alone, with a call at the same
//! time, and with a sender that is killed on the way.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use airlane_probe::{ClientConfig, Times};
use airlane_testkit::live::{EmulatedLink, GRACE, LiveError, WIRE_SERVER};
use airlane_testkit::netns::Namespace;
use airlane_testkit::program::Program;
use serde::Serialize;
use serde_json::Value;

/// Timeout that only ends a hang.
const PATIENCE: Duration = Duration::from_secs(300);
/// Rate of the emulated link, as in `demo/air.toml`.
const AIR_BPS: f64 = 20e6;
/// How long a call is measured, and how long a file takes at the full rate of the link.
const CALL: Duration = Duration::from_secs(20);
const WARMUP: Duration = Duration::from_secs(2);
/// How much earlier than the call a file starts, so that its session and rate are established.
const HEAD_START: Duration = Duration::from_secs(3);

/// The conditions of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Over a veth, alone.
    Clean,
    /// Over the emulated link, alone.
    Lossy,
    /// Over the emulated link, with a call at the same time.
    BesideCall,
    /// Over the emulated link, with a sender that is killed half-way and restarted.
    Killed,
}

/// A transfer.
#[derive(Clone, Debug, Serialize)]
pub struct SendRow {
    /// Its conditions.
    pub way: Way,
    /// Bytes received, as many as were sent.
    pub bytes: u64,
    /// According to the sender's report.
    pub goodput_bps: f64,
    /// Bytes that an earlier receiver had already stored.
    pub resumed_bytes: u64,
    /// The call, if there was one: its loss ratio, and the 99th percentile of its delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<(f64, f64)>,
}

/// The settings: the program, the emulated link's file, and the length of the file over the veth in bytes.
#[derive(Clone, Debug)]
pub struct SendBench {
    /// The program.
    pub airlane: PathBuf,
    /// The emulator's file.
    pub air: PathBuf,
    /// Bytes to send over the veth.
    pub bytes: u64,
}

/// Two hosts that reach each other at 192.0.2.1 and 192.0.2.2, and the folder for files and output.
struct Pair<'a> {
    bench: &'a SendBench,
    hosts: [&'a Namespace; 2],
    folder: &'a Path,
}

impl SendBench {
    /// One file over a veth.
    ///
    /// # Errors
    /// If a program fails, or the received file differs from the sent one.
    pub fn clean(&self) -> Result<SendRow, LiveError> {
        let hosts = [Namespace::new("send")?, Namespace::new("recv")?];
        hosts[0].join("wire", &hosts[1], "wire")?;
        for (host, last) in hosts.iter().zip(["1", "2"]) {
            let address = format!("192.0.2.{last}/24");
            host.ip(&["address", "add", &address, "dev", "wire"])?;
        }
        let folder = folder()?;
        let pair = Pair {
            bench: self,
            hosts: hosts.each_ref(),
            folder: folder.path(),
        };
        pair.carry(Way::Clean, self.bytes)
    }

    /// Three files over the emulated link: alone, with a call, killed half-way.
    ///
    /// # Errors
    /// As [`clean`](Self::clean).
    pub fn lossy(&self) -> Result<Vec<SendRow>, LiveError> {
        let seconds = (HEAD_START + WARMUP + CALL + GRACE).as_secs_f64();
        let bytes = (AIR_BPS / 8.0 * seconds) as u64;
        let mut link = EmulatedLink::new(&self.airlane, &self.air, 1)?;
        let hosts = link.shared_hosts();
        let folder = folder()?;
        let pair = Pair {
            bench: self,
            hosts: hosts.each_ref().map(|host| &**host),
            folder: folder.path(),
        };
        let alone = pair.carry(Way::Lossy, bytes)?;
        let killed = pair.carry(Way::Killed, bytes)?;
        let config = ClientConfig {
            times: Times {
                warmup: WARMUP,
                measure: CALL,
                grace: GRACE,
            },
            file: false,
            pages: false,
            ..ClientConfig::new(WIRE_SERVER)
        };
        let (mut beside, call) = std::thread::scope(|scope| {
            let carried = scope.spawn(|| pair.carry(Way::BesideCall, bytes));
            std::thread::sleep(HEAD_START);
            let call = link.traffic(&config)?;
            let carried = carried.join();
            let carried = carried.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok::<_, LiveError>((carried, call))
        })?;
        // The server is on the sender's side, so that its voice shares the queue with the file.
        beside.call = call
            .voice_down
            .map(|voice| (voice.loss, voice.delay_p99_ns as f64 / 1e9));
        Ok(vec![alone, beside, killed])
    }
}

fn folder() -> Result<tempfile::TempDir, LiveError> {
    tempfile::tempdir().map_err(failed(&std::env::temp_dir()))
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> LiveError + use<> {
    let path = path.to_owned();
    |source| LiveError::File { path, source }
}

/// Incompressible bytes.
fn content(bytes: u64) -> Vec<u8> {
    let words = (0..bytes.div_ceil(8)).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ i << 17);
    let mut content: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    content.truncate(bytes as usize);
    content
}

impl Pair<'_> {
    /// Sends a file from the first host to the second.
    fn carry(&self, way: Way, bytes: u64) -> Result<SendRow, LiveError> {
        let [file, to, key] = ["file", "to", "key"].map(|name| self.folder.join(name));
        let sent = content(bytes);
        fs::write(&file, &sent).map_err(failed(&file))?;
        let _ = fs::remove_dir_all(&to);
        fs::create_dir(&to).map_err(failed(&to))?;
        if !key.exists() {
            let mut command = Command::new(&self.bench.airlane);
            command.args(["keygen", "--preshared"]).arg(&key);
            Program::start(command, self.folder, "keygen")?.run(PATIENCE)?;
        }
        let start = |host: usize, name: &str, path: &Path, more: &[&str]| {
            let mut command = self.hosts[host].command(&self.bench.airlane);
            command.arg(name).arg(path).args(more).arg("--json");
            command.arg("--ticket-file").arg(&key);
            Program::start(command, self.folder, name)
        };
        let mut receiver = start(1, "recv", &to, &[])?;
        let mut sender = start(0, "send", &file, &["192.0.2.2"])?;
        if way == Way::Killed {
            std::thread::sleep(Duration::from_secs_f64(bytes as f64 * 4.0 / AIR_BPS));
            sender.kill();
            sender = start(0, "send", &file, &["192.0.2.2"])?;
        }
        // A receiver waits forever for a sender that has failed, so the sender's result is read first.
        let (said, heard) = (sender.run(PATIENCE)?, receiver.run(PATIENCE)?);
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        let came = to.join("file");
        if fs::read(&came).map_err(failed(&came))? != sent {
            return Err(receiver.failed("has something else than was sent"));
        }
        let (Some(mbps), Some(resumed_bytes)) = (
            read(&said)["goodput_mbps"].as_f64(),
            read(&heard)["resumed_bytes"].as_u64(),
        ) else {
            return Err(sender.failed(format!("does not say how fast it was: {said} {heard}")));
        };
        Ok(SendRow {
            way,
            bytes,
            goodput_bps: mbps * 1e6,
            resumed_bytes,
            call: None,
        })
    }
}
