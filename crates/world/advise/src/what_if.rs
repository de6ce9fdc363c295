//! Changed links and traffic: `loss=2x`, `rate=0.5x`, `delay=2x`, `call=10`.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::BadWord;
use crate::apps::{AppKind, Apps};
use crate::link::Link;

/// One change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WhatIf {
    /// Loss times a factor.
    Loss(f64),
    /// Rates times a factor.
    Rate(f64),
    /// Delays times a factor.
    Delay(f64),
    /// Another number of applications of a kind.
    Apps(AppKind, u32),
}

/// A list of changes, each applied by itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WhatIfs(pub Vec<WhatIf>);

const WORDS: &str =
    "write loss=2x, rate=0.5x, delay=2x, or a number of applications, such as call=10";
/// Limits of a factor.
const FACTORS: [f64; 2] = [0.01, 100.0];

impl WhatIf {
    /// The changed link and applications.
    pub(crate) fn applied(self, link: &Link, apps: &Apps) -> (Link, Apps) {
        match self {
            Self::Loss(times) => (link.lossier(times), apps.clone()),
            Self::Rate(times) => (link.faster(times), apps.clone()),
            Self::Delay(times) => (link.longer(times), apps.clone()),
            Self::Apps(kind, count) => (link.clone(), apps.with(kind, count)),
        }
    }
}

impl FromStr for WhatIf {
    type Err = BadWord;
    fn from_str(text: &str) -> Result<Self, BadWord> {
        let wrong = || BadWord::new(text, WORDS);
        let (name, value) = text.trim().split_once('=').ok_or_else(wrong)?;
        if let Some(kind) = AppKind::ALL.into_iter().find(|kind| kind.name() == name) {
            let apps: Apps = format!("{name}*{value}").parse()?;
            return Ok(Self::Apps(kind, apps.0[0].count));
        }
        let times = value
            .strip_suffix('x')
            .and_then(|value| value.parse::<f64>().ok());
        let times = times.filter(|times| (FACTORS[0]..=FACTORS[1]).contains(times));
        let times = times.ok_or_else(wrong)?;
        match name {
            "loss" => Ok(Self::Loss(times)),
            "rate" => Ok(Self::Rate(times)),
            "delay" => Ok(Self::Delay(times)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for WhatIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loss(times) => write!(f, "loss={times}x"),
            Self::Rate(times) => write!(f, "rate={times}x"),
            Self::Delay(times) => write!(f, "delay={times}x"),
            Self::Apps(kind, count) => write!(f, "{}={count}", kind.name()),
        }
    }
}

impl Serialize for WhatIf {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl FromStr for WhatIfs {
    type Err = BadWord;
    fn from_str(text: &str) -> Result<Self, BadWord> {
        text.split(',')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read() {
        let all: WhatIfs = "loss=2x,rate=0.5x,call=10".parse().unwrap();
        let words: Vec<String> = all.0.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["loss=2x", "rate=0.5x", "call=10"]);
        for text in ["loss=2", "loss", "call=0", "luck=2x", "rate=0x"] {
            assert!(text.parse::<WhatIfs>().is_err(), "{text}");
        }
    }
}
