//! Advice for a watched node: reads the recordings that the page sends, and reports progress.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airlane_advise::{Apps, Goals};
use airlane_base::Duration;
use airlane_channel::trace::Trace;
use serde::{Deserialize, Serialize};

use crate::advise::{Report, report};
use crate::args::{AdviseArgs, QuestionArgs};
use crate::fault::BadInput;
use crate::{output, recording};

/// Maximum length of a question, bytes: two recordings of the maximum that `airlane record` writes, and a line of options.
pub(super) const LONGEST: usize = 2 * (64 << 20) + WORDS;
const WORDS: usize = 4 << 10;
/// The node runs on this machine as well.
const THREADS: usize = 1;

/// The first line of a question; the recordings follow.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Words {
    /// The value of `--apps`; empty: the default.
    apps: String,
    /// The value of `--want`; empty: no goals.
    want: String,
    /// The value of `--round-trip`; empty: unknown.
    round_trip: String,
    recordings: Vec<Sent>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    /// Its file name.
    name: String,
    bytes: usize,
}

/// The arguments and recordings for `airlane advise`.
#[derive(Debug)]
pub(super) struct Question {
    args: AdviseArgs,
    traces: Vec<Trace>,
}

impl Question {
    /// Parses a body: a line of options, and the bytes of one or two recordings. `file` is the node's file.
    pub(super) fn read(body: &[u8], file: Option<&Path>) -> anyhow::Result<Self> {
        let wrong = |what: String| BadInput(format!("not a question for advice: {what}"));
        let end = body.iter().take(WORDS).position(|byte| *byte == b'\n');
        let end = end.ok_or_else(|| wrong("its first line is missing".to_owned()))?;
        let (words, mut rest) = (&body[..end], &body[end + 1..]);
        let words: Words = serde_json::from_slice(words).map_err(|e| wrong(e.to_string()))?;
        if !(1..=2).contains(&words.recordings.len()) {
            return Err(BadInput("choose one recording, or one of each end".to_owned()).into());
        }
        let (mut paths, mut traces) = (Vec::new(), Vec::new());
        for Sent { name, bytes } in &words.recordings {
            let (this, others) = rest
                .split_at_checked(*bytes)
                .ok_or_else(|| wrong("a recording is cut off".to_owned()))?;
            rest = others;
            let path = PathBuf::from(output::plain(name));
            traces.push(recording::of(this, &path)?);
            paths.push(path);
        }
        if !rest.is_empty() {
            return Err(wrong(format!("{} bytes follow it", rest.len())).into());
        }
        let said = |text: String| Some(text).filter(|text| !text.trim().is_empty());
        let read = |what: &str, error: String| BadInput(format!("{what}: {error}"));
        let apps = said(words.apps).map(|text| text.parse::<Apps>());
        let want = said(words.want).map(|text| text.parse::<Goals>());
        let round_trip = said(words.round_trip).map(|text| text.parse::<Duration>());
        let question = QuestionArgs {
            apps: apps
                .transpose()
                .map_err(|e| read("applications", e.to_string()))?
                .unwrap_or_default(),
            file: file.map(Path::to_owned),
            round_trip: round_trip
                .transpose()
                .map_err(|e| read("round trip", e.to_string()))?,
            runs: QuestionArgs::RUNS,
            length: QuestionArgs::LENGTH,
            seed: 1,
            threads: THREADS,
            json: false,
        };
        let args = AdviseArgs {
            traces: paths,
            question,
            search: None,
            want: want.transpose().map_err(|e| read("goals", e.to_string()))?,
            what_if: None,
            write: None,
            picture: None,
        };
        Ok(Self { args, traces })
    }

    fn answer(self, advisor: &Advisor) -> anyhow::Result<Report> {
        let cut = self.traces.iter().zip(&self.args.traces);
        let cut = cut.filter_map(|(trace, path)| Some(output::cut_off(path, trace.cut_at?) + "\n"));
        let cut: String = cut.collect();
        let progress = |done, all| advisor.set(Advice::Simulated { done, all });
        let Report { text, file } = report(self.traces, &self.args, progress)?;
        Ok(Report {
            text: cut + &output::uncoloured(&text),
            file,
        })
    }
}

