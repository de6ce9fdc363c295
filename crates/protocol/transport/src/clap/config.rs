//! The settings of a CLAP connection, the same at both ends (Gopal 2007, section 3.2).

use airlane_base::{Duration, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which receiver: the versions differ in when it reports what is missing, and in nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClapVersion {
    /// No report: the sender sends the whole file at a fixed rate, over and over, until the receiver says that it has all:
    /// what CLAP was argued against. Source: Gopal 2007, section 3.1.
    Carousel,
    /// A report when the sender asks, which it does once the packets that are not confirmed fill its buffer; until the
    /// report has come it sends nothing: a forerunner that was given up. Source: Gopal 2007, section 7.6.
    SenderDriven,
    /// A report whenever a packet comes and one before it is missing, from the first missing packet on: a forerunner that
    /// was given up. Source: Gopal 2007, section 7.6.
    Spontaneous,
    /// Periodic reports from the first missing packet on. Source: Gopal 2007, section 3.2.2.1 and chapter 4.
    Beta,
    /// Each loss is reported once, and all that is missing at the end of the file. Source: Gopal 2007, section 3.2.2.2
    /// and chapter 5.
    #[default]
    Final,
}

impl ClapVersion {
    const fn name(self) -> &'static str {
        match self {
            Self::Carousel => "carousel",
            Self::SenderDriven => "sender-driven",
            Self::Spontaneous => "spontaneous",
            Self::Beta => "beta",
            Self::Final => "final",
        }
    }
}

/// What the sender makes of free places in its interface's queue when the interface had nothing to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowRule {
    /// The rate grows by a share of them, which reaches the rates that were published. Source: Gopal 2007, sections
    /// 3.2.1.1 (c) and 5.6.1.
    #[default]
    Additive,
    /// The rate is a share of them. Source: Gopal 2007, section 3.2.1.2, as printed.
    Literal,
}

/// The settings of a CLAP connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ClapConfig {
    /// When the receiver reports what is missing.
    pub version: ClapVersion,
    /// How the rate follows the sender's interface.
    pub flow_rule: FlowRule,
    /// This often the rate is decided anew, and the interface asked. Source: Gopal 2007, section 3.2.1.
    pub interval: Duration,
    /// This share of the free places in the interface's queue is used, above 0 and at most 1. Source: Gopal 2007,
    /// section 3.2.1.2.
    pub queue_share: f64,
    /// Of `carousel`: so many packets leave in a second; 750 of 1000 B are the source's 6 Mbit/s. Source: Gopal 2007,
    /// section 3.1. Left out: `750`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "packets/s"))]
    pub packets_per_second: Option<u32>,
    /// Of `final`: a loss is reported once so many packets, it included, have been sent since. Source: docs/lab/choices.md.
    /// Left out: `32`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "packets"))]
    pub nack_threshold: Option<u32>,
    /// Of `final`: all that is missing is reported again and again once so many packets or fewer are to come. Left out: a
    /// tenth of the file, of which many packets come twice if it is long. Source: Gopal 2007, section 3.2.2.2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "packets"))]
    pub sweep_last: Option<u32>,
    /// Of `beta`: there are at least this long between two reports, and at most as long, so that each is forced; of
    /// `spontaneous`: a sender that is silent for so long is told what is missing; of `sender-driven`: a report that has not
    /// come for so long is asked for again. Source: Gopal 2007, section 3.2.2.1. Left out: `"100 ms"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nack_period: Option<Duration>,
    /// Of `beta`, `spontaneous` and `sender-driven`: a report has at most this much, one bit for a packet; the buffer of
    /// `sender-driven` holds as many packets. Source: Gopal 2007, section 5.6.2. Left out: `"32 B"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bitmap: Option<Size>,
    /// Of `final`: each so many packets that are complete are reported as such; 0 for never. Source: Gopal 2007, section
    /// 3.2.2.2. Left out: `0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "packets"))]
    pub milestone: Option<u32>,
    /// Headers of every packet, those of IP included. Source: Gopal 2007, section 3.2.3.
    pub header_size: Size,
    /// Whether the sender asks the nodes on its way for the least that one of them offers, every interval. Source: Gopal
    /// 2007, section 3.3.3.
    pub probe: bool,
    /// With `probe`: what the nodes on the way said counts for so long; after that only what the own interface says.
    /// Source: Gopal 2007, section 3.3.3. Left out: for two intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route_lasts: Option<Duration>,
}

impl Default for ClapConfig {
    fn default() -> Self {
        Self {
            version: ClapVersion::default(),
            flow_rule: FlowRule::default(),
            interval: Duration::from_millis(100),
            queue_share: 0.5,
            packets_per_second: None,
            nack_threshold: None,
            sweep_last: None,
            nack_period: None,
            bitmap: None,
            milestone: None,
            header_size: Size::from_bytes(40),
            probe: false,
            route_lasts: None,
        }
    }
}

