//! `airlane up`, `airlane air`, `airlane reload` and `airlane status`.

use std::fs::Metadata;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airlane_base::UnitError;
use airlane_base::config::{Document, LONGEST_DATA, Problems, read_file};
use airlane_link::config::RateLimit;
use airlane_live::air::{self, AirConfig};
use airlane_live::config::{LiveConfig, default_socket};
use airlane_live::control;
use airlane_live::daemon::{Daemon, NodeError, PeersError, UpError};
use airlane_live::doctor::{OWN_KEY_HELP, look_up, obstacles};
use airlane_live::privileges::{self, Account};
use airlane_live::signals::{SignalRequest, on_signal_requests, stop_on_signals};
use airlane_live::status::Status as NodeStatus;
use anyhow::{Context as _, bail};

use crate::args::{ReloadArgs, RunningArgs, SetRateArgs, StatusArgs, UpArgs};
use crate::fault::BadInput;
use crate::input::{self, FileContent};
use crate::log::{self, Log};
use crate::output::Several;
use crate::{output, status};

/// Runs `airlane up`.
pub(crate) fn up(up: &UpArgs) -> anyhow::Result<()> {
    let mut log = None;
    let ran = run(up, &mut log);
    log::report(up.running.log_format, log, ran)
}

fn run(up: &UpArgs, log: &mut Option<Log>) -> anyhow::Result<()> {
    let running = &up.running;
    let args = &running.daemon;
    let document = input::document(&args.file, &args.set)?;
    let config = input::live(&document, &args.file)?;
    // This must happen before a second thread starts.
    if let Some(user) = &up.user {
        become_user(user, &config)?;
        check_reload(user, &args.file)?;
    }
    *log = Some(log::start(running.log_format)?);
    let stop = stop_on_signals().context("cannot wait for signals")?;
    let (file, set, socket) = (args.file.clone(), args.set.clone(), config.socket());
    on_signal_requests(move |request| match request {
        SignalRequest::Reload => reload_again(&file, &set, &socket),
        SignalRequest::Report => report(&socket),
    })
    .context("cannot wait for signals")?;
    let mut node = Daemon::start(&config).map_err(|error| refuse(&document, &config, error))?;
    if let Some(path) = &up.journal {
        node.keep_journals(path, up.journal_size.as_bytes())?;
    }
    privileges::keep_what_a_node_needs()?;
    let ended = node.run(stop.as_fd());
    // The counters are worth printing however the node ended.
    let last = node.status();
    output::print(&if args.json {
        serde_json::to_string(&last)? + "\n"
    } else {
        status::render(&last, None)
    })?;
    Ok(ended?)
}

/// Switches the process to the user of this name, who can then create the control socket.
fn become_user(name: &str, config: &LiveConfig) -> anyhow::Result<()> {
    let account = Account::named(name).map_err(|error| BadInput(error.to_string()))?;
    if let Some(folder) = config.socket().parent() {
        let made = account.make_folder(folder);
        made.with_context(|| format!("cannot make {}", folder.display()))?;
    }
    Ok(account.assume()?)
}

/// Refuses at the start a file that the user may not read, rather than at the first reload.
fn check_reload(user: &str, file: &Path) -> anyhow::Result<()> {
    if file == Path::new("-") {
        return Ok(());
    }
    std::fs::File::open(file).map(drop).with_context(|| {
        let shown = file.display();
        BadInput(format!(
            "{user} cannot read {shown}, and a reload would fail: `chgrp {user} {shown}` and `chmod g+r` let it"
        ))
    })
}

/// Handles SIGHUP: the node at `socket` reloads the current contents of its file. The node itself
/// logs what has changed.
fn reload_again(file: &Path, set: &[String], socket: &Path) {
    let read =
        || -> anyhow::Result<LiveConfig> { Ok(input::live(&input::document(file, set)?, file)?) };
    let done = read().and_then(|config| Ok(control::reload(socket, &config, false)?));
    match done {
        Ok(changes) if changes.is_empty() => tracing::info!("reloaded: nothing has changed"),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "not reloaded: everything stays as it was"),
    }
}

/// Handles SIGUSR1: logs a line for each peer.
fn report(socket: &Path) {
    match control::status(socket) {
        Err(error) => tracing::warn!(%error, "cannot read status"),
        Ok(status) => {
            for peer in status.peers {
                tracing::info!(
                    peer = peer.name,
                    session = peer.session.state,
                    sessions = peer.session.sessions,
                    sent_bytes = peer.sent_bytes,
                    received_bytes = peer.received_bytes,
                    "status"
                );
            }
        }
    }
}

