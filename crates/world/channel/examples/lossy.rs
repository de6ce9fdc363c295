//! Sends frames over a lossy channel and prints the loss that was measured beside the loss that was configured:
//!
//! ```text
//! cargo run -p airlane-channel --example lossy
//! ```
//!
//! The configured loss is the closed form of each error model for this rate and frame length. The measured one is the
//! mean over independent runs, with its standard error: a model with bursts needs more frames for the same precision.

#![expect(clippy::print_stdout, reason = "the table goes to standard output")]

use airlane_base::{Duration, Instant, Streams};
use airlane_channel::{Channel, ChannelConfig, ErrorModel, ErrorModelConfig};

const SEED: u64 = 1;
const RUNS: u64 = 50;
const FRAMES: u64 = 20_000;
/// 4.16 ms each, so that frames begin at all phases of a radio block of 20 ms, as the closed form assumes.
const FRAME_BYTES: usize = 1_040;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let link = ChannelConfig {
        rate: "2 Mbit/s".parse()?,
        delay: "10 ms".parse()?,
        queue: "50 packets".parse()?,
    };
    let models = [
        r#"{ "kind": "none" }"#,
        r#"{ "kind": "uniform", "rate": 0.05 }"#,
        r#"{ "kind": "uniform-ber", "ber": 1e-5 }"#,
        r#"{ "kind": "two-state", "good": "1 s", "bad": "50 ms", "ber_good": 1e-6, "ber_bad": 0.01 }"#,
        r#"{ "kind": "byte-exponential", "mean": "65536 B" }"#,
        r#"{ "kind": "gilbert-elliott", "good_to_bad": 0.01, "bad_to_good": 0.25, "loss_good": 0.001, "loss_bad": 0.5 }"#,
        r#"{ "kind": "blocks", "model": "gilbert 0.01 0.3" }"#,
    ];
    println!(
        "{RUNS} x {FRAMES} frames of {FRAME_BYTES} B at {}",
        link.rate
    );
    println!("configured   measured             model");
    for text in models {
        let errors: ErrorModelConfig = serde_json::from_str(text)?;
        errors.validate()?;
        let losses: Vec<f64> = (0..RUNS).map(|run| loss(&errors, link, run)).collect();
        let mean = losses.iter().sum::<f64>() / losses.len() as f64;
        let squares = losses.iter().map(|loss| (loss - mean) * (loss - mean));
        let error = (squares.sum::<f64>() / (RUNS * (RUNS - 1)) as f64).sqrt();
        let configured = errors.loss_probability(link.rate, FRAME_BYTES);
        println!(
            "{:8.3} %   {:6.3} +- {:.3} %     {text}",
            configured * 1e2,
            mean * 1e2,
            error * 1e2,
        );
    }
    Ok(())
}

/// The share of frames that one run loses.
fn loss(errors: &ErrorModelConfig, link: ChannelConfig, run: u64) -> f64 {
    let errors = ErrorModel::new(errors, link.rate, Streams::new(SEED, run), "link.down");
    let mut channel = Channel::new(link, errors);
    let mut now = Instant::ORIGIN;
    for number in 0..FRAMES {
        // Each frame is handed over when the one before has left, so the queue stays empty.
        now = channel.send(now, FRAME_BYTES, number).unwrap_or(now);
        while channel.poll_deliver(now).is_some() {}
    }
    // Everything still in flight arrives within the delay.
    let end = now + link.delay + Duration::from_nanos(1);
    while channel.poll_deliver(end).is_some() {}
    let stats = channel.stats();
    1.0 - stats.delivered.frames as f64 / stats.offered.frames as f64
}
