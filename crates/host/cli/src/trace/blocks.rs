//! Files of erased blocks: reads a trace, and runs `airlane trace generate` and
//! `airlane trace convert`.

use std::path::Path;

use airlane_base::{Duration, Size, Streams};
use airlane_channel::Opportunities;
use airlane_channel::blocks::{Blocks, BlocksHeader, MOST_BLOCKS};
use airlane_channel::trace::{FrameOutcome, Trace, Way};
use anyhow::Context as _;

use crate::args::{BlocksForm, BlocksSource, TraceConvertArgs, TraceGenerateArgs};
use crate::fault::BadInput;
use crate::output;

/// A recording with a larger share of unknown blocks says too little about blocks of this duration.
const MOST_UNKNOWN: f64 = 0.1;

fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let shown = path.display();
    airlane_base::config::read_file(path, airlane_base::config::LONGEST_DATA)
        .with_context(|| BadInput(format!("cannot read {shown}")))
}

/// Whether a file is text: traces of blocks are, recordings of frames are not.
pub(super) fn is_blocks(path: &Path) -> anyhow::Result<bool> {
    let bytes = bytes(path)?;
    Ok(Blocks::is_blocks(&bytes)
        || bytes
            .iter()
            .all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()))
}

/// Reads a trace of blocks.
pub(super) fn read(path: &Path) -> anyhow::Result<Blocks> {
    let wrong = |reason: String| BadInput(format!("{}: {reason}", path.display()));
    let bytes = bytes(path)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| {
        wrong("it is not text; convert a recording by `airlane trace convert`".to_owned())
    })?;
    Ok(Blocks::read(text).map_err(|error| wrong(error.to_string()))?)
}

/// If no block is erased, `longer` says what would have to be longer.
fn write(blocks: &Blocks, form: BlocksForm, to: Option<&Path>, longer: &str) -> anyhow::Result<()> {
    if blocks.erased() == 0 {
        let len = blocks.len();
        output::warn(&format!("none of the {len} blocks is erased{longer}"));
    }
    let text = match form {
        BlocksForm::Characters => blocks.to_text(),
        BlocksForm::Rows => blocks.to_rows(),
    };
    save(&text, to)
}

fn save(text: &str, to: Option<&Path>) -> anyhow::Result<()> {
    match to {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        }
        None => output::print(text),
    }
}

/// Runs `trace generate`.
pub(crate) fn generate(args: &TraceGenerateArgs) -> anyhow::Result<()> {
    let block = args.block;
    if block == Duration::ZERO {
        return Err(BadInput("--block 0 s: a block must be longer than 0 s".to_owned()).into());
    }
    let len = match args.blocks {
        Some(blocks) => u64::from(blocks),
        None => args.duration.as_nanos() / block.as_nanos(),
    };
    let len = u32::try_from(len)
        .ok()
        .filter(|len| (1..=MOST_BLOCKS).contains(len));
    let len = len.ok_or_else(|| {
        BadInput(format!(
            "a trace has 1 to {MOST_BLOCKS} blocks; choose --duration or --blocks so"
        ))
    })?;
    let header = BlocksHeader {
        block,
        size: args.size,
        direction: None,
        origin: Some(args.model.to_string()),
        seed: Some(args.seed),
    };
    let mut random = Streams::new(args.seed, 0).stream("blocks");
    let blocks = args.model.generate(len, header, &mut random);
    let longer = format!(
        "; a longer --duration than {} or another --seed may have some",
        block * u64::from(len)
    );
    write(&blocks, args.to, args.out.as_deref(), &longer)
}

/// Runs `trace convert`.
pub(crate) fn convert(args: &TraceConvertArgs) -> anyhow::Result<()> {
    let shown = args.file.display();
    let wrong = |reason: String| BadInput(format!("{shown}: {reason}"));
    let table = || -> anyhow::Result<String> {
        let text = String::from_utf8(bytes(&args.file)?);
        Ok(text.map_err(|_| wrong("it is not text".to_owned()))?)
    };
    let blocks = match args.from {
        BlocksSource::Rates => {
            let found = Opportunities::of_rates(&table()?, Size::from_bytes(1504));
            let text = found.map_err(|error| wrong(error.to_string()))?.to_text();
            return save(&text, args.out.as_deref());
        }
        BlocksSource::Captures => {
            let (Some(far), Some(out)) = (&args.far, &args.out) else {
                let what = "the capture of the other end, and a file for the recording";
                return Err(wrong(format!("give --far and --out: {what}")).into());
            };
            let name = format!("{shown} and {}", far.display());
            let trace = Trace::of_captures(&bytes(&args.file)?, &bytes(far)?, name);
            let trace = trace.map_err(|error| BadInput(error.to_string()))?;
            return std::fs::write(out, trace.to_bytes())
                .with_context(|| format!("cannot write {}", out.display()));
        }
        BlocksSource::Sequence => {
            let found = Blocks::of_sequence(&table()?, header(block(args)?));
            found.map_err(|error| wrong(error.to_string()))?
        }
        BlocksSource::Blocks => read(&args.file)?,
        BlocksSource::Mahimahi => {
            let text = bytes(&args.file)?;
            // A block in which nothing may be sent counts as erased.
            let times = Opportunities::parse(&text, Size::from_bytes(1504));
            let times = times.map_err(|error| wrong(error.to_string()))?;
            let block = block(args)?;
            let mut erased = vec![true; count(times.length(), block)?];
            for at in times.times() {
                if let Some(erased) = erased.get_mut((at.as_nanos() / block.as_nanos()) as usize) {
                    *erased = false;
                }
            }
            Blocks::from_blocks(header(block), erased)
        }
        BlocksSource::Recording => recording(args)?,
    };
    write(&blocks, args.to, args.out.as_deref(), "")
}

