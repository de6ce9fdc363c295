//! The file that `airlane air FILE` reads.
//!
//! ```toml
//! schema = 1
//! name = "radio"
//! interfaces = ["air-left", "air-right"]     # first to second is "down"
//! rate = "20 Mbit/s"
//! delay = "25 ms"
//! queue = "125 kB"
//! errors = { kind = "uniform", rate = 0.05 }
//! ```
//!
//! `rate`, `delay`, `queue` and `errors` apply to both directions, or are given for each as `rate.down` and
//! `rate.up`. A rate has the forms that scenarios allow: constant, steps, or opportunities.

use airlane_base::config::{Problems, Validate};
use airlane_base::{BothWays, Duration, QueueLimit};
use airlane_channel::trace::TraceFileError;
use airlane_channel::{
    ErrorModelConfig, ErrorsConfig, LinkJitter, LinkRates, OutageConfig, PoliceConfig, load_traces,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A lossy link between two interfaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AirConfig {
    /// Version of the file format, 1.
    #[schemars(extend("const" = 1, "examples" = [1]))]
    pub schema: u32,
    /// The name of the link. It selects the random streams: a simulated link of the same name loses the same
    /// frames with the same seed.
    #[serde(default = "default_name")]
    pub name: String,
    /// The seed of the error models.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// The two interfaces; from the first to the second is "down".
    #[schemars(extend("examples" = [["air-left", "air-right"]]))]
    pub interfaces: [String; 2],
    /// The rate of the link, counted over whole Ethernet frames without preamble and checksum: a constant, a
    /// sequence of rates, or a list of send times, counted from the start of the emulator.
    pub rate: LinkRates,
    /// The one-way propagation delay of a frame.
    #[serde(default)]
    pub delay: BothWays<Duration>,
    /// Random variation of the delay, for both directions or one. Frames may be reordered. Left out: all
    /// frames have the same delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<LinkJitter>,
    /// The limit of the transmit queue.
    #[serde(default = "default_queue")]
    pub queue: BothWays<QueueLimit>,
    /// The model of frame losses on the air.
    #[serde(default)]
    pub errors: ErrorsConfig,
    /// Intervals in which the link is down in both directions, counted from the start of the emulator: frames
    /// sent then are lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageConfig>,
    /// A policer, for both directions or one: frames that exceed its token bucket are lost after they were sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub police: Option<PoliceConfig>,
}

/// Length of the longest Ethernet frame without checksum, bytes.
const FULL_FRAME: u64 = 1_514;

fn default_name() -> String {
    "air".to_owned()
}

const fn default_seed() -> u64 {
    1
}

const fn default_queue() -> BothWays<QueueLimit> {
    BothWays::same(QueueLimit::Packets(1000))
}

impl AirConfig {
    /// Reads the loss traces and lists of send times that the file names, if any. `read` returns the bytes of
    /// a file; paths are passed as written.
    ///
    /// # Errors
    /// If a file cannot be read, is not a trace, or has nothing for the direction.
    pub fn load_traces(
        &mut self,
        mut read: impl FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Result<(), TraceFileError> {
        load_traces(&mut self.errors, &mut read)?;
        self.rate.down.load(&mut read)?;
        self.rate.up.load(&mut read)
    }
}

impl Validate for AirConfig {
    fn validate(&self, problems: &mut Problems) {
        if self.schema != 1 {
            let found = format!("schema {} is not known", self.schema);
            problems.add("schema", found, "write schema = 1");
        }
        if self.name.is_empty() {
            problems.add(
                "name",
                "the name is empty",
                "leave it out, or name the link",
            );
        }
        let counts_bits = |down: bool| {
            let errors = self.errors.of(down);
            matches!(errors, ErrorModelConfig::TwoState { .. }) && self.rate.of(down).varies()
        };
        if [true, false].into_iter().any(counts_bits) {
            problems.add(
                "errors",
                "errors of kind \"two-state\" count the bits of a constant rate",
                "kind = \"two-state-arrival\": the state at that time decides",
            );
        }
        for (i, name) in self.interfaces.iter().enumerate() {
            // IFNAMSIZ counts the terminating zero.
            if name.is_empty() || name.len() > 15 || name.contains(['/', ' ', '\0']) {
                problems.add(
                    &format!("interfaces[{i}]"),
                    format!("\"{name}\" cannot be the name of an interface"),
                    "write a name that `ip link` lists: 1 to 15 characters",
                );
            }
        }
        if self.interfaces[0] == self.interfaces[1] {
            problems.add(
                "interfaces",
                format!("both ends are \"{}\"", self.interfaces[0]),
                "name two different interfaces",
            );
        }
        if let Some(empty) = OutageConfig::first_empty(&self.outages) {
            let OutageConfig { from, to } = self.outages[empty];
            problems.add(
                &format!("outages[{empty}]"),
                format!("nothing lasts from {from} to {to}"),
                "`to` is later than `from`",
            );
        }
        if let Some(burst) = self.police.and_then(|police| police.too_short(FULL_FRAME)) {
            problems.add(
                "police",
                format!("no full Ethernet frame ever passes a bucket of {burst}"),
                "a burst of at least \"1514 B\", and several times that as a rule",
            );
        }
        if let Some([wrong, right]) = self.jitter.and_then(|jitter| jitter.problem()) {
            problems.add("jitter", wrong, right);
        }
        for (key, direction, queue) in [
            ("queue.down", "down", self.queue.down),
            ("queue.up", "up", self.queue.up),
        ] {
            if let QueueLimit::Bytes(bytes) = queue
                && bytes < FULL_FRAME
            {
                problems.add(
                    if self.queue.down == self.queue.up {
                        "queue"
                    } else {
                        key
                    },
                    format!(
                        "a queue of {bytes} B ({direction}) cannot hold one full Ethernet frame"
                    ),
                    "write 1514 B or more, or a number of packets",
                );
                if self.queue.down == self.queue.up {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlane_base::config;

    const DEMO: &str = r#"
schema = 1
interfaces = ["a", "b"]
rate = "20 Mbit/s"
delay = "25 ms"
queue = "125 kB"
errors = { kind = "uniform", rate = 0.05 }
"#;

    fn refusal(text: &str) -> String {
        let error = config::load::<AirConfig>(text, "air.toml").expect_err("must be refused");
        error.to_string()
    }

    #[test]
    fn one_value_for_both_directions_or_one_for_each() {
        let both: AirConfig = config::load(DEMO, "air.toml").unwrap();
        assert_eq!(both.rate.down, both.rate.up);
        assert_eq!(both.rate.down.to_string(), "20 Mbit/s");
        let text = DEMO.replace(
            "rate = \"20 Mbit/s\"",
            "rate = { down = '2 Mbit/s', up = '1 kbit/s' }",
        );
        let each: AirConfig = config::load(&text, "air.toml").unwrap();
        assert_eq!(
            each.rate.each().map(ToString::to_string),
            ["2 Mbit/s", "1 kbit/s"]
        );
    }

    const STEPS: &str = "{ kind = 'steps', every = '10 s', rates = ['20 Mbit/s', '5 Mbit/s'] }";
    const TIMES: &str = "{ kind = 'opportunities', file = 'lte.down' }";

    #[test]
    fn a_rate_is_what_it_may_be_in_a_scenario() {
        let with = |rate: &str| DEMO.replace("\"20 Mbit/s\"", rate);
        let mut config: AirConfig = config::load(&with(TIMES), "air.toml").unwrap();
        let gone = config.load_traces(|_| Err("there is no such file".to_owned()));
        assert!(gone.unwrap_err().to_string().contains("lte.down"));
        config.load_traces(|_| Ok(b"1\n2\n".to_vec())).unwrap();
        assert_eq!(config.rate.up.mean().unwrap().as_bps(), 12_032_000);
        let config: AirConfig = config::load(&with(STEPS), "air.toml").unwrap();
        assert_eq!(config.rate.up.mean().unwrap().as_bps(), 12_500_000);
        let two_state =
            "{ kind = 'two-state', good = '1 s', bad = '1 s', ber_good = 0, ber_bad = 1 }";
        let e = refusal(&with(STEPS).replace("{ kind = \"uniform\", rate = 0.05 }", two_state));
        assert!(e.contains("two-state-arrival"), "{e}");
    }

    #[test]
    fn what_is_explained_is_read_back() {
        for rate in ["'20 Mbit/s'", STEPS, TIMES] {
            let text = DEMO.replace("\"20 Mbit/s\"", rate);
            let config: AirConfig = config::load(&text, "air.toml").unwrap();
            let text = toml::to_string(&config).unwrap();
            assert_eq!(
                config::load::<AirConfig>(&text, "explained").unwrap(),
                config
            );
        }
    }

    #[test]
    fn refusals_say_file_line_and_what_would_be_right() {
        let e = refusal(&DEMO.replace("schema = 1", "schema = 2"));
        assert!(
            e.starts_with("air.toml:2:") && e.contains("schema = 1"),
            "{e}"
        );
        let e = refusal(&DEMO.replace("\"b\"", "\"a\""));
        assert!(
            e.starts_with("air.toml:3:") && e.contains("two different"),
            "{e}"
        );
        let e = refusal(&DEMO.replace("\"b\"", "\"a-name-that-is-too-long\""));
        assert!(
            e.starts_with("air.toml:3:") && e.contains("15 characters"),
            "{e}"
        );
        let e = refusal(&DEMO.replace("20 Mbit/s", "20 Mb"));
        assert!(e.starts_with("air.toml:4:") && e.contains("Mbit/s"), "{e}");
        let e = refusal(&DEMO.replace("20 Mbit/s", "0 bit/s"));
        assert!(
            e.starts_with("air.toml:4:") && e.contains("at least 1 bit/s"),
            "{e}"
        );
        let e = refusal(&DEMO.replace("125 kB", "125 B"));
        assert!(e.starts_with("air.toml:6:") && e.contains("1514 B"), "{e}");
        let e = refusal(&format!(
            "{DEMO}police.up = {{ rate = '1 Mbit/s', burst = '1 kB' }}"
        ));
        assert!(e.starts_with("air.toml:8:") && e.contains("1514 B"), "{e}");
        let e = refusal(&format!("{DEMO}outages = [{{ from = '2 s', to = '2 s' }}]"));
        assert!(e.starts_with("air.toml:8:") && e.contains("later"), "{e}");
        let e = refusal(&DEMO.replace("delay", "dely"));
        assert!(e.starts_with("air.toml:5:") && e.contains("`dely`"), "{e}");
        let e = refusal(&DEMO.replace("\"25 ms\"", "{ down = '25 ms', upp = '1 ms' }"));
        assert!(e.starts_with("air.toml:5:") && e.contains("`upp`"), "{e}");
        let e = refusal(&DEMO.replace("0.05", "5"));
        assert!(
            e.starts_with("air.toml:7:") && e.contains("between 0 and 1"),
            "{e}"
        );
    }
}
