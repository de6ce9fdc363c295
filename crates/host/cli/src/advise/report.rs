//! The report of `airlane advise`: the table, a sentence for each candidate, and the advice.

use std::fmt::Write as _;

use airlane_advise::{
    Advice, Candidate, Choice, Compared, GoalState, Goals, Kind, Outcome, rewritten,
};
use anyhow::Context as _;

use super::words::{balance, balanced, capital, head, name, of_runs, open, show};
use crate::args::AdviseArgs;
use crate::fault::BadInput;
use crate::quantity::{Estimate, Unit};
use crate::table::{Align, Table as Lines};

/// A table with a line for each candidate.
pub(super) fn table(advice: &Advice, goals: &Goals) -> String {
    let mut heads = vec![("candidate".to_owned(), Align::Left)];
    heads.extend(
        advice
            .measures
            .iter()
            .map(|measure| (head(measure), Align::Right)),
    );
    if !goals.0.is_empty() {
        heads.push(("goals".to_owned(), Align::Left));
    }
    let mut lines = Lines::new(heads);
    for outcome in &advice.outcomes {
        let mut cells = vec![name(outcome.kind).to_owned()];
        let values = advice.measures.iter().zip(&outcome.values);
        cells.extend(values.map(|(measure, value)| show(measure, value)));
        let missed = outcome.goals.iter().zip(&goals.0);
        let missed = missed.filter(|(state, _)| **state != GoalState::Met);
        let missed: Vec<String> = missed
            .map(|(state, goal)| match state {
                GoalState::Missed => format!("{goal} missed"),
                _ => format!("{goal} unsure"),
            })
            .collect();
        if !goals.0.is_empty() {
            let all = if missed.is_empty() {
                "met".to_owned()
            } else {
                missed.join(", ")
            };
            cells.push(all);
        }
        lines.row(cells);
    }
    format!(
        "{}{}; without the error of the model.\n\n",
        lines.render(),
        capital(&of_runs(advice))
    )
}

/// What a candidate changes, as the second half of a sentence.
const fn does(kind: Kind) -> &'static str {
    match kind {
        Kind::Without => "sends packets as they are",
        Kind::NoRepair => "has one queue and repairs nothing",
        Kind::Default => "is the shortest file",
        Kind::Yours => "is as it is",
        Kind::PagesCopied => "sends each frame of pages again after 5 ms",
        Kind::PagesCopiedLate => {
            "sends each frame of pages again after 30 ms, when most bursts are over"
        }
        Kind::PagesFirst => "gives pages three times their share while others want the link",
        Kind::CallsYounger => "drops packets of calls at half the age",
        Kind::Searched => "is the best of the settings that were searched",
    }
}

/// What a candidate is, with the changes of one that was searched for.
fn what(advice: &Advice, kind: Kind) -> String {
    let changes = candidate(advice, kind).map_or(&[][..], |candidate| &candidate.changes);
    match changes {
        [] => does(kind).to_owned(),
        changes => format!("{} ({})", does(kind), changes.join("; ")),
    }
}

pub(super) fn sentences(advice: &Advice, goals: &Goals, recorded: f64) -> String {
    let base = name(advice.base);
    let mut text = String::new();
    let rate = |bps: f64| Estimate::single(bps).show(Unit::BitsPerSecond);
    let _ = writeln!(
        text,
        "Self-check: while it was in use the link carried {} on average; simulated, with {base} it carries {}.{}",
        rate(recorded),
        rate(advice.carried_bps),
        match recorded > 1.15 * advice.carried_bps {
            true =>
                " Either --apps names fewer applications than use the link, or the real senders do better than the simulated ones.",
            false => "",
        }
    );
    let _ = writeln!(
        text,
        "Is it worth it? Over sending as it is, {base} {}.",
        balanced(&advice.worth)
    );
    if let Some(senders) = &advice.senders {
        let _ = writeln!(
            text,
            "Senders with BBR: {base} {}.",
            balanced(&senders.gains)
        );
    }
    for outcome in &advice.outcomes {
        if outcome.kind == advice.base || outcome.kind == Kind::Without {
            continue;
        }
        let _ = writeln!(
            text,
            "{}: {}; beside {base} it {}.",
            capital(name(outcome.kind)),
            what(advice, outcome.kind),
            balanced(&outcome.beside_base)
        );
    }
    if !advice.elsewhere.is_empty() {
        text.push_str("\nWhat if\n");
        let mut heads = vec![("".to_owned(), Align::Left), ("".to_owned(), Align::Left)];
        let most = advice.elsewhere.iter().max_by_key(|e| e.measures.len());
        heads.extend(
            most.iter()
                .flat_map(|e| &e.measures)
                .map(|m| (head(m), Align::Right)),
        );
        let mut lines = Lines::new(heads);
        for at in &advice.elsewhere {
            for (who, values) in [(name(Kind::Without), &at.without), (base, &at.base)] {
                let mut cells = vec![at.what_if.to_string(), who.to_owned()];
                cells.extend(at.measures.iter().zip(values).map(|(m, v)| show(m, v)));
                lines.row(cells);
            }
        }
        text.push_str(&lines.render());
        for at in &advice.elsewhere {
            let missed = goals.0.iter().zip(&at.goals);
            let missed = missed.filter(|(_, state)| **state == GoalState::Missed);
            let missed: Vec<String> = missed.map(|(goal, _)| goal.to_string()).collect();
            if !missed.is_empty() {
                let _ = writeln!(
                    text,
                    "With {} {base} misses {}.",
                    at.what_if,
                    missed.join(", ")
                );
            }
        }
    }
    text
}

