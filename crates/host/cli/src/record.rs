//! `airlane record`.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use airlane_channel::trace::{TraceHeader, whole_blocks};
use airlane_live::control;
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
    let socket = live::socket(args.socket.as_deref().or(args.link.as_deref()))?;
    let mut stop = stop_on_signals().context("cannot wait for signals")?;
    stop.set_nonblocking(true)
        .context("cannot wait for signals")?;
    let mut recording = control::record(&socket, args.peer.as_deref())?;
    // The file is created only once there is something to write: an old recording is worth more
    // than an empty file.
    let mut out = Out::create(&args.file, args.max_size.as_bytes())?;
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
            let timed_out = args
                .time
                .is_some_and(|time| started.elapsed().as_nanos() >= u128::from(time.as_nanos()));
            let why = if timed_out {
                Ended::Time
            } else if matches!(stop.read(&mut [0]), Ok(1)) {
                Ended::Stopped
            } else {
                continue;
            };
            recording.stop();
            stopped = Some((Instant::now(), why));
        }
    };
    bar.finish_and_clear();
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

/// Why a recording ended.
#[derive(Clone, Copy)]
enum Ended {
    Stopped,
    Time,
    Full,
    Link,
}

/// The file, and how much still fits.
struct Out<'a> {
    file: File,
    path: &'a Path,
    written: u64,
    most: u64,
}

impl<'a> Out<'a> {
    fn create(path: &'a Path, most: u64) -> anyhow::Result<Self> {
        let file = File::create(path)
            .with_context(|| BadInput(format!("cannot write {}", path.display())))?;
        Ok(Self {
            file,
            path,
            written: 0,
            most,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.file.write_all(bytes).with_context(|| {
            format!(
                "cannot write {}; the recording ended; what the file has is intact",
                self.path.display()
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

    fn close(self) -> anyhow::Result<()> {
        self.file
            .sync_all()
            .with_context(|| format!("cannot write {}", self.path.display()))
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