/// The error of a node that did not start. If the file is at fault in a way that shows only at the
/// start, the error names its line.
fn refuse(document: &Document, config: &LiveConfig, error: UpError) -> anyhow::Error {
    let mut problems = Problems::new();
    let peers = match document.has("peers") {
        true => "peers",
        false => "link.underlay.peer",
    };
    match error {
        UpError::Node(NodeError::Config { problems: found }) => {
            problems.within("link", |problems| {
                for problem in found {
                    problems.add(&problem.path, problem.problem, problem.help);
                }
            })
        }
        UpError::Node(NodeError::PathTooNarrow { .. }) => {
            let fixed = document.has("tun.mtu");
            let at = if fixed { "tun.mtu" } else { peers };
            problems.add(at, error.to_string(), "");
        }
        UpError::Node(NodeError::Peer(PeersError::Own(own))) => {
            let listed = config.peers.iter().position(|peer| peer.key == Some(own));
            let at = listed.map_or("link.security.peer-key".to_owned(), |i| {
                format!("peers[{i}].key")
            });
            problems.add(&at, error.to_string(), OWN_KEY_HELP);
        }
        UpError::Loop { .. } => problems.add(peers, error.to_string(), ""),
        error => return with_others(config, error.into()),
    }
    document.locate(problems).into()
}

/// The error of a failed start, with all other obstacles, so that they can all be mended at once.
fn with_others(config: &LiveConfig, error: anyhow::Error) -> anyhow::Error {
    let first = error.to_string();
    // A running node would report itself as an obstacle.
    if control::status(&config.socket()).is_ok() {
        return error;
    }
    let others = obstacles(config).into_iter();
    let others = others.filter(|check| !first.contains(&check.found));
    let others: Vec<String> = others
        .map(|check| match check.help {
            Some(help) => format!("{}; {help}", check.found),
            None => check.found,
        })
        .collect();
    match others.is_empty() {
        true => error,
        false => Several([vec![first], others].concat()).into(),
    }
}

/// Runs `airlane air`.
pub(crate) fn air(running: &RunningArgs) -> anyhow::Result<()> {
    let mut log = None;
    let ran = emulate(running, &mut log);
    log::report(running.log_format, log, ran)
}

fn emulate(running: &RunningArgs, log: &mut Option<Log>) -> anyhow::Result<()> {
    let args = &running.daemon;
    let document = input::document(&args.file, &args.set)?;
    FileContent::Air.expect(&document)?;
    let mut config: AirConfig = document.read()?;
    let folder = args.file.parent().unwrap_or(Path::new(""));
    let read =
        |file: &str| read_file(&folder.join(file), LONGEST_DATA).map_err(|error| error.to_string());
    let loaded = config.load_traces(read);
    loaded.map_err(|error| BadInput(error.to_string()))?;
    *log = Some(log::start(running.log_format)?);
    let stop = stop_on_signals().context("cannot wait for signals")?;
    on_signal_requests(|_| {
        tracing::warn!("an emulator cannot be reloaded: end it and start it again")
    })
    .context("cannot wait for signals")?;
    let report = air::run(&config, stop.as_fd())?;
    output::print(&if args.json {
        serde_json::to_string(&report)? + "\n"
    } else {
        report.to_string()
    })?;
    match report.lost_interface {
        Some(interface) => bail!("the interface {interface} is gone"),
        None => Ok(()),
    }
}

/// Runs `airlane reload`.
pub(crate) fn reload(args: &ReloadArgs) -> anyhow::Result<()> {
    let ReloadArgs { daemon, dry_run } = args;
    let file = &daemon.file;
    if !file.exists() && file.extension().is_none() && file != Path::new("-") {
        let wrong = format!(
            "\"{}\" is no file: a reload reads the file of the link, so write that and not its name",
            file.display()
        );
        return Err(BadInput(wrong).into());
    }
    let document = input::document(&daemon.file, &daemon.set)?;
    let config = input::live(&document, &daemon.file)?;
    let changes = control::reload(&config.socket(), &config, *dry_run)?;
    if *dry_run && !daemon.json {
        let what = match changes.is_empty() {
            true => "nothing would change\n",
            false => "a reload would do this:\n",
        };
        let lines: String = changes.iter().map(|line| format!("  {line}\n")).collect();
        output::print(&(what.to_owned() + &lines))?;
    } else {
        print_changes(&changes, daemon.json)?;
    }
    // A name that has not changed was looked up before.
    for peer in config.peers() {
        let host = peer.host().map(ToString::to_string);
        let is_new = host.is_some_and(|host| changes.iter().any(|change| change.contains(&host)));
        if is_new && let Some(Err(why)) = look_up(&config.link.underlay, &peer) {
            output::warn(&format!("{why}; the link keeps looking it up"));
        }
    }
    Ok(())
}

