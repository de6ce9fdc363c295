//! `airlane trace stats`: prints how erasures are distributed.

use std::fmt::Write as _;

use airlane_channel::blocks::Blocks;
use airlane_channel::blocks::retrace::Overhead;
use airlane_channel::blocks::statistics::{Lengths, mean, quantile, share_above, total};
use serde::Serialize;

use crate::args::TraceShowArgs;
use crate::output;
use crate::table::{Align, Table};
use crate::trace::blocks;

/// Version of the JSON that is printed.
const SCHEMA: u32 = 1;
const FRAMES: [u32; 9] = [1, 2, 3, 5, 7, 10, 20, 50, 100];
const TAILS: [u32; 3] = [2, 18, 26];
/// Frames up to this length are candidates for the best one, as in Ludwig et al. 1999.
const LONGEST: u32 = 100;
/// Minutes in a line of the picture.
const WIDTH: usize = 72;

#[derive(Serialize)]
struct Stats {
    schema: u32,
    blocks: u32,
    block_s: f64,
    parts: usize,
    origin: Option<String>,
    erasure_rate: f64,
    /// Erasure rate of each whole minute.
    minutes: Vec<f64>,
    /// Share of minutes with less than one erasure in a hundred blocks.
    clean_minutes: Option<f64>,
    burst_blocks: Option<Distribution>,
    gap_blocks: Option<Distribution>,
    /// Probability that a frame of this many blocks contains an erased one.
    frame_erasure_rates: Vec<FrameRate>,
    best_frame_blocks: Option<u32>,
    burst_error_factor: Option<f64>,
}

#[derive(Serialize)]
struct FrameRate {
    blocks: u32,
    rate: f64,
}

#[derive(Serialize)]
struct Distribution {
    count: u64,
    mean: f64,
    median: u32,
    p95: u32,
    longest: u32,
    above: Vec<Above>,
}

#[derive(Serialize)]
struct Above {
    blocks: u32,
    share: f64,
}

impl Distribution {
    fn of(lengths: &Lengths) -> Option<Self> {
        let above = TAILS.iter().map(|blocks| Above {
            blocks: *blocks,
            share: share_above(lengths, *blocks),
        });
        Some(Self {
            count: total(lengths),
            mean: mean(lengths),
            median: quantile(lengths, 0.5)?,
            p95: quantile(lengths, 0.95)?,
            longest: *lengths.keys().last()?,
            above: above.collect(),
        })
    }
}

/// Runs `trace stats`, and `trace show` on a trace of blocks.
pub(crate) fn stats(args: &TraceShowArgs) -> anyhow::Result<()> {
    let stats = of(&blocks::read(&args.file)?);
    if args.json {
        return output::print(&format!("{}\n", serde_json::to_string_pretty(&stats)?));
    }
    output::print(&render(&stats))
}

fn of(blocks: &Blocks) -> Stats {
    let minutes = blocks.minutes();
    let clean = minutes.iter().filter(|rate| **rate < 0.01).count();
    let rates = FRAMES.iter().map(|n| FrameRate {
        blocks: *n,
        rate: blocks.frame_erasure_rate(*n),
    });
    let erased = blocks.erased() > 0;
    let best = blocks.best_frame(1..=LONGEST, Overhead::Published);
    let factor = blocks.burst_error_factor(LONGEST, Overhead::Published);
    Stats {
        schema: SCHEMA,
        blocks: blocks.len(),
        block_s: blocks.header.block.as_secs_f64(),
        parts: blocks.parts().count(),
        origin: blocks.header.origin.clone(),
        erasure_rate: blocks.erasure_rate(),
        clean_minutes: (!minutes.is_empty()).then(|| clean as f64 / minutes.len() as f64),
        minutes,
        burst_blocks: Distribution::of(&blocks.burst_lengths()),
        gap_blocks: Distribution::of(&blocks.gap_lengths()),
        frame_erasure_rates: rates.filter(|rate| rate.rate.is_finite()).collect(),
        best_frame_blocks: best.map(|best| best.blocks),
        burst_error_factor: factor.filter(|_| erased),
    }
}

/// One character for each minute: a dot for one without erasures, otherwise a bar.
fn picture(minutes: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = minutes.iter().copied().fold(0.0, f64::max);
    let bar = |rate: &f64| match *rate > 0.0 {
        false => '·',
        true => BARS[((rate / most * 8.0) as usize).min(7)],
    };
    let all: Vec<char> = minutes.iter().map(bar).collect();
    let lines: Vec<String> = all
        .chunks(WIDTH)
        .map(|line| line.iter().collect())
        .collect();
    format!("each minute, up to {most:.4}:\n{}\n\n", lines.join("\n"))
}

fn render(stats: &Stats) -> String {
    let seconds = f64::from(stats.blocks) * stats.block_s;
    let mut text = format!(
        "{} blocks of {} ms, {seconds:.0} s; {:.5} erased\n",
        stats.blocks,
        stats.block_s * 1e3,
        stats.erasure_rate
    );
    if stats.parts > 1 {
        let _ = writeln!(text, "in {} consecutive parts", stats.parts);
    }
    if let Some(origin) = &stats.origin {
        let _ = writeln!(text, "made by {origin}");
    }
    text.push('\n');
    if let Some(clean) = stats.clean_minutes {
        text.push_str(&picture(&stats.minutes));
        let _ = writeln!(
            text,
            "{:.0} % of minutes have less than 0.01 erased\n",
            clean * 100.0
        );
    }
    let heads = [
        "count", "mean", "median", "95 %", "longest", "> 2", "> 18", "> 26",
    ];
    let heads = heads.map(|head| (head, Align::Right));
    let mut table = Table::new([("blocks of", Align::Left)].into_iter().chain(heads));
    for (name, of) in [("bursts", &stats.burst_blocks), ("gaps", &stats.gap_blocks)] {
        if let Some(of) = of {
            let numbers = [of.count.to_string(), format!("{:.2}", of.mean)];
            let lengths = [of.median, of.p95, of.longest].map(|len| len.to_string());
            let above = of.above.iter().map(|above| format!("{:.4}", above.share));
            table.row(
                [name.to_owned()]
                    .into_iter()
                    .chain(numbers)
                    .chain(lengths)
                    .chain(above),
            );
        }
    }
    text.push_str(&table.render());
    let mut table = Table::new([("blocks of a frame", Align::Right), ("lost", Align::Right)]);
    for rate in &stats.frame_erasure_rates {
        table.row([rate.blocks.to_string(), format!("{:.4}", rate.rate)]);
    }
    let _ = write!(text, "\n{}", table.render());
    if let (Some(best), Some(factor)) = (stats.best_frame_blocks, stats.burst_error_factor) {
        let _ = writeln!(
            text,
            "\nframes of {best} blocks carry most, {factor:.1} times as long as if the same erasures stood apart"
        );
    }
    text
}
