//! Changes that a script makes while it sleeps between its commands. A changing rate becomes a file of sending
//! opportunities; a link has only one delay and one loss model, so if these change, one step has to be chosen.

use airlane_base::{Duration, Size};
use airlane_channel::{LinkRate, Opportunities, OpportunitiesConfig};

use super::chain::Shaped;
use super::choose::{Chosen, in_state, nothing_at, shapes};
use super::options::{PACKET, USUAL_LIMIT};
use super::script::Script;
use crate::import::direction::{Direction, UNLIMITED};
use crate::import::words::ImportError;

/// Sending opportunities, in a file.
pub(super) struct RateFile {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) lasts: Duration,
}

/// The settings from a time on.
type Step = (Duration, Shaped);

/// The settings `at` a time, or the constant ones; a changing rate goes into `file`, if a file is allowed.
pub(super) fn shaped(
    script: &Script,
    chosen: Chosen<'_>,
    at: Option<Duration>,
    file: Option<String>,
) -> Result<(Shaped, Option<RateFile>), ImportError> {
    let (end, last) = script.states.last().expect("a script has an end");
    if let Some(at) = at {
        let state = script.states.iter().rev().find(|(from, _)| *from <= at);
        let devices = state.map_or(last, |(_, devices)| devices);
        return Ok((in_state(script, devices, chosen)?, None));
    }
    let steps = steps(script, chosen)?;
    let Some((_, first)) = steps.first() else {
        return Ok((in_state(script, last, chosen)?, None));
    };
    if steps.len() == 1 {
        return Ok((first.clone(), None));
    }
    let changes = |help: &str| {
        let problem = format!("what is shaped changes with time, at {}", times(&steps));
        nothing_at(problem, help.to_owned())
    };
    let at_this_rate = |step: &Direction| Direction {
        rate: first.direction.rate.clone(),
        ..step.clone()
    };
    if !steps
        .iter()
        .all(|(_, step)| at_this_rate(&step.direction) == first.direction)
    {
        return Err(changes(
            "choose one of these by --at; rates alone become a trace, and not delays, queues and losses",
        ));
    }
    let Some(file) = file else {
        return Err(changes(
            "--output FILE writes these rates as a trace beside it; or choose one by --at",
        ));
    };
    let (shaped, rates) = trace(&steps, *end, file)
        .map_err(|problem| nothing_at(problem, "choose one of the steps by --at".to_owned()))?;
    Ok((shaped, Some(rates)))
}

/// The steps from the first shaped one to the last: before, there are no settings, and at the end a script may remove
/// everything.
fn steps(script: &Script, chosen: Chosen<'_>) -> Result<Vec<Step>, ImportError> {
    let mut steps: Vec<Step> = vec![];
    let states = &script.states;
    let first = states.iter().position(|(_, devices)| shapes(devices));
    let last = states.iter().rposition(|(_, devices)| shapes(devices));
    let Some((first, last)) = first.zip(last) else {
        return Ok(steps);
    };
    for (from, devices) in &states[first..=last] {
        let found = match shapes(devices) {
            true => in_state(script, devices, chosen)?,
            false => Shaped {
                direction: Direction::open(USUAL_LIMIT),
                seed: None,
                notes: vec![format!(
                    "rate: none was given; {UNLIMITED} stands for no limit"
                )],
            },
        };
        let before = steps.last().map(|(_, before)| &before.direction);
        if before != Some(&found.direction) {
            steps.push((*from, found));
        }
    }
    Ok(steps)
}

/// When the steps begin.
fn times(steps: &[Step]) -> String {
    let times: Vec<String> = steps.iter().map(|(from, _)| from.to_string()).collect();
    times.join(", ")
}

/// Turns a script that ends at `end` and changes only the rate into a file of opportunities.
fn trace(steps: &[Step], end: Duration, name: String) -> Result<(Shaped, RateFile), String> {
    let [(began, first), .., (last, _)] = steps else {
        unreachable!("there are several steps");
    };
    let before = steps[steps.len() - 2].0;
    let ends = match end > *last {
        true => end,
        false => *last + last.saturating_sub(before),
    };
    let lasts = ends.saturating_sub(*began);
    let mut notes: Vec<String> = vec![];
    for note in steps.iter().flat_map(|(_, step)| &step.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    let rates = steps
        .iter()
        .map(|(_, step)| step.direction.rate.to_string());
    notes.push(format!(
        "rate: {} from {} on; {name} has the times at which packets of {} B may leave, and begins again after {lasts}",
        rates.collect::<Vec<_>>().join(", "),
        times(steps),
        PACKET.0,
    ));
    if end <= *last {
        notes.push(format!(
            "rate: nothing says how long the last one holds; as long as the one before it, until {ends}"
        ));
    }
    let row = |(from, step): &Step| {
        let rate = step.direction.rate.mean();
        let mbps = rate.map_or(0.0, |rate| rate.as_bps() as f64 / 1e6);
        [from.as_secs_f64(), mbps]
    };
    let mut rows: Vec<[f64; 2]> = steps.iter().map(row).collect();
    rows.push([ends.as_secs_f64(), 0.0]);
    let size = Size::from_bytes(PACKET.0);
    let times = Opportunities::of_steps(&rows, size).map_err(|error| error.to_string())?;
    let text = times.to_text();
    let mut rate = LinkRate::Opportunities(OpportunitiesConfig::new(name.clone(), Some(size)));
    rate.load(|_| Ok(text.clone().into_bytes()))
        .map_err(|error| error.to_string())?;
    let shaped = Shaped {
        direction: Direction {
            rate,
            ..first.direction.clone()
        },
        seed: first.seed,
        notes,
    };
    Ok((shaped, RateFile { name, text, lasts }))
}