/// Runs `airlane set`.
pub(crate) fn set(args: &SetRateArgs) -> anyhow::Result<()> {
    let wrong = |why: String| BadInput(format!("\"{}\": {why}", args.value));
    let value = args.value.strip_prefix("rate=").ok_or_else(|| {
        let only = "only the rate of a link can be set: `airlane set rate=20Mbit/s`";
        wrong(format!("{only}, or `airlane set rate=20Mbit/s NODE`"))
    })?;
    let rate = match value {
        "auto" => RateLimit::UNSTATED,
        rate => rate
            .parse()
            .map_err(|error: UnitError| wrong(error.to_string()))?,
    };
    let changes = control::change_rate(&socket(args.link.node.named())?, rate)?;
    print_changes(&changes, args.link.json)
}

/// Prints the changes that a running link reported.
pub(crate) fn print_changes(changes: &[String], json: bool) -> anyhow::Result<()> {
    if json {
        return output::print(&(serde_json::json!({ "changes": changes }).to_string() + "\n"));
    }
    if changes.is_empty() {
        return output::print("nothing has changed\n");
    }
    output::print(&(changes.join("\n") + "\n"))
}

/// Runs `airlane status`.
pub(crate) fn status(args: &StatusArgs) -> anyhow::Result<()> {
    let socket = socket(args.node.named())?;
    let mut before: Option<NodeStatus> = None;
    loop {
        let now = control::status(&socket)?;
        let text = if args.json {
            serde_json::to_string(&now)? + "\n"
        } else {
            status::render(&now, before.as_ref())
        };
        let is_read = if args.watch && !args.json && io::stdout().is_terminal() {
            // Moving the cursor home and clearing only what follows avoids flicker.
            output::print_while_read(&format!("\x1b[H\x1b[J{text}"))?
        } else {
            output::print_while_read(&text)?
        };
        if !args.watch || !is_read {
            return Ok(());
        }
        before = Some(now);
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Whether this means a path, seen from `directory`, and not the name of a link. A file or a directory that is
/// called like the link is not meant.
fn is_path(link: &str, directory: &Path) -> bool {
    let is_socket = |found: Metadata| found.file_type().is_socket();
    link.contains('/') || directory.join(link).metadata().is_ok_and(is_socket)
}

/// The file of a link, if this means one. A file that is called like the link and not like a file is not meant.
pub(crate) fn file(link: &str) -> Option<&Path> {
    let path = Path::new(link);
    let is_meant = link.contains('/') || path.extension().is_some_and(|end| end == "toml");
    (is_meant && path.is_file()).then_some(path)
}

/// The control socket that the user means.
pub(crate) fn socket(link: Option<&str>) -> anyhow::Result<PathBuf> {
    if let Some(link) = link {
        if let Some(file) = file(link) {
            return Ok(input::live(&input::document(file, &[])?, file)?.socket());
        }
        return Ok(if is_path(link, Path::new("")) {
            link.into()
        } else {
            default_socket(link)
        });
    }
    let running = match control::sockets() {
        Ok(running) => running,
        Err(error) => {
            let folder = directory();
            bail!(
                "cannot list the running links: {} cannot be read: {error}; ask as root, or as a member of the group \
                 that a link's file names, such as control = {{ group = \"airlane\" }}",
                folder.display()
            );
        }
    };
    let names = || {
        running
            .iter()
            .filter_map(|path| path.file_stem()?.to_str())
            .collect::<Vec<_>>()
    };
    match running.as_slice() {
        [only] => Ok(only.clone()),
        [] => bail!(
            "no link is running: {} has no sockets",
            directory().display()
        ),
        _ => Err(BadInput(format!(
            "several links are running; name one of {}",
            names().join(", ")
        ))
        .into()),
    }
}

/// The directory of control sockets, unless files name another.
fn directory() -> PathBuf {
    let any = default_socket("any");
    any.parent().map(Path::to_owned).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_folder_called_like_a_link_does_not_hide_it() {
        let folder = tempfile::tempdir().unwrap();
        let is_path = |link: &str| is_path(link, folder.path());
        std::fs::create_dir(folder.path().join("hill-top")).unwrap();
        std::fs::write(folder.path().join("farm"), "").unwrap();
        let _listener = UnixListener::bind(folder.path().join("mill")).unwrap();
        assert_eq!(["hill-top", "farm", "none"].map(is_path), [false; 3]);
        assert_eq!(["mill", "./farm"].map(is_path), [true; 2]);
    }
}