/// CLAP's own header: the part of `header-size` that is not IP's (CLAP-Z1).
pub(crate) const HEADER_LEN: u64 = 20;
/// A longer header is most likely a packet size given by mistake.
const LONGEST_HEADER: u64 = 1_000;
/// The most packets in a file: one bit for each is 2 MiB. A SYN that announces more is refused, so that no peer can
/// make a receiver allocate more.
pub const MOST_PACKETS: u32 = 1 << 24;
/// The most bitmap bytes in a NACK of CLAP-final, which is what a packet of the source carries; the rest goes into
/// the next NACK.
pub(crate) const LONGEST_BITMAP: u32 = 1_000;
/// How long a SYN first waits for its answer, and a FIN each time (CLAP-P14 and P15).
pub(crate) const ANSWER_WAIT: Duration = Duration::from_secs(1);
/// A receiver that has no packet yet sends a report after this long; otherwise a file whose every packet is lost
/// would end in silence.
pub(crate) const FIRST_WAIT: Duration = Duration::from_secs(16);
/// How often a SYN or a FIN is repeated.
pub(crate) const REPEATS: u32 = 5;
/// An end that has heard nothing for this long gives up (CLAP-P17).
pub(crate) const GIVE_UP: Duration = Duration::from_secs(64);

impl ClapConfig {
    /// Checks the constraints that the types do not express.
    ///
    /// # Errors
    /// A message that names the key, what is wrong with its value, and what would be right.
    pub fn validate(&self) -> Result<(), String> {
        let longest = Duration::from_secs(10);
        self.check_effects()?;
        for (key, value) in [
            ("interval", self.interval),
            ("nack-period", self.nack_period()),
        ] {
            if value < Duration::from_millis(1) || value > longest {
                return Err(format!(
                    "{key} = \"{value}\" cannot be: \"1 ms\" to \"{longest}\""
                ));
            }
        }
        if !(self.queue_share > 0.0 && self.queue_share <= 1.0) {
            let share = self.queue_share;
            return Err(format!(
                "queue-share = {share} cannot be: above 0 and at most 1"
            ));
        }
        if self.nack_threshold() == 0 {
            return Err("nack-threshold = 0 cannot be: at least 1 packet".to_owned());
        }
        if self.fixed_rate() == Some(0) {
            return Err("packets-per-second = 0 cannot be: at least 1".to_owned());
        }
        let bitmap = self.bitmap();
        if !(1..=u64::from(LONGEST_BITMAP)).contains(&bitmap.as_bytes()) {
            return Err(format!(
                "bitmap = \"{bitmap}\" cannot be: \"1 B\" to \"{LONGEST_BITMAP} B\""
            ));
        }
        if !(HEADER_LEN..=LONGEST_HEADER).contains(&self.header_size.as_bytes()) {
            let header = self.header_size;
            return Err(format!(
                "header-size = \"{header}\" cannot be: \"{HEADER_LEN} B\", which CLAP's own header has, \
                 to \"{LONGEST_HEADER} B\""
            ));
        }
        Ok(())
    }

    /// Refuses what this version does not read.
    fn check_effects(&self) -> Result<(), String> {
        use ClapVersion::{Beta, Carousel, Final, SenderDriven, Spontaneous};
        let usual = Self::default();
        let rule = self.flow_rule != usual.flow_rule;
        let share = self.queue_share != usual.queue_share;
        let periods = &[Beta, Spontaneous, SenderDriven][..];
        let adapts = &[Final, Beta, Spontaneous, SenderDriven][..];
        for (key, stated, readers) in [
            (
                "packets-per-second",
                self.packets_per_second.is_some(),
                &[Carousel][..],
            ),
            ("nack-threshold", self.nack_threshold.is_some(), &[Final]),
            ("sweep-last", self.sweep_last.is_some(), &[Final]),
            ("milestone", self.milestone.is_some(), &[Final]),
            ("nack-period", self.nack_period.is_some(), periods),
            ("bitmap", self.bitmap.is_some(), periods),
            ("flow-rule", rule, adapts),
            ("queue-share", share, adapts),
            ("probe", self.probe, adapts),
        ] {
            if stated && !readers.contains(&self.version) {
                let names: Vec<_> = readers
                    .iter()
                    .map(|v| format!("\"{}\"", v.name()))
                    .collect();
                return Err(format!(
                    "{key} does nothing with version = \"{}\"; leave it out, or version = {}",
                    self.version.name(),
                    names.join(" or ")
                ));
            }
        }
        if self.route_lasts.is_some() && !self.probe {
            return Err("route-lasts does nothing without probe = true".to_owned());
        }
        Ok(())
    }

    /// States every value that this version reads, so that what is printed is what runs.
    pub fn resolve(&mut self) {
        match self.version {
            ClapVersion::Carousel => self.packets_per_second = self.fixed_rate(),
            ClapVersion::SenderDriven | ClapVersion::Spontaneous | ClapVersion::Beta => {
                self.nack_period = Some(self.nack_period());
                self.bitmap = Some(self.bitmap());
            }
            ClapVersion::Final => {
                self.nack_threshold = Some(self.nack_threshold());
                self.milestone = Some(self.milestone());
            }
        }
    }