fn block(args: &TraceConvertArgs) -> anyhow::Result<Duration> {
    let wrong = || BadInput("say how long a block is: --block 20ms".to_owned());
    let block = args.block.filter(|block| *block > Duration::ZERO);
    Ok(block.ok_or_else(wrong)?)
}

fn recording(args: &TraceConvertArgs) -> anyhow::Result<Blocks> {
    let shown = args.file.display();
    let trace = Trace::read(&bytes(&args.file)?);
    let trace = trace.map_err(|error| BadInput(format!("{shown}: {error}")))?;
    let way = if args.out_direction {
        Way::Out
    } else {
        Way::In
    };
    let path = trace.path(way).filter(|path| path.received + path.lost > 0);
    let path = path.ok_or_else(|| {
        BadInput(format!(
            "{shown}: nothing is known of frames in this direction; record both ends and join them"
        ))
    })?;
    let frames = path.samples.iter().map(|sample| {
        let came = matches!(sample.outcome, FrameOutcome::Received(_));
        (sample.at, sample.last, came)
    });
    let frames: Vec<_> = frames.collect();
    let (blocks, unknown) = of_frames(&frames, trace.span(), block(args)?)?;
    if unknown > MOST_UNKNOWN {
        return Err(BadInput(format!(
            "{shown}: no frame was sent in {:.0} % of its blocks; choose a longer --block, or record a link that is busy",
            unknown * 100.0
        ))
        .into());
    }
    Ok(blocks)
}

fn header(block: Duration) -> BlocksHeader {
    BlocksHeader {
        block,
        ..BlocksHeader::default()
    }
}

/// The number of whole blocks in a time span.
fn count(span: Duration, block: Duration) -> anyhow::Result<usize> {
    let len = usize::try_from(span.as_nanos() / block.as_nanos()).ok();
    let len = len.filter(|len| (1..=MOST_BLOCKS as usize).contains(len));
    Ok(len.ok_or_else(|| {
        BadInput(format!(
            "a trace has 1 to {MOST_BLOCKS} blocks; choose --block so"
        ))
    })?)
}

/// Phases within a block at which the start of the radio's blocks is searched for.
const PHASES: u64 = 40;

/// A block counts as erased if at least one frame that overlaps it was lost and none was received:
/// a received frame proves its block clean. Blocks without frames count as clean; their share is
/// returned, too.
///
/// A recording does not say when the radio's blocks begin. The best phase is the one with the
/// fewest blocks that contain both received and lost frames.
fn of_frames(
    frames: &[(Duration, Duration, bool)],
    span: Duration,
    block: Duration,
) -> anyhow::Result<(Blocks, f64)> {
    let len = count(span, block)?;
    let seen = |phase: u64| {
        let before = block.as_nanos() * phase / PHASES;
        let mut seen = vec![(false, false); len + 1];
        for (first, last, is) in frames {
            let at = |time: Duration| ((time.as_nanos() + before) / block.as_nanos()) as usize;
            let [from, to] = [at(*first), at(*last).max(at(*first))];
            for (came, lost) in seen.iter_mut().take(to + 1).skip(from) {
                *(if *is { came } else { lost }) = true;
            }
        }
        seen
    };
    let mixed = |seen: &[(bool, bool)]| seen.iter().filter(|seen| **seen == (true, true)).count();
    let all = (0..PHASES).map(seen);
    let best = all.min_by_key(|seen| mixed(seen));
    let mut seen = best.unwrap_or_default();
    // The last block is incomplete.
    seen.truncate(len);
    let unknown = seen.iter().filter(|seen| **seen == (false, false)).count();
    let erased = seen.iter().map(|(came, lost)| *lost && !came);
    let blocks = Blocks::from_blocks(header(block), erased);
    Ok((blocks, unknown as f64 / len as f64))
}