fn candidate(advice: &Advice, kind: Kind) -> Option<&Candidate> {
    advice
        .candidates
        .iter()
        .find(|candidate| candidate.kind == kind)
}

/// The user's file with the advised change; `None` if the advice is to change nothing.
pub(super) fn advised_file(advice: &Advice, text: &str) -> anyhow::Result<Option<String>> {
    let Choice::Change { to, .. } = &advice.choice else {
        return Ok(None);
    };
    let candidate = candidate(advice, *to).context("the choice is one of the candidates")?;
    Ok(Some(
        rewritten(text, candidate).map_err(|error| BadInput(error.to_string()))?,
    ))
}

pub(super) fn recommendation(
    advice: &Advice,
    args: &AdviseArgs,
    file: Option<&str>,
    before: Option<&str>,
) -> String {
    let base = name(advice.base);
    let better = |outcome: &Outcome| {
        !matches!(outcome.kind, Kind::Without) && outcome.beside_base.iter().any(Compared::is_gain)
    };
    let worth = advice.worth.iter().any(Compared::is_gain) || advice.outcomes.iter().any(better);
    let mut text = String::from("\n");
    let open = open(&advice.worth);
    match &advice.choice {
        Choice::Keep if !worth && !open.is_empty() => {
            let _ = writeln!(
                text,
                "Advice: these runs do not tell whether Airlane is worth it here. It may be ({open}), but the interval is too wide. Ask for more --runs, or record again while nothing else runs."
            );
        }
        Choice::Keep if !worth => {
            let _ = writeln!(
                text,
                "Advice: on this link no application gains 3 % by Airlane. Use it for what is not measured here, such as its keys, or not at all."
            );
        }
        Choice::Keep => {
            let priced = advice.outcomes.iter().filter(|outcome| better(outcome));
            let priced = priced.map(|outcome| {
                let (gains, prices) = balance(&outcome.beside_base);
                match prices.is_empty() {
                    true => format!(
                        "{} may gain ({gains}), which other draws did not confirm",
                        name(outcome.kind)
                    ),
                    false => format!(
                        "{} is for you if this is worth its price: {gains}, for {prices}",
                        name(outcome.kind)
                    ),
                }
            });
            let priced: Vec<String> = priced.collect();
            let _ = writeln!(text, "Advice: keep {base}.");
            for sentence in priced {
                let _ = writeln!(text, "  {}.", capital(&sentence));
            }
        }
        Choice::Change { to, confirmed } => {
            let _ = writeln!(
                text,
                "Advice: take \"{}\". On other draws, beside {base}, it {}.",
                name(*to),
                balanced(confirmed)
            );
        }
    }
    let [taken, other] = advice.taken_and_other().map(name);
    // A change of the default says so itself.
    if !advice.beside_default.is_empty() && advice.base != Kind::Default {
        let _ = writeln!(
            text,
            "Beside {other}, {taken} {}.",
            balanced(&advice.beside_default)
        );
    }
    if !advice.by_length.is_empty() {
        let _ = writeln!(
            text,
            "If long frames are lost more often than short ones, which a recording does not tell: beside {other}, {taken} {}.",
            balanced(&advice.by_length)
        );
    }
    if let (Some(file), Some(before)) = (file, before) {
        text.push('\n');
        text.push_str(&diff(before, file));
    } else if let Choice::Change { to, .. } = &advice.choice
        && let Some(candidate) = candidate(advice, *to)
        && (candidate.services.is_some() || !candidate.keys.is_empty())
    {
        text.push_str("\nIn the file of each end (--file FILE --write NEW writes it):\n");
        if !candidate.keys.is_empty() {
            text.push_str("  [link]\n");
        }
        for (key, value) in &candidate.keys {
            let _ = writeln!(text, "  {key} = {value}");
        }
        for service in candidate.services.iter().flatten() {
            let keys = service.as_table().into_iter().flatten();
            let keys: Vec<String> = keys
                .map(|(key, value)| format!("{key} = {value}"))
                .collect();
            let _ = writeln!(text, "  [[link.services]]\n  {}", keys.join("\n  "));
        }
    }
    if let Some(path) = &args.write {
        let path = path.display();
        let _ = match file {
            Some(_) => writeln!(text, "\nTry it: airlane reload {path} --dry-run"),
            None => writeln!(
                text,
                "\nNo change is advised: {path} is your file as it is."
            ),
        };
    }
    let _ = writeln!(text, "\nAgain: {}", command(args));
    text
}

/// The command line that repeats this advice.
fn command(args: &AdviseArgs) -> String {
    let of = &args.question;
    let traces: Vec<String> = args
        .traces
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let mut text = format!("airlane advise {} --apps {}", traces.join(" "), of.apps);
    if let Some(file) = &of.file {
        let _ = write!(text, " --file {}", file.display());
    }
    if let Some(want) = &args.want {
        let _ = write!(text, " --want '{want}'");
    }
    if let Some(settings) = args.search {
        let _ = write!(text, " --search={settings}");
    }
    if let Some(time) = &of.round_trip {
        let _ = write!(text, " --round-trip '{time}'");
    }
    let _ = write!(
        text,
        " --runs {} --for '{}' --seed {}",
        of.runs, of.length, of.seed
    );
    text
}

/// The lines in which two texts differ.
fn diff(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old[same..].iter().rev().zip(new[same..].iter().rev());
    let tail = rest.take_while(|(a, b)| a == b).count();
    let mut text = format!("@@ line {} @@\n", same + 1);
    for line in &old[same..old.len() - tail] {
        let _ = writeln!(text, "-{line}");
    }
    for line in &new[same..new.len() - tail] {
        let _ = writeln!(text, "+{line}");
    }
    text
}