    /// Packets a second, if no interface decides.
    pub(crate) fn fixed_rate(&self) -> Option<u32> {
        (self.version == ClapVersion::Carousel).then(|| self.packets_per_second.unwrap_or(750))
    }

    /// Packets sent since a loss, it included, when it is reported.
    pub fn nack_threshold(&self) -> u32 {
        self.nack_threshold.unwrap_or(32)
    }

    pub(crate) fn milestone(&self) -> u32 {
        self.milestone.unwrap_or(0)
    }

    pub(crate) fn nack_period(&self) -> Duration {
        self.nack_period.unwrap_or(Duration::from_millis(100))
    }

    fn bitmap(&self) -> Size {
        self.bitmap.unwrap_or(Size::from_bytes(32))
    }

    /// The longest packet that a receiver sends, headers included.
    pub fn longest_report(&self) -> Size {
        Size::from_bytes(self.header_size.as_bytes() + u64::from(self.report_span() / 8))
    }

    /// The most packets that one report spans.
    pub(crate) fn report_span(&self) -> u32 {
        let bytes = match self.version {
            ClapVersion::SenderDriven | ClapVersion::Spontaneous | ClapVersion::Beta => {
                u32::try_from(self.bitmap().as_bytes()).unwrap_or(LONGEST_BITMAP)
            }
            ClapVersion::Final | ClapVersion::Carousel => LONGEST_BITMAP,
        };
        bytes.clamp(1, LONGEST_BITMAP) * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_set_some_keys_only() {
        let config: ClapConfig = toml::from_str("version = \"beta\"\nbitmap = \"16 B\"").unwrap();
        let expected = ClapConfig {
            version: ClapVersion::Beta,
            bitmap: Some(Size::from_bytes(16)),
            ..ClapConfig::default()
        };
        assert_eq!(config, expected);
        assert!(toml::from_str::<ClapConfig>("rto = 1").is_err());
    }

    #[test]
    fn impossible_values_are_refused_by_key() {
        let wrong = |change: fn(&mut ClapConfig)| {
            let mut config = ClapConfig::default();
            change(&mut config);
            config.validate().unwrap_err()
        };
        assert!(ClapConfig::default().validate().is_ok());
        assert!(wrong(|c| c.interval = Duration::ZERO).starts_with("interval"));
        assert!(
            wrong(|c| {
                c.version = ClapVersion::Beta;
                c.nack_period = Some(Duration::from_secs(11));
            })
            .starts_with("nack-period")
        );
        assert!(wrong(|c| c.queue_share = f64::NAN).starts_with("queue-share"));
        assert!(wrong(|c| c.nack_threshold = Some(0)).starts_with("nack-threshold"));
        assert!(
            wrong(|c| {
                c.version = ClapVersion::Beta;
                c.bitmap = Some(Size::from_bytes(0));
            })
            .starts_with("bitmap")
        );
        assert!(wrong(|c| c.header_size = Size::from_bytes(19)).starts_with("header-size"));
    }

    #[test]
    fn a_setting_that_a_version_does_not_read_is_refused_with_both_names() {
        let keys = [
            ("packets-per-second = 8", &["carousel"][..]),
            ("nack-threshold = 8", &["final"]),
            ("sweep-last = 8", &["final"]),
            ("milestone = 8", &["final"]),
            (
                "nack-period = \"50 ms\"",
                &["sender-driven", "spontaneous", "beta"],
            ),
            (
                "bitmap = \"4 B\"",
                &["sender-driven", "spontaneous", "beta"],
            ),
            (
                "probe = true",
                &["sender-driven", "spontaneous", "beta", "final"],
            ),
            (
                "queue-share = 0.25",
                &["sender-driven", "spontaneous", "beta", "final"],
            ),
        ];
        for version in ["carousel", "sender-driven", "spontaneous", "beta", "final"] {
            let read = |key: &str| {
                let text = format!("version = \"{version}\"\n{key}");
                toml::from_str::<ClapConfig>(&text).unwrap()
            };
            // All that it reads is printed, and reads back.
            let mut config = read("");
            config.resolve();
            config.validate().unwrap();
            let text = toml::to_string(&config).unwrap();
            assert_eq!(toml::from_str::<ClapConfig>(&text).unwrap(), config);
            for (key, readers) in keys {
                let name = key.split(' ').next().unwrap();
                if readers.contains(&version) {
                    read(key).validate().unwrap();
                    assert!(name == "sweep-last" || text.contains(name), "{text}");
                } else {
                    let error = read(key).validate().unwrap_err();
                    let both = format!("{name} does nothing with version = \"{version}\"");
                    assert!(error.starts_with(&both), "{error}");
                }
            }
        }
        let lasting = "route-lasts = \"1 s\"";
        let config: ClapConfig = toml::from_str(lasting).unwrap();
        assert!(config.validate().unwrap_err().contains("probe = true"));
        let config: ClapConfig = toml::from_str(&format!("probe = true\n{lasting}")).unwrap();
        config.validate().unwrap();
    }
}
