//! The impaired link: one rate, one delay, one queue, and a loss process.

use std::fmt;

use clap::ValueEnum;

/// Rate of the impaired link, bit/s of Ethernet frames.
pub const RATE_BPS: f64 = 20e6;

/// Successive rates, Mbit/s of Ethernet frames, each for 10 s.
const STEPS_MBPS: [f64; 4] = [20.0, 5.0, 30.0, 12.0];

/// How frames are lost, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum LossChannel {
    /// No frame is lost.
    #[value(name = "uniform-0")]
    Uniform0,
    /// 1 % of the frames, independent of each other.
    #[value(name = "uniform-1")]
    Uniform1,
    /// 2 % of the frames.
    #[value(name = "uniform-2")]
    Uniform2,
    /// 5 % of the frames.
    #[value(name = "uniform-5")]
    Uniform5,
    /// 10 % of the frames.
    #[value(name = "uniform-10")]
    Uniform10,
    /// No frame is lost, and the rate is 20, 5, 30 and 12 Mbit/s in turn, for 10 s each.
    #[value(name = "steps")]
    Steps,
    /// The same, with 5 % of the frames lost.
    #[value(name = "steps-5")]
    Steps5,
    /// Gilbert-Elliott in real time: bad for 50 ms on average, good for 950 ms.
    #[value(name = "bursts-5")]
    Bursts5,
    /// Gilbert-Elliott frame by frame: bad on average for as many frames as fit into 50 ms at full rate.
    #[value(name = "bursts-5-frames")]
    Bursts5Frames,
}

impl LossChannel {
    /// The channels that are measured by default.
    pub const USUAL: [Self; 6] = [
        Self::Uniform0,
        Self::Uniform1,
        Self::Uniform2,
        Self::Uniform5,
        Self::Uniform10,
        Self::Bursts5,
    ];

    /// Its name on the command line, in tables and in JSON.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The share of frames that is lost.
    pub const fn loss(self) -> f64 {
        match self {
            Self::Uniform0 | Self::Steps => 0.0,
            Self::Uniform1 => 0.01,
            Self::Uniform2 => 0.02,
            Self::Uniform5 | Self::Steps5 | Self::Bursts5 | Self::Bursts5Frames => 0.05,
            Self::Uniform10 => 0.1,
        }
    }

    /// Whether losses come in bursts.
    pub const fn is_bursty(self) -> bool {
        matches!(self, Self::Bursts5 | Self::Bursts5Frames)
    }

    /// The mean rate over whole rounds of its steps, bit/s of Ethernet frames.
    pub fn rate_bps(self) -> f64 {
        match self {
            Self::Steps | Self::Steps5 => {
                STEPS_MBPS.iter().sum::<f64>() / STEPS_MBPS.len() as f64 * 1e6
            }
            _ => RATE_BPS,
        }
    }

    /// The emulator's file.
    pub fn air(self) -> String {
        let errors = match self {
            Self::Bursts5 => "{ kind = \"two-state-arrival\", good = \"950 ms\", bad = \"50 ms\", \
                 ber_good = 0, ber_bad = 1 }"
                .to_owned(),
            Self::Bursts5Frames => {
                let frames = RATE_BPS * 0.05 / (1514.0 * 8.0);
                let leave = 1.0 / frames;
                let enter = leave * self.loss() / (1.0 - self.loss());
                format!(
                    "{{ kind = \"gilbert-elliott\", good_to_bad = {enter:.6}, \
                     bad_to_good = {leave:.6}, loss_good = 0, loss_bad = 1 }}"
                )
            }
            uniform => format!("{{ kind = \"uniform\", rate = {} }}", uniform.loss()),
        };
        match self {
            Self::Steps | Self::Steps5 => {
                let rates = STEPS_MBPS.map(|mbps| format!("\"{mbps} Mbit/s\""));
                let rates = rates.join(", ");
                let steps = format!("{{ kind = \"steps\", every = \"10 s\", rates = [{rates}] }}");
                file(RATE_BPS / 1e6, &steps, 25.0, &errors)
            }
            _ => air(&errors),
        }
    }
}

/// The emulator's file with these errors.
pub fn air(errors: &str) -> String {
    link(RATE_BPS / 1e6, 25.0, errors)
}

/// The emulator's file of a link with this rate and one-way delay, 50 ms of queue and these errors.
pub fn link(mbps: f64, delay_ms: f64, errors: &str) -> String {
    file(mbps, &format!("\"{mbps} Mbit/s\""), delay_ms, errors)
}

/// The emulator's file of a link with this value of `rate`, 50 ms of queue at `mbps`, and these errors.
fn file(mbps: f64, rate: &str, delay_ms: f64, errors: &str) -> String {
    let queue = (mbps * 1e6 / 8.0 * 0.05).max(15_000.0);
    format!(
        "schema = 1\n\
         name = \"bench\"\n\
         interfaces = [\"to-left\", \"to-right\"]\n\
         rate = {rate}\n\
         delay = \"{delay_ms} ms\"\n\
         queue = \"{queue:.0} B\"\n\
         errors = {errors}\n"
    )
}

impl fmt::Display for LossChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

/// Congestion control of the server's TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Endpoints {
    /// Treats losses as congestion.
    Cubic,
    /// Models the path.
    Bbr,
}

impl Endpoints {
    /// Its name on the command line, in tables, in JSON, and in the kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }
}

impl fmt::Display for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use airlane_channel::{ErrorModel, ErrorModelConfig, ErrorsConfig};

    use super::*;

    /// The value of `errors =` must lose what the name says, over a long time at full rate.
    #[test]
    fn a_channel_loses_the_share_in_its_name() {
        #[derive(serde::Deserialize)]
        struct Air {
            errors: ErrorsConfig,
        }
        for channel in LossChannel::value_variants() {
            let air: Air = toml::from_str(&channel.air()).unwrap();
            let model: ErrorModelConfig = air.errors.down;
            let rate = airlane_base::Rate::from_bps(RATE_BPS as u64).unwrap();
            let streams = airlane_base::Streams::new(1, 0);
            let mut errors = ErrorModel::new(&model, rate, streams, "bench.down");
            let (mut lost, total) = (0u32, 2_000_000);
            let mut at = airlane_base::Instant::ORIGIN;
            for _ in 0..total {
                let until = at + airlane_base::Duration::from_nanos(605_600);
                lost += u32::from(errors.loses(at, until, 1514));
                at = until;
            }
            let loss = f64::from(lost) / f64::from(total);
            // Some 1200 bursts: a standard deviation of 0.002.
            assert!((loss - channel.loss()).abs() < 0.005, "{channel}: {loss}");
        }
    }
}