/// The progress of advice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub(super) enum Advice {
    /// There was no question.
    #[default]
    None,
    /// The recording is being received.
    Coming,
    /// It is being simulated.
    Simulated {
        /// Finished runs.
        done: u64,
        /// All runs.
        all: u64,
    },
    /// The advice.
    Given {
        /// What `airlane advise` prints.
        text: String,
        /// The advised file, if a change is advised and the file is known.
        file: Option<String>,
    },
    /// The advice failed.
    Failed {
        /// The reason, a sentence.
        why: String,
    },
}

impl Advice {
    fn failed(error: &anyhow::Error) -> Self {
        Self::Failed {
            why: output::with_causes(error),
        }
    }
}

/// Answers one question at a time.
#[derive(Clone, Default)]
pub(super) struct Advisor(Arc<Mutex<Advice>>);

impl Advisor {
    fn open(&self) -> MutexGuard<'_, Advice> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, to: Advice) {
        *self.open() = to;
    }

    /// The progress of the latest question.
    pub(super) fn advice(&self) -> Advice {
        self.open().clone()
    }

    /// Reserves the advisor for one question; `None` while another is being answered.
    pub(super) fn reserve(&self) -> Option<Reserved> {
        let mut advice = self.open();
        if matches!(*advice, Advice::Coming | Advice::Simulated { .. }) {
            return None;
        }
        *advice = Advice::Coming;
        Some(Reserved(self.clone()))
    }
}

/// A reservation of the advisor, which ends with an answer.
pub(super) struct Reserved(Advisor);

impl Reserved {
    /// Answers in a separate thread. A malformed question fails at once.
    pub(super) fn answer(self, question: anyhow::Result<Question>) -> anyhow::Result<()> {
        let question = question.inspect_err(|error| self.0.set(Advice::failed(error)))?;
        self.0.set(Advice::Simulated { done: 0, all: 0 });
        let named = std::thread::Builder::new().name("advice".to_owned());
        named.spawn(move || {
            let Reserved(advisor) = &self;
            let said = question.answer(advisor);
            advisor.set(match said {
                Ok(Report { text, file }) => Advice::Given { text, file },
                Err(error) => Advice::failed(&error),
            });
        })?;
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let why = match *self.0.open() {
            Advice::Coming => "the recording was not received completely",
            Advice::Simulated { .. } => {
                "the simulation ended without an answer: the output of `airlane lab` says why"
            }
            _ => return,
        };
        self.0.set(Advice::Failed {
            why: why.to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn said(body: &[u8]) -> String {
        match Question::read(body, None) {
            Ok(_) => "a question".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    fn words(apps: &str, recordings: &str) -> Vec<u8> {
        let line = format!(
            "{{\"apps\":\"{apps}\",\"want\":\"\",\"round-trip\":\"\",\"recordings\":[{recordings}]}}\n"
        );
        line.into_bytes()
    }

    #[test]
    fn errors_in_a_question_are_named() {
        for (body, part) in [
            (b"".to_vec(), "first line is missing"),
            (b"{}\n".to_vec(), "missing field"),
            (words("", ""), "choose one recording"),
            (words("", "{\"name\":\"a\",\"bytes\":9}"), "cut off"),
            (words("", "{\"name\":\"a.trace\",\"bytes\":0}"), "a.trace: "),
            (
                words("", "{\"name\":\"a\",\"bytes\":18446744073709551615}"),
                "cut off",
            ),
            (
                words("", "{\"name\":\"a\",\"path\":\"/etc/passwd\"}"),
                "unknown field",
            ),
        ] {
            let said = said(&body);
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    #[test]
    fn one_question_is_answered_at_a_time_and_a_broken_one_fails() {
        let advisor = Advisor::default();
        let reserved = advisor.reserve().unwrap();
        assert!(advisor.reserve().is_none());
        drop(reserved);
        assert!(matches!(advisor.advice(), Advice::Failed { .. }));
        assert!(advisor.reserve().is_some());
    }

    proptest! {
        #[test]
        fn no_body_makes_it_panic(
            body in proptest::collection::vec(any::<u8>(), 0..300),
            name in "[a-z./\"\\\\]{0,8}",
            bytes in 0..400_usize,
        ) {
            said(&body);
            let recording = serde_json::json!({ "name": name, "bytes": bytes }).to_string();
            said(&[words("call*3", &recording), body].concat());
        }
    }
}
