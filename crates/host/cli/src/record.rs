//! `airlane record`.

use std::fs::File;
use std::io::{Read as _, Write};
use std::time::{Duration, Instant, SystemTime};

use airlane_channel::trace::{TraceHeader, whole_blocks};
use airlane_live::control::{self, Recording};
use airlane_live::signals::stop_on_signals;
use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::RecordArgs;
use crate::fault::BadInput;
use crate::quantity::{Estimate, Unit};
use crate::{live, output, recording};

/// How long to wait for data from the node before checking the time and Ctrl-C.
const TURN: Duration = Duration::from_millis(100);
/// How long to wait for the node's last data.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs the verb.
pub(crate) fn record(args: &RecordArgs) -> anyhow::Result<()> {
    let socket = live::socket(args.node.named())?;
    let mut stop = stop_on_signals().context("cannot wait for signals")?;
    stop.set_nonblocking(true)
        .context("cannot wait for signals")?;
    recording::may_replace(&args.file)?;
    let recording = control::record(&socket, args.peer.as_deref())?;
    // The file is created only once there is something to write: an old recording is worth more
    // than an empty file.
    let file = File::create(&args.file)
        .with_context(|| BadInput(format!("cannot write {}", args.file.display())))?;
    let mut out = Out::new(file, args.file.display(), args.max_size.as_bytes());
    let stopped = || matches!(stop.read(&mut [0]), Ok(1));
    let ended = follow(recording, &mut out, args.time, stopped)?;
    out.close()?;
    match ended {
        Ended::Full => output::warn(&format!(
            "{} would be longer than {}: the recording ended; --max-size allows more",
            args.file.display(),
            args.max_size
        )),
        Ended::Link => output::warn("the link went down, which ended the recording"),
        Ended::Time | Ended::Stopped => {}
    }
    recording::print(&args.file, args.json)
}

/// Records for `time` and returns the recording as a file would have it.
#[cfg(feature = "lab")]
pub(crate) fn in_memory(
    socket: &std::path::Path,
    peer: Option<&str>,
    time: airlane_base::Duration,
    most: airlane_base::Size,
) -> anyhow::Result<Vec<u8>> {
    let recording = control::record(socket, peer)?;
    let mut out = Out::new(vec![], socket.display(), most.as_bytes());
    match follow(recording, &mut out, Some(time), || false)? {
        Ended::Full => output::warn(&format!(
            "more than {most} were recorded: the rest is not judged"
        )),
        Ended::Link => output::warn("the link went down, which ended the recording"),
        Ended::Time | Ended::Stopped => {}
    }
    Ok(out.to)
}

/// Writes what the node records, a header first, until the time is over or somebody stops it.
fn follow<W: Write>(
    mut recording: Recording,
    out: &mut Out<'_, W>,
    time: Option<airlane_base::Duration>,
    mut stop: impl FnMut() -> bool,
) -> anyhow::Result<Ended> {
    let mut header = Vec::new();
    let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let what = &recording.what;
    TraceHeader {
        name: what.name.clone(),
        rate_bps: what.rate_bps,
        overhead_bytes: what.overhead_bytes,
        started_unix_s: since_1970.as_secs(),
    }
    .encode(&mut header);
    out.write(&header)?;
    let started = Instant::now();
    let bar = progress();
    let mut waiting = Vec::new();
    let mut stopped: Option<(Instant, Ended)> = None;
    let ended = loop {
        let part = recording.next(TURN, &mut waiting)?;
        let whole = whole_blocks(&waiting);
        let full = out.write_blocks(&waiting[..whole])?;
        waiting.drain(..whole);
        bar.set_message(format!(
            "{} s, {}",
            started.elapsed().as_secs(),
            Estimate::single(out.written as f64).show(Unit::Bytes)
        ));
        match (part, stopped) {
            (_, _) if full => break Ended::Full,
            (Some(0), Some((_, why))) => break why,
            (Some(0), None) => break Ended::Link,
            (_, Some((since, why))) if since.elapsed() > PATIENCE => break why,
            _ => {}
        }
        if stopped.is_none() {
            let timed_out = time
                .is_some_and(|time| started.elapsed().as_nanos() >= u128::from(time.as_nanos()));
            let why = if timed_out {
                Ended::Time
            } else if stop() {
                Ended::Stopped
            } else {
                continue;
            };
            recording.stop();
            stopped = Some((Instant::now(), why));
        }
    };
    bar.finish_and_clear();
    Ok(ended)
}

/// Why a recording ended.
#[derive(Clone, Copy)]
enum Ended {
    Stopped,
    Time,
    Full,
    Link,
}

/// Where the recording goes, and how much of it still fits.
struct Out<'a, W> {
    to: W,
    /// Its name in errors.
    path: std::path::Display<'a>,
    written: u64,
    most: u64,
}

impl<'a, W: Write> Out<'a, W> {
    const fn new(to: W, path: std::path::Display<'a>, most: u64) -> Self {
        Self {
            to,
            path,
            written: 0,
            most,
        }
    }

    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.to.write_all(bytes).with_context(|| {
            format!(
                "cannot write {}; the recording ended; what the file has is intact",
                self.path
            )
        })?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Writes whole blocks, as many as fit; returns whether one did not fit.
    fn write_blocks(&mut self, mut blocks: &[u8]) -> anyhow::Result<bool> {
        let mut fit = 0;
        let room = self.most.saturating_sub(self.written) as usize;
        while let Some(length) = airlane_channel::trace::block_len(&blocks[fit..]) {
            if fit + length > room {
                break;
            }
            fit += length;
        }
        let full = fit < blocks.len();
        blocks = &blocks[..fit];
        self.write(blocks)?;
        Ok(full)
    }
}

impl Out<'_, File> {
    fn close(self) -> anyhow::Result<()> {
        self.to
            .sync_all()
            .with_context(|| format!("cannot write {}", self.path))
    }
}

fn progress() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    if output::is_watched() {
        bar.set_draw_target(ProgressDrawTarget::stderr());
    }
    if let Ok(style) = ProgressStyle::with_template("recording: {msg}, Ctrl-C ends") {
        bar.set_style(style);
    }
    bar
}
