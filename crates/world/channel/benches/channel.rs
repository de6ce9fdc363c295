//! Cost of one frame through a channel, and of one error draw. The allocation counts must be zero.

use airlane_base::{Duration, Instant, Probability, QueueLimit, Rate, Size, Streams};
use airlane_channel::{Channel, ChannelConfig, ErrorModel, ErrorModelConfig};
use divan::Bencher;
use divan::counter::ItemsCount;

#[global_allocator]
static ALLOC: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

const FRAMES: usize = 100_000;

fn models() -> [(&'static str, ErrorModelConfig); 5] {
    let p = |p| Probability::new(p).expect("a probability");
    [
        ("none", ErrorModelConfig::None),
        ("uniform", ErrorModelConfig::Uniform { rate: p(0.05) }),
        (
            "two-state",
            ErrorModelConfig::TwoState {
                good: Duration::from_secs(10),
                bad: Duration::from_millis(100),
                ber_good: p(1e-6),
                ber_bad: p(1e-2),
            },
        ),
        (
            "byte-exponential",
            ErrorModelConfig::ByteExponential {
                mean: Size::from_bytes(131_072),
                burst: None,
            },
        ),
        (
            "gilbert-elliott",
            ErrorModelConfig::GilbertElliott {
                good_to_bad: p(0.01),
                bad_to_good: p(0.3),
                loss_good: p(0.0),
                loss_bad: p(0.5),
            },
        ),
    ]
}

/// A saturated WLAN link of the study: 1000 B frames at 2 Mbit/s, 20 frames outstanding.
#[divan::bench(args = ["none", "uniform", "two-state", "byte-exponential", "gilbert-elliott"])]
fn frames_through_a_channel(bencher: Bencher, kind: &str) {
    let rate = Rate::from_bps(2_000_000).expect("not zero");
    let model = models()
        .into_iter()
        .find(|m| m.0 == kind)
        .expect("a listed model")
        .1;
    let config = ChannelConfig {
        rate,
        delay: Duration::from_millis(3),
        queue: QueueLimit::Packets(50),
    };
    let errors = ErrorModel::new(&model, rate, Streams::new(1, 0), "bench");
    let mut channel: Channel<[u64; 4]> = Channel::new(config, errors);
    let mut now = Instant::ORIGIN;
    bencher.counter(ItemsCount::new(FRAMES)).bench_local(|| {
        let mut delivered = 0;
        for i in 0..FRAMES {
            let departs = channel.send(now, 1000, [i as u64; 4]);
            // One frame in the transmitter and some queued after it, as from a windowed sender.
            if i % 20 == 19
                && let Ok(departs) = departs
            {
                now = departs;
            }
            while channel.poll_deliver(now).is_some() {
                delivered += 1;
            }
        }
        delivered
    });
}
