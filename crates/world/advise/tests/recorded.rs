//! Recordings of known channels without a node: frames of one length fill the channel in both directions.

use airlane_base::{Duration, Instant, QueueLimit, Streams};
use airlane_channel::trace::{FrameId, Trace, TraceHeader, TraceRecord};
use airlane_channel::{Channel, ChannelConfig, ErrorModel, ErrorModelConfig, LinkRate};

/// Bytes of a datagram, and of the headers below it.
const LEN: usize = 1_300;
const BELOW: usize = 66;

#[derive(serde::Deserialize)]
pub(crate) struct Link {
    pub(crate) rate: LinkRate,
    pub(crate) delay: Duration,
    pub(crate) queue: QueueLimit,
    pub(crate) errors: ErrorModelConfig,
}

/// A recording of both ends of a scenario's link.
pub(crate) fn recorded(link: &str, seconds: u64, seed: u64) -> Trace {
    let link: Link = toml::from_str(link).unwrap();
    let [mut near, mut far] = [vec![], vec![]];
    for (key, name) in [(1, "out"), (2, "back")] {
        let [sent, came] = direction(&link, key, name, seconds, seed);
        let (from, to) = match key {
            1 => (&mut near, &mut far),
            _ => (&mut far, &mut near),
        };
        from.extend(sent);
        to.extend(came);
    }
    near.sort_by_key(TraceRecord::at);
    far.sort_by_key(TraceRecord::at);
    Trace {
        header: TraceHeader {
            name: "hill and farm".to_owned(),
            overhead_bytes: BELOW as u32,
            ..TraceHeader::default()
        },
        near,
        far,
        cut_at: None,
    }
}

fn direction(link: &Link, key: u32, name: &str, seconds: u64, seed: u64) -> [Vec<TraceRecord>; 2] {
    let streams = Streams::new(seed, 0);
    let rate = link.rate.mean().unwrap();
    let model = ErrorModel::new(&link.errors, rate, streams, name);
    let config = ChannelConfig {
        rate,
        delay: link.delay,
        queue: link.queue,
    };
    let mut channel = Channel::new(config, model).with_rate(&link.rate);
    let mut pauses = streams.stream(&format!("{name}.pauses"));
    let since = |at: Instant| at.saturating_since(Instant::ORIGIN);
    let [mut sent, mut came] = [vec![], vec![]];
    let (mut now, mut number) = (0.0, 0);
    // The last second delivers the frames in flight.
    while now < seconds as f64 + 1.0 {
        let at = Instant::from_nanos((now * 1e9) as u64);
        while let Some(due) = channel.poll_timeout().filter(|due| *due <= at) {
            let number = channel.poll_deliver(due).unwrap();
            came.push(TraceRecord::Received {
                at: since(due),
                frame: FrameId { key, number },
                len: LEN as u32,
            });
        }
        if now < seconds as f64 {
            sent.push(TraceRecord::Sent {
                at: since(at),
                frame: FrameId { key, number },
                len: LEN as u32,
                queue: 0,
            });
            _ = channel.send(at, LEN + BELOW, number);
            number += 1;
        }
        now += pauses.exponential((LEN + BELOW) as f64 * 8.0 / rate.as_bps() as f64);
    }
    [sent, came]
}
