//! `tc qdisc` with netem and tbf, as it is typed and as `tc qdisc show` prints it.
//!
//! What netem says exactly, and a link here does exactly: `delay`, `rate`, `limit`, `loss` (random),
//! `loss gemodel` and the two-state form of `loss state`. Everything else is put as near as it can be
//! or left out, with a note.
//!
//! `loss state` is a chain of four states, received and lost in gaps and in bursts. Gaps and bursts are
//! the two states of a Gilbert-Elliott link that has the same rates of entering and leaving bursts and
//! the same losses in each; without `p32`, `p23` and `p14` that is the chain itself.

mod command;
mod options;
mod units;

use airlane_base::BothWays;

use super::direction::{Direction, UNLIMITED};
use super::words::{ImportError, commands, nothing};
use super::write::Draft;
use super::{ImportedApp, ImportedScenario};
use command::{EXPECTED, Qdisc, qdisc};
use options::{Options, PACKET, Shaped, USUAL_LIMIT};

/// Makes a scenario of the qdiscs of one interface. What it sends goes "down"; `reverse` holds those
/// of the interface at the other end. `device` says which interface, where the text has several.
///
/// # Errors
/// Names the word that is not understood, and what could stand there. Places are those of `text`, or,
/// if the error says so, of `reverse`.
///
/// # Examples
/// ```
/// use airlane_sim::import::{ImportedApp, from_netem};
///
/// let import = from_netem("netem delay 25ms loss 5%", None, None, &[ImportedApp::File]).unwrap();
/// let scenario = airlane_sim::Scenario::from_toml(&import.text, "netem.toml").unwrap();
/// assert_eq!(scenario.links["link"].delay.down.to_string(), "25 ms");
/// ```
pub fn from_netem(
    text: &str,
    reverse: Option<&str>,
    device: Option<&str>,
    apps: &[ImportedApp],
) -> Result<ImportedScenario, ImportError> {
    let down = shaped(text, device)?;
    let mut notes = down.notes;
    let mut source = text.trim().to_owned();
    let up = match reverse {
        None => {
            notes.push(
                "the other direction: tc shapes what one interface sends, so what comes back has no delay \
                 and no loss (--reverse says otherwise)"
                    .to_owned(),
            );
            let mut open = Direction::open(USUAL_LIMIT);
            if down.direction.rate.mean() > Some(UNLIMITED) {
                open.rate = down.direction.rate.clone();
            }
            open
        }
        Some(text) => {
            let up = shaped(text, None).map_err(|error| ImportError {
                problem: format!("in the reverse direction: {}", error.problem),
                ..error
            })?;
            notes.extend(up.notes.iter().map(|note| format!("reverse: {note}")));
            source = format!("{source}\n# and in reverse\n{}", text.trim());
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
    };
    Ok(draft.finish(apps))
}

fn shaped(text: &str, device: Option<&str>) -> Result<Shaped, ImportError> {
    let commands = commands(text)?;
    let mut qdiscs = vec![];
    for command in &commands {
        qdiscs.extend(qdisc(command)?);
    }
    let shapes = |qdisc: &&Qdisc<'_>| matches!(qdisc.kind, "netem" | "tbf");
    let mut devices: Vec<&str> = qdiscs
        .iter()
        .filter(shapes)
        .map(|qdisc| qdisc.device.unwrap_or(""))
        .collect();
    devices.sort_unstable();
    devices.dedup();
    let device = match (device, devices.as_slice()) {
        (Some(device), devices) if devices.contains(&device) || *devices == [""] => devices
            .iter()
            .copied()
            .find(|known| *known == device)
            .unwrap_or(""),
        (None, [device]) => *device,
        (None, []) | (Some(_), []) => {
            let first = commands.first().and_then(|command| command.first());
            return Err(first.map_or_else(
                || nothing(EXPECTED),
                |word| {
                    word.wrong(
                        "nothing here is shaped by netem or tbf",
                        format!("expected {EXPECTED}"),
                    )
                },
            ));
        }
        (device, devices) => {
            let first = qdiscs.iter().find(|qdisc| shapes(qdisc));
            let word = first.expect("there are devices").word;
            let names = devices.join(", ");
            let problem = match device {
                Some(device) => format!("nothing shapes \"{device}\""),
                None => "more than one interface is shaped".to_owned(),
            };
            return Err(word.wrong(problem, format!("choose one by --dev: {names}")));
        }
    };
    let mut all = Options::default();
    for qdisc in qdiscs {
        if qdisc.device.unwrap_or("") == device {
            all.read(qdisc)?;
        }
    }
    Ok(all.finish())
}
