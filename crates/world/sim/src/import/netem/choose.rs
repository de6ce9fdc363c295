//! Chooses the path through interfaces, qdiscs and classes that becomes the link.

use super::chain::Shaped;
use super::script::{Devices, EXPECTED, Script};
use super::tree::{Handle, Leaf, shown};
use crate::import::words::{ImportError, nothing};

/// The requested interface and class.
#[derive(Clone, Copy)]
pub(super) struct Chosen<'a> {
    pub(super) device: Option<&'a str>,
    pub(super) class: Option<&'a str>,
    /// An interface to exclude, because it is the other direction.
    pub(super) not: Option<&'a str>,
    /// The command-line flags for this choice.
    pub(super) flags: [&'static str; 2],
}

pub(super) fn shapes(devices: &Devices) -> bool {
    devices.values().any(|device| !device.leaves().is_empty())
}

/// An error about the text as a whole.
pub(super) const fn nothing_at(problem: String, help: String) -> ImportError {
    ImportError {
        line: 0,
        column: 0,
        problem,
        help,
    }
}

/// Chooses among the settings at one time.
pub(super) fn in_state(
    script: &Script,
    devices: &Devices,
    chosen: Chosen<'_>,
) -> Result<Shaped, ImportError> {
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
    let help = format!("choose one by {}: {}", chosen.flags[1], names.join(", "));
    match leaves.first().and_then(Leaf::root) {
        Some(word) => word.wrong(problem, help),
        None => nothing_at(problem, help),
    }
}

/// Whether the text names this class.
fn same(text: &str, name: Handle) -> bool {
    text == shown(name)
        || (name[1] == 0 && text.trim_end_matches(':') == shown(name).trim_end_matches(':'))
}
