//! Advice for a node that is watched: what the page sends of a recording, and how far the answer is.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airlane_advise::{Apps, Goals};
use airlane_base::Duration;
use airlane_channel::trace::Trace;
use serde::{Deserialize, Serialize};

use crate::advise::{Told, told};
use crate::args::{AdviseArgs, QuestionArgs};
use crate::fault::BadInput;
use crate::{output, recording};

/// Maximum length of a question, bytes: two recordings as long as `airlane record` makes them, and some words.
pub(super) const LONGEST: usize = 2 * (64 << 20) + WORDS;
const WORDS: usize = 4 << 10;
/// The node runs on this machine as well.
const THREADS: usize = 1;

/// The first line of a question; the recordings follow.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Words {
    /// As after `--apps`; empty: the ones that are usual.
    apps: String,
    /// As after `--want`; empty: nothing.
    want: String,
    /// As after `--round-trip`; empty: unknown.
    round_trip: String,
    recordings: Vec<Sent>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    /// What its file is called.
    name: String,
    bytes: usize,
}

/// What `airlane advise` is asked.
#[derive(Debug)]
pub(super) struct Question {
    args: AdviseArgs,
    traces: Vec<Trace>,
}

impl Question {
    /// Reads what the page sends: a line of words, and the bytes of one recording or two. `file` is that of the node.
    pub(super) fn read(body: &[u8], file: Option<&Path>) -> anyhow::Result<Self> {
        let wrong = |what: String| BadInput(format!("this is no question for advice: {what}"));
        let end = body.iter().take(WORDS).position(|byte| *byte == b'\n');
        let end = end.ok_or_else(|| wrong("it has no line of words".to_owned()))?;
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
            traces: paths,
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
            question,
            want: want.transpose().map_err(|e| read("goals", e.to_string()))?,
            what_if: None,
            write: None,
        };
        Ok(Self { args, traces })
    }

    fn answer(self, desk: &Desk) -> anyhow::Result<Told> {
        let cut = self.traces.iter().zip(&self.args.question.traces);
        let cut = cut.filter_map(|(trace, path)| Some((trace.cut_at?, path.display())));
        let cut: String = cut
            .map(|(at, path)| {
                format!("{path} is cut off at byte {at}; what is before it is good.\n")
            })
            .collect();
        let progress = |done, all| desk.turn(Advice::Simulated { done, all });
        let Told { text, file } = told(self.traces, &self.args, progress)?;
        Ok(Told {
            text: cut + &output::uncoloured(&text),
            file,
        })
    }
}

/// How far advice is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub(super) enum Advice {
    /// Nobody has asked.
    #[default]
    None,
    /// The recording is being sent.
    Coming,
    /// It is being simulated.
    Simulated {
        /// Runs that are done.
        done: u64,
        /// All runs.
        all: u64,
    },
    /// It is there.
    Given {
        /// What `airlane advise` prints.
        text: String,
        /// The advised file, if a change is advised and the file is known.
        file: Option<String>,
    },
    /// There is none, and why.
    Failed {
        /// A sentence.
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

/// Where one question at a time is answered.
#[derive(Clone, Default)]
pub(super) struct Desk(Arc<Mutex<Advice>>);

impl Desk {
    fn open(&self) -> MutexGuard<'_, Advice> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, to: Advice) {
        *self.open() = to;
    }

    /// How far it is.
    pub(super) fn advice(&self) -> Advice {
        self.open().clone()
    }

    /// Has the desk for one question; none while there is another.
    pub(super) fn take(&self) -> Option<Turn> {
        let mut advice = self.open();
        if matches!(*advice, Advice::Coming | Advice::Simulated { .. }) {
            return None;
        }
        *advice = Advice::Coming;
        Some(Turn(self.clone()))
    }
}

/// The desk is this question's until there is an answer to it.
pub(super) struct Turn(Desk);

impl Turn {
    /// Answers in a thread of its own. A question that is none is answered at once.
    pub(super) fn answer(self, question: anyhow::Result<Question>) -> anyhow::Result<()> {
        let question = question.inspect_err(|error| self.0.turn(Advice::failed(error)))?;
        self.0.turn(Advice::Simulated { done: 0, all: 0 });
        let named = std::thread::Builder::new().name("advice".to_owned());
        named.spawn(move || {
            let Turn(desk) = &self;
            let said = question.answer(desk);
            desk.turn(match said {
                Ok(Told { text, file }) => Advice::Given { text, file },
                Err(error) => Advice::failed(&error),
            });
        })?;
        Ok(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let why = match *self.0.open() {
            Advice::Coming => "the recording has not come whole",
            Advice::Simulated { .. } => {
                "the simulation ended before there was an answer: what `airlane lab` wrote says why"
            }
            _ => return,
        };
        self.0.turn(Advice::Failed {
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
    fn what_is_wrong_with_a_question_is_said() {
        for (body, part) in [
            (b"".to_vec(), "no line of words"),
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
    fn one_question_at_a_time_and_one_that_breaks_off_ends() {
        let desk = Desk::default();
        let turn = desk.take().unwrap();
        assert!(desk.take().is_none());
        drop(turn);
        assert!(matches!(desk.advice(), Advice::Failed { .. }));
        assert!(desk.take().is_some());
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
