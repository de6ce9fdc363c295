//! `tc qdisc` with netem and tbf, as typed and as `tc qdisc show` prints it.
//!
//! Qdiscs and classes are kept in a tree as `tc` keeps them (`tree`), while a script runs (`script`); the qdiscs
//! along one path through the tree become one direction of a link (`chain`).
//!
//! A link here does exactly what these options of netem do: `delay` with jitter and its distribution, `rate`,
//! `limit`, `loss` (random), `loss gemodel`, the two-state form of `loss state`, and `reorder` without a gap.
//! Everything else is approximated or left out, with a note.
//!
//! `loss state` is a chain of four states: received and lost, each in gaps and in bursts. It becomes a
//! Gilbert-Elliott link whose two states are gaps and bursts, with the same transition rates and the same loss in
//! each; without `p32`, `p23` and `p14` the two are identical.

mod chain;
mod choose;
mod options;
mod script;
mod shaper;
mod steps;
mod tree;
mod units;

use airlane_base::{BothWays, Duration};

use super::direction::{Direction, UNLIMITED};
use super::words::ImportError;
use super::write::{Draft, USUAL_DURATION};
use super::{ImportedApp, ImportedScenario};
use choose::Chosen;
use options::{PACKET, USUAL_LIMIT};
use script::Script;

/// Which part of the input becomes the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetemChoice<'a> {
    /// The interface, if the text has several; `container/eth0` if the name alone is ambiguous.
    pub device: Option<&'a str>,
    /// The class, such as `1:10`, if the interface has several.
    pub class: Option<&'a str>,
    /// The interface of the same text that sends in the reverse direction.
    pub reverse_device: Option<&'a str>,
    /// Its class, or that of the reverse text.
    pub reverse_class: Option<&'a str>,
    /// The time to take the settings from, in a script that changes them over time.
    pub at: Option<Duration>,
    /// Base name of the files for rates that change over time (`.down` and `.up` are appended), if such files are
    /// allowed.
    pub rates: Option<&'a str>,
}

/// Makes a scenario from the qdiscs and classes of one interface, which sends "down"; `reverse` holds those of the
/// interface at the other end, unless `choice` names one in the same text.
///
/// # Errors
/// Names the word that is not understood, and what could stand there. Positions refer to `text`, or, if the error
/// says so, to `reverse`. If a choice is needed that `choice` does not make, lists the options.
///
/// # Examples
/// ```
/// use airlane_sim::import::{ImportedApp, NetemChoice, from_netem};
///
/// let choice = NetemChoice::default();
/// let import = from_netem("netem delay 25ms loss 5%", None, &choice, &[ImportedApp::File]).unwrap();
/// let scenario = airlane_sim::Scenario::from_toml(&import.text, "netem.toml").unwrap();
/// assert_eq!(scenario.links["link"].delay.down.to_string(), "25 ms");
/// ```
pub fn from_netem(
    text: &str,
    reverse: Option<&str>,
    choice: &NetemChoice<'_>,
    apps: &[ImportedApp],
) -> Result<ImportedScenario, ImportError> {
    let script = Script::read(text)?;
    let forth = Chosen {
        device: choice.device,
        class: choice.class,
        not: choice.reverse_device.filter(|_| reverse.is_none()),
        flags: ["--dev", "--class"],
    };
    let back = Chosen {
        device: choice.reverse_device,
        class: choice.reverse_class,
        not: None,
        flags: ["--reverse-dev", "--reverse-class"],
    };
    let file = |way: &str| choice.rates.map(|name| format!("{name}.{way}"));
    let (down, rates) = steps::shaped(&script, forth, choice.at, file("down"))?;
    let mut rates = Vec::from_iter(rates);
    let mut notes = script.notes.clone();
    notes.extend(down.notes);
    let mut source = text.trim().to_owned();
    let reversed = match (reverse, choice.reverse_device) {
        (Some(text), _) => {
            source = format!("{source}\n# and in reverse\n{}", text.trim());
            let up = Script::read(text)
                .and_then(|script| steps::shaped(&script, back, choice.at, file("up")));
            Some(up.map_err(|error| ImportError {
                problem: format!("in the reverse direction: {}", error.problem),
                ..error
            })?)
        }
        (None, Some(_)) => Some(steps::shaped(&script, back, choice.at, file("up"))?),
        (None, None) => None,
    };
    let up = match reversed {
        None => {
            notes.push(
                "the other direction: tc shapes what one interface sends, so what comes back has no delay \
                 and no loss (--reverse and --reverse-dev say otherwise)"
                    .to_owned(),
            );
            let mut open = Direction::open(USUAL_LIMIT);
            if rates.is_empty() && down.direction.rate.mean() > Some(UNLIMITED) {
                open.rate = down.direction.rate.clone();
            }
            open
        }
        Some((up, more)) => {
            rates.extend(more);
            notes.extend(up.notes.iter().map(|note| format!("reverse: {note}")));
            up.direction
        }
    };
    let draft = Draft {
        name: "netem",
        source: &source,
        seed: down.seed.unwrap_or(1),
        ends: ["sender", "receiver"],
        ways: BothWays {
            down: down.direction,
            up,
        },
        packet: PACKET,
        notes,
        duration: rates
            .iter()
            .map(|rates| rates.lasts)
            .max()
            .unwrap_or(USUAL_DURATION),
    };
    Ok(ImportedScenario {
        beside: rates
            .into_iter()
            .map(|rates| (rates.name, rates.text))
            .collect(),
        ..draft.finish(apps)
    })
}
