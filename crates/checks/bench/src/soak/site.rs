//! The link under test, and the operations on it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::plan::SoakPlan;
use super::schedule::SoakEvent;
use crate::bench_live::channel::LossChannel;
use airlane_testkit::live::{EmulatedLink, LiveError};

/// The link with its programs' files.
pub(super) struct SoakSite {
    pub(super) link: EmulatedLink,
    airlane: PathBuf,
    seed: u64,
    /// The ends' files as given.
    given: [toml::Table; 2],
    folder: PathBuf,
    channel: LossChannel,
    /// Number of keys and emulators made so far.
    made: u64,
}

/// How long the right end keeps another address, and an end lacks a route.
const AWAY: Duration = Duration::from_secs(3);
/// How long an end may take to reload its file.
const PATIENCE: Duration = Duration::from_secs(10);

impl SoakSite {
    /// Builds a link without losses, and starts both ends.
    pub(super) fn new(plan: &SoakPlan) -> Result<Self, LiveError> {
        let given = [read(&plan.ends[0])?, read(&plan.ends[1])?];
        let channel = LossChannel::Uniform0;
        let first = tempfile::NamedTempFile::new().map_err(|e| file_error(Path::new("air"), e))?;
        write(first.path(), &channel.air())?;
        let mut link = EmulatedLink::new(&plan.airlane, first.path(), plan.seed)?;
        let [_, right] = link.hosts();
        // Otherwise the second address in a network disappears with the first.
        right.sysctl("net/ipv4/conf/all/promote_secondaries", "1")?;
        let folder = link.keep_files().to_owned();
        let mut site = Self {
            link,
            airlane: plan.airlane.clone(),
            seed: plan.seed,
            given,
            folder,
            channel,
            made: 0,
        };
        site.make_files()?;
        let files = [site.end_file(0), site.end_file(1)];
        site.link.up([&files[0], &files[1]])?;
        Ok(site)
    }

    /// The folder of the files.
    pub(super) fn files(&self) -> &Path {
        &self.folder
    }

    fn end_file(&self, end: usize) -> PathBuf {
        self.folder.join(["left.toml", "right.toml"][end])
    }

    /// Makes new keys, and both ends' files with them.
    fn make_files(&mut self) -> Result<(), LiveError> {
        self.made += 1;
        let keys = [0, 1].map(|end| self.folder.join(format!("{end}-{}.key", self.made)));
        let public = [self.keygen(&keys[0])?, self.keygen(&keys[1])?];
        for end in [0, 1] {
            let mut file = self.given[end].clone();
            let link = file.get_mut("link").and_then(toml::Value::as_table_mut);
            let link = link.ok_or_else(|| wrong(&self.end_file(end), "there is no [link]"))?;
            let mut security = toml::Table::new();
            security.insert(
                "private-key".to_owned(),
                keys[end].display().to_string().into(),
            );
            security.insert("peer-key".to_owned(), public[1 - end].clone().into());
            link.insert("security".to_owned(), security.into());
            // An end that moves must listen on all addresses.
            if let Some(underlay) = link.get_mut("underlay").and_then(toml::Value::as_table_mut) {
                underlay.insert("listen".to_owned(), "0.0.0.0:7007".into());
            }
            let path = self.end_file(end);
            let text = toml::to_string(&file).map_err(|error| wrong(&path, &error.to_string()))?;
            write(&path, &text)?;
        }
        Ok(())
    }

