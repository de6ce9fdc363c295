//! `tc qdisc` with netem and tbf, as it is typed and as `tc qdisc show` prints it.
//!
//! `tc`'s qdiscs and classes are kept as it keeps them (`tree`), while a script runs (`script`); what one way through them
//! meets becomes one direction of a link (`chain`).
//!
//! What netem says exactly, and a link here does exactly: `delay`, `rate`, `limit`, `loss` (random),
//! `loss gemodel` and the two-state form of `loss state`. Everything else is put as near as it can be
//! or left out, with a note.
//!
//! `loss state` is a chain of four states, received and lost in gaps and in bursts. Gaps and bursts are
//! the two states of a Gilbert-Elliott link that has the same rates of entering and leaving bursts and
//! the same losses in each; without `p32`, `p23` and `p14` that is the chain itself.

mod chain;
mod options;
mod script;
mod shaper;
mod steps;
mod tree;
mod units;

use airlane_base::{BothWays, Duration};

use super::direction::{Direction, UNLIMITED};
use super::words::{ImportError, nothing};
use super::write::{Draft, USUAL_DURATION};
use super::{ImportedApp, ImportedScenario};
use chain::Shaped;
use options::{PACKET, USUAL_LIMIT};
use script::{Devices, EXPECTED, Script};
use tree::Leaf;

/// Which part of what `tc` was told becomes the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetemChoice<'a> {
    /// The interface, where the text has several; `container/eth0` where the name alone is several.
    pub device: Option<&'a str>,
    /// The class, such as `1:10`, where the interface has several.
    pub class: Option<&'a str>,
    /// The interface of the same text that sends the other way.
    pub reverse_device: Option<&'a str>,
    /// Its class, or that of the reverse text.
    pub reverse_class: Option<&'a str>,
    /// So far into a script that changes things with time.
    pub at: Option<Duration>,
    /// What files of rates that change with time are called, before `.down` and `.up`, where there may be such.
    pub rates: Option<&'a str>,
}

/// Makes a scenario of the qdiscs and classes of one interface. What it sends goes "down"; `reverse` holds those
/// of the interface at the other end, unless `choice` names one of the same text.
///
/// # Errors
/// Names the word that is not understood, and what could stand there. Places are those of `text`, or,
/// if the error says so, of `reverse`. Names what there is to choose from, if `choice` does not say it.
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

/// What of a text is asked for.
#[derive(Clone, Copy)]
struct Chosen<'a> {
    device: Option<&'a str>,
    class: Option<&'a str>,
    /// This interface is the other direction.
    not: Option<&'a str>,
    /// What says so on the command line.
    flags: [&'static str; 2],
}

fn shapes(devices: &Devices) -> bool {
    devices.values().any(|device| !device.leaves().is_empty())
}

fn nothing_at(problem: String, help: String) -> ImportError {
    ImportError {
        problem,
        help,
        ..nothing("")
    }
}

/// What holds at one time.
fn in_state(script: &Script, devices: &Devices, chosen: Chosen<'_>) -> Result<Shaped, ImportError> {
    let named = |name: &str, asked: &str| {
        name.is_empty() || name == asked || name.rsplit('/').next() == Some(asked)
    };
    let all: Vec<&String> = devices
        .iter()
        .filter(|(_, device)| !device.leaves().is_empty())
        .map(|(name, _)| name)
        .collect();
    if all.is_empty() {
        return Err(script
            .complaint()
            .unwrap_or_else(|| match script.is_empty() {
                true => nothing(EXPECTED),
                false => nothing_at(
                    "nothing here is shaped".to_owned(),
                    format!("expected {EXPECTED}"),
                ),
            }));
    }
    let fits = |name: &&&String| match (chosen.device, chosen.not) {
        (Some(asked), _) => named(name, asked),
        (None, Some(not)) => !named(name, not),
        (None, None) => true,
    };
    let found: Vec<&&String> = all.iter().filter(fits).collect();
    let [name] = found[..] else {
        let names: Vec<&str> = all.iter().map(|name| name.as_str()).collect();
        let problem = match chosen.device {
            Some(device) if found.is_empty() => format!("nothing shapes \"{device}\""),
            _ => "more than one interface is shaped".to_owned(),
        };
        let help = format!("choose one by {}: {}", chosen.flags[0], names.join(", "));
        return Err(nothing_at(problem, help));
    };
    let device = &devices[*name];
    let leaves = device.leaves();
    let asked = |leaf: &&Leaf<'_>| {
        chosen
            .class
            .is_none_or(|class| leaf.names.iter().any(|name| same(class, *name)))
    };
    let found: Vec<&Leaf<'_>> = leaves.iter().filter(asked).collect();
    match found[..] {
        [leaf] => Shaped::new(leaf),
        [first, .., _] if device.is_spread() && chosen.class.is_none() => {
            let one = Shaped::new(first)?;
            for leaf in &found[1..] {
                if Shaped::new(leaf)?.direction != one.direction {
                    return Err(several(&leaves, chosen, name));
                }
            }
            Ok(one)
        }
        _ => Err(several(&leaves, chosen, name)),
    }
}

fn several(leaves: &[Leaf<'_>], chosen: Chosen<'_>, device: &str) -> ImportError {
    let names: Vec<String> = leaves.iter().map(Leaf::name).collect();
    let on = match device {
        "" => String::new(),
        device => format!(" on {device}"),
    };
    let problem = match chosen.class {
        Some(class)
            if !leaves
                .iter()
                .any(|leaf| leaf.names.iter().any(|name| same(class, *name))) =>
        {
            format!("there is no class \"{class}\"{on} that shapes something")
        }
        Some(class) => format!("class \"{class}\"{on} has several below it"),
        None => format!("packets go several ways{on}, each shaped by itself"),
    };
    nothing_at(
        problem,
        format!("choose one by {}: {}", chosen.flags[1], names.join(", ")),
    )
}

/// Whether a class is written so.
fn same(text: &str, name: tree::Handle) -> bool {
    text == tree::shown(name)
        || (name[1] == 0 && text.trim_end_matches(':') == tree::shown(name).trim_end_matches(':'))
}
