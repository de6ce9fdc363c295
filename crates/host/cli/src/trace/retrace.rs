//! `airlane trace retrace`: computes what a link layer could at best have made of a trace.

use std::fmt::Write as _;

use airlane_channel::blocks::retrace::{END_TO_END, Frames, Overhead};
use serde::Serialize;

use crate::args::{RetraceOverhead, TraceRetraceArgs};
use crate::fault::BadInput;
use crate::output;
use crate::table::{Align, Table};
use crate::trace::blocks;

/// Version of the JSON that is printed.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Retrace {
    schema: u32,
    frames: Vec<Frame>,
    best_frame_blocks: Option<u32>,
    /// Without a link layer: packets end to end.
    packets: Vec<Packet>,
}

#[derive(Serialize)]
struct Frame {
    blocks: u32,
    bytes: u64,
    goodput_bytes_per_s: f64,
    /// Share of transmissions that failed.
    lost: f64,
}

#[derive(Serialize)]
struct Packet {
    mtu_bytes: u32,
    /// Goodput of packets that occupy whole blocks.
    goodput_bytes_per_s: f64,
    lost: f64,
    /// Goodput of packets back to back in the byte stream of blocks.
    stream_goodput_bytes_per_s: f64,
    stream_lost: f64,
}

/// Bytes of PPP framing around an IP packet.
const PPP: u32 = 7;
/// Bytes of TCP and IP headers.
const HEADERS: u32 = 40;

/// Runs `trace retrace`.
pub(crate) fn run(args: &TraceRetraceArgs) -> anyhow::Result<()> {
    let blocks = blocks::read(&args.file)?;
    let size = blocks.header.size.as_bytes().max(1);
    let overhead = match args.overhead {
        RetraceOverhead::Published => Overhead::Published,
        RetraceOverhead::Stated => Overhead::Stated,
        RetraceOverhead::Bytes(bytes) => Overhead::Fixed(f64::from(bytes)),
    };
    let one = |n: u32| -> Option<Frames> {
        match args.all_phases {
            true => blocks.frames_of_all_phases(n, overhead),
            false => blocks.frames(n, overhead, 0),
        }
    };
    let lengths = args.frames.from..=args.frames.to;
    let found: Vec<Frames> = lengths.filter_map(one).collect();
    if found.is_empty() {
        let from = args.frames.from;
        return Err(BadInput(format!(
            "{}: it has {} blocks, and no frame of {from} fits; choose shorter --frames",
            args.file.display(),
            blocks.len()
        ))
        .into());
    }
    let best = found.iter().max_by(|a, b| {
        a.goodput
            .total_cmp(&b.goodput)
            .then(b.blocks.cmp(&a.blocks))
    });
    let packets = args.mtu.iter().filter_map(|mtu| {
        let n = u32::try_from(u64::from(*mtu).div_ceil(size)).ok()?;
        let whole = blocks.frames(n, Overhead::Fixed(END_TO_END), 0)?;
        let data = mtu.checked_sub(HEADERS)?;
        let stream = blocks.packets(mtu + PPP, data)?;
        Some(Packet {
            mtu_bytes: *mtu,
            goodput_bytes_per_s: whole.goodput,
            lost: whole.erasure_rate(),
            stream_goodput_bytes_per_s: stream.goodput,
            stream_lost: stream.erasure_rate(),
        })
    });
    let retrace = Retrace {
        schema: SCHEMA,
        best_frame_blocks: best.map(|best| best.blocks),
        packets: packets.collect(),
        frames: found
            .iter()
            .map(|frames| Frame {
                blocks: frames.blocks,
                bytes: u64::from(frames.blocks) * size,
                goodput_bytes_per_s: frames.goodput,
                lost: frames.erasure_rate(),
            })
            .collect(),
    };
    if args.json {
        return output::print(&format!("{}\n", serde_json::to_string_pretty(&retrace)?));
    }
    output::print(&render(&retrace))
}

fn render(retrace: &Retrace) -> String {
    let right = |heads: [&'static str; 4]| heads.map(|head| (head, Align::Right));
    let mut table = Table::new(right(["blocks", "bytes", "goodput, byte/s", "lost"]));
    for frame in &retrace.frames {
        let mark = if Some(frame.blocks) == retrace.best_frame_blocks {
            " best"
        } else {
            ""
        };
        table.row([
            frame.blocks.to_string(),
            frame.bytes.to_string(),
            format!("{:.1}", frame.goodput_bytes_per_s),
            format!("{:.4}{mark}", frame.lost),
        ]);
    }
    let mut text = table.render();
    if !retrace.packets.is_empty() {
        let heads = right(["MTU", "end to end, byte/s", "lost", "as a stream, byte/s"]);
        let mut table = Table::new(heads.into_iter().chain([("lost", Align::Right)]));
        for packet in &retrace.packets {
            table.row([
                packet.mtu_bytes.to_string(),
                format!("{:.1}", packet.goodput_bytes_per_s),
                format!("{:.4}", packet.lost),
                format!("{:.1}", packet.stream_goodput_bytes_per_s),
                format!("{:.4}", packet.stream_lost),
            ]);
        }
        let _ = write!(text, "\n{}", table.render());
    }
    text
}