    fn keygen(&self, path: &Path) -> Result<String, LiveError> {
        let mut command = Command::new(&self.airlane);
        command.arg("keygen").arg(path).stdin(Stdio::null());
        let output = command.output().map_err(|error| file_error(path, error))?;
        if !output.status.success() {
            return Err(wrong(path, &String::from_utf8_lossy(&output.stderr)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    pub(super) fn start(&mut self, end: usize) -> Result<(), LiveError> {
        let file = self.end_file(end);
        self.link.start_end(end, &file)
    }

    /// From now on its log cannot be written.
    pub(super) fn start_with_full_log(&mut self, end: usize) -> Result<(), LiveError> {
        let file = self.end_file(end);
        self.link
            .start_end_logging(end, &file, Path::new("/dev/full"))
    }

    /// The end must keep running, and retry until its peer is reachable.
    pub(super) fn start_without_route(&mut self, end: usize) -> Result<(), LiveError> {
        let peer = format!("192.0.2.{}/32", 2 - end);
        let route = |link: &EmulatedLink, verb: &str| {
            let host = link.hosts()[end];
            host.ip(&["route", verb, "unreachable", &peer])
        };
        route(&self.link, "add")?;
        let file = self.end_file(end);
        self.link.start_end(end, &file)?;
        std::thread::sleep(AWAY);
        let stayed = self.link.check();
        route(&self.link, "del")?;
        stayed
    }

    pub(super) fn set_loss(&mut self, channel: LossChannel) -> Result<(), LiveError> {
        self.channel = channel;
        self.change_air(&channel.air())
    }

    /// Blocks the link.
    pub(super) fn silence(&mut self) -> Result<(), LiveError> {
        self.change_air(&SoakEvent::silence())
    }

    /// Restores the loss before the outage.
    pub(super) fn end_silence(&mut self) -> Result<(), LiveError> {
        self.set_loss(self.channel)
    }

    fn change_air(&mut self, text: &str) -> Result<(), LiveError> {
        self.made += 1;
        let path = self.folder.join("air.toml");
        write(&path, text)?;
        self.link.change_air(&path, self.seed + self.made)
    }

    /// Gives both ends new keys.
    pub(super) fn new_keys(&mut self) -> Result<(), LiveError> {
        self.make_files()?;
        [0, 1]
            .iter()
            .try_for_each(|&end| self.link.reload(end, &self.end_file(end)))
    }

    /// Gives both ends new keys, which each reads on SIGHUP.
    pub(super) fn hang_up(&mut self) -> Result<(), LiveError> {
        let key = |status: serde_json::Value| status["peers"][0]["key"].clone();
        let before = [key(self.link.status(0)?), key(self.link.status(1)?)];
        self.make_files()?;
        for (end, before) in before.iter().enumerate() {
            self.link.hang_up(end)?;
            let deadline = Instant::now() + PATIENCE;
            while key(self.link.status(end)?) == *before {
                if Instant::now() > deadline {
                    let file = self.end_file(end);
                    return Err(wrong(&file, "was not read again after SIGHUP"));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        Ok(())
    }

    /// The right end takes several other addresses in turn, and comes back: the last handovers follow faster than
    /// calls to the peer are repeated.
    pub(super) fn move_right(&mut self) -> Result<(), LiveError> {
        let address = |last: u8| format!("192.0.2.{last}/24");
        let steps = [
            (12, AWAY),
            (2, AWAY),
            (13, AWAY / 6),
            (14, AWAY / 6),
            (2, AWAY),
        ];
        let mut from = 2;
        for (to, stays) in steps {
            let [_, right] = self.link.hosts();
            // The old address stays until the new one exists, as in any handover.
            right.ip(&["address", "add", &address(to), "dev", "wire"])?;
            right.ip(&["address", "del", &address(from), "dev", "wire"])?;
            from = to;
            std::thread::sleep(stays);
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<toml::Table, LiveError> {
    let text = std::fs::read_to_string(path).map_err(|error| file_error(path, error))?;
    text.parse()
        .map_err(|error: toml::de::Error| wrong(path, &error.to_string()))
}

fn write(path: &Path, text: &str) -> Result<(), LiveError> {
    std::fs::write(path, text).map_err(|error| file_error(path, error))
}

fn file_error(path: &Path, source: std::io::Error) -> LiveError {
    let path = path.to_owned();
    LiveError::File { path, source }
}

fn wrong(path: &Path, what: &str) -> LiveError {
    file_error(path, std::io::Error::other(what.trim().to_owned()))
}
