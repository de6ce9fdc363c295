//! `airlane advise` and `airlane check`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use airlane_advise::{
    Advice, AdviceError, Candidate, Choice, Compared, GoalState, Goals, Kind, Link, Measure,
    Outcome, Pace, Question, What, WhatIfs, rewritten,
};
use airlane_base::config::read_text;
use airlane_channel::trace::Trace;
use airlane_fit::LinkFit;
use airlane_sim::Estimate as Measured;
use anyhow::{Context as _, bail};
use serde::Serialize;
use toml::Table;

use crate::args::{AdviseArgs, CheckArgs, QuestionArgs};
use crate::fault::BadInput;
use crate::output;
use crate::progress::ProgressLine;
use crate::quantity::{Estimate, Unit};
use crate::recorded::{describe, remarks};
use crate::recording::read;
use crate::table::{Align, Table as Lines};
use crate::trace::link::{fitted, recording};

/// Version of the JSON that is printed.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Printed<'a> {
    schema: u32,
    link: Table,
    remarks: Vec<String>,
    #[serde(flatten)]
    advice: &'a Advice,
    /// The advised file, if --file gave one.
    file: Option<&'a str>,
}

#[derive(Serialize)]
struct Checked<'a> {
    schema: u32,
    goals: Vec<String>,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

/// A question to the adviser, with the inputs it was made from.
struct Asked {
    trace: Trace,
    fit: LinkFit,
    question: Question,
    /// The text of the user's file.
    text: Option<String>,
}

impl Asked {
    /// Reads what the arguments name.
    fn read(args: &QuestionArgs, goals: Goals, what_ifs: WhatIfs) -> anyhow::Result<Self> {
        let traces = args.traces.iter().map(|path| read(path));
        Self::of(
            traces.collect::<anyhow::Result<_>>()?,
            args,
            goals,
            what_ifs,
        )
    }

    /// Asks about traces that were read already.
    fn of(
        traces: Vec<Trace>,
        args: &QuestionArgs,
        goals: Goals,
        what_ifs: WhatIfs,
    ) -> anyhow::Result<Self> {
        let trace = recording(traces)?;
        let shown = args.traces.first().map_or(Path::new(""), PathBuf::as_path);
        let fit = fitted(&trace, shown)?;
        if args.round_trip.is_some() && fit.round_trip.is_some() {
            output::warn(
                "--round-trip overrides the round trip that the recording of both ends shows",
            );
        }
        let file = match &args.file {
            None => None,
            Some(path) => {
                let text = read_text(path)
                    .with_context(|| BadInput(format!("cannot read {}", path.display())))?;
                let table = text.parse::<Table>().map_err(|error| {
                    BadInput(format!("{}: {}", path.display(), error.message()))
                })?;
                Some((text, table))
            }
        };
        let (text, present) = file.map_or((None, None), |(text, table)| (Some(text), Some(table)));
        let question = Question {
            link: Link::of(&fit, args.round_trip),
            apps: args.apps.clone(),
            present,
            goals,
            what_ifs,
            pace: Pace {
                length: args.length,
                runs: args.runs,
                seed: args.seed,
                threads: args.threads,
            },
        };
        let least = airlane_base::Duration::from_secs(5);
        if args.length < least {
            let wrong = format!("--for {}: a run takes at least {least}", args.length);
            return Err(BadInput(wrong).into());
        }
        Ok(Self {
            trace,
            fit,
            question,
            text,
        })
    }

    fn report(&self, advice: &Advice, args: &AdviseArgs) -> anyhow::Result<Report> {
        let file = match &self.text {
            Some(text) => advised_file(advice, text)?,
            None => None,
        };
        let mut text = describe(&self.trace, &self.fit, &self.question.link);
        text.push('\n');
        text.push_str(&table(advice, &self.question.goals));
        text.push_str(&sentences(advice, self));
        let before = self.text.as_deref();
        text.push_str(&recommendation(advice, args, file.as_deref(), before));
        Ok(Report { text, file })
    }
}

fn shown(error: AdviceError) -> anyhow::Error {
    match error {
        AdviceError::Scenario(error) => {
            BadInput(format!("this cannot be simulated: {error}")).into()
        }
        error => BadInput(error.to_string()).into(),
    }
}

/// Advice in words, and the advised file if there is a change and a file to change.
pub(crate) struct Report {
    /// What `airlane advise` prints.
    pub(crate) text: String,
    /// The advised file.
    pub(crate) file: Option<String>,
}

/// The report of `airlane advise` on traces that were read already.
#[cfg(feature = "live")]
pub(crate) fn report(
    traces: Vec<Trace>,
    args: &AdviseArgs,
    progress: impl Fn(u64, u64) + Sync,
) -> anyhow::Result<Report> {
    let (goals, what_ifs) = (args.want.clone(), args.what_if.clone());
    let goals = goals.unwrap_or_default();
    let asked = Asked::of(traces, &args.question, goals, what_ifs.unwrap_or_default())?;
    let advice = airlane_advise::advise(&asked.question, progress).map_err(shown)?;
    asked.report(&advice, args)
}

/// Runs `advise`.
pub(crate) fn advise(args: &AdviseArgs) -> anyhow::Result<()> {
    let goals = args.want.clone().unwrap_or_default();
    let asked = Asked::read(
        &args.question,
        goals,
        args.what_if.clone().unwrap_or_default(),
    )?;
    let progress = ProgressLine::new("simulated", 1);
    let advice = airlane_advise::advise(&asked.question, |done, all| progress.at(done, all));
    drop(progress);
    let advice = advice.map_err(shown)?;
    let Report { text, file } = asked.report(&advice, args)?;
    if let Some(path) = &args.write {
        let text = file
            .as_deref()
            .or(asked.text.as_deref())
            .unwrap_or_default();
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.question.json {
        let printed = Printed {
            schema: SCHEMA,
            link: asked.question.link.table(),
            remarks: remarks(&asked.fit, &asked.question.link),
            advice: &advice,
            file: file.as_deref(),
        };
        return output::print(&format!("{}\n", serde_json::to_string_pretty(&printed)?));
    }
    output::print(&text)
}

/// Runs `check`.
pub(crate) fn check(args: &CheckArgs) -> anyhow::Result<()> {
    let asked = Asked::read(&args.question, args.want.clone(), WhatIfs::default())?;
    let progress = ProgressLine::new("simulated", 1);
    let outcome = airlane_advise::check(&asked.question, |done, all| progress.at(done, all));
    drop(progress);
    let outcome = outcome.map_err(shown)?;
    let goals = &asked.question.goals.0;
    if args.question.json {
        let checked = Checked {
            schema: SCHEMA,
            goals: goals.iter().map(ToString::to_string).collect(),
            outcome: &outcome,
        };
        output::print(&format!("{}\n", serde_json::to_string_pretty(&checked)?))?;
    } else {
        let heads = [
            ("goal", Align::Left),
            ("simulated", Align::Right),
            ("", Align::Left),
        ];
        let mut lines = Lines::new(heads);
        let measures = Measure::all(&asked.question.apps);
        for (goal, state) in goals.iter().zip(&outcome.goals) {
            let at = goal.measure(&asked.question.apps);
            let at = at.and_then(|measure| measures.iter().position(|other| *other == measure));
            let value = at.map_or("-".to_owned(), |at| {
                show(&measures[at], &outcome.values[at])
            });
            lines.row([goal.to_string(), value, word(*state).to_owned()]);
        }
        output::print(&lines.render())?;
    }
    let fares = |state: GoalState| {
        let pairs = goals.iter().zip(&outcome.goals);
        let pairs = pairs.filter(move |(_, other)| **other == state);
        let all: Vec<String> = pairs.map(|(goal, _)| goal.to_string()).collect();
        (!all.is_empty()).then(|| all.join(", "))
    };
    match (fares(GoalState::Missed), fares(GoalState::Unsure)) {
        (Some(missed), _) => bail!("missed: {missed}"),
        (None, Some(unsure)) => {
            bail!("too near to tell, which is not met: {unsure}; --runs narrows the intervals")
        }
        (None, None) => Ok(()),
    }
}

const fn word(state: GoalState) -> &'static str {
    match state {
        GoalState::Met => "met",
        GoalState::Unsure => "too near to tell",
        GoalState::Missed => "missed",
    }
}

const fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Without => "without Airlane",
        Kind::NoRepair => "no repair",
        Kind::Default => "the default",
        Kind::Yours => "your file",
        Kind::PagesCopied => "pages copied",
        Kind::PagesCopiedLate => "pages copied late",
        Kind::PagesFirst => "pages first",
        Kind::CallsYounger => "calls younger",
    }
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
    }
}

fn head(measure: &Measure) -> String {
    let app = measure.app.name();
    match measure.what {
        What::Throughput | What::PageTime => app,
        What::CallLoss => format!("{app}, lost"),
        What::CallDelay => format!("{app}, 99 % within"),
    }
}

fn show(measure: &Measure, value: &Measured) -> String {
    let unit = match measure.what {
        What::Throughput => Unit::BitsPerSecond,
        What::PageTime | What::CallDelay => Unit::Seconds,
        What::CallLoss => Unit::Ratio,
    };
    let estimate = Estimate {
        mean: value.mean,
        half_width: value.ci95_half_width,
        of_runs: None,
    };
    estimate.show(unit).to_string()
}

/// A table with a line for each candidate.
fn table(advice: &Advice, goals: &Goals) -> String {
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
        "{}{} runs of {} s each, seed {}; mean ± 95 % interval over the runs, without the error of the model.\n\n",
        lines.render(),
        advice.runs,
        advice.run_length_s,
        advice.seed
    )
}

/// A gain or a loss: `pages 22 % sooner`.
fn change(compared: &Compared) -> String {
    let Compared { measure, gain } = compared;
    let app = measure.app.name();
    let part = measure.said(gain.mean);
    let percent = part.abs() * 100.0;
    let better = gain.mean > 0.0;
    match (measure.what, better) {
        (What::Throughput, _) if part > 1.0 => {
            format!("{app} {:.1} times as fast", part + 1.0)
        }
        (What::Throughput, true) => format!("{app} {percent:.0} % faster"),
        (What::Throughput, false) => format!("{app} {percent:.0} % slower"),
        (What::PageTime, true) => format!("{app} {percent:.0} % sooner"),
        (What::PageTime, false) => format!("{app} {percent:.0} % later"),
        (What::CallLoss, true) => format!("{app}: {percent:.1} points less lost"),
        (What::CallLoss, false) => format!("{app}: {percent:.1} points more lost"),
        (What::CallDelay, true) => format!("{app}: {percent:.0} % less delay"),
        (What::CallDelay, false) => format!("{app}: {percent:.0} % more delay"),
    }
}

/// The price of a candidate, taken from the worst case if the mean shows none.
fn price(compared: &Compared) -> String {
    match compared.is_loss() {
        true => change(compared),
        false => {
            let half = compared.gain.ci95_half_width.unwrap_or(0.0);
            let mut worst = compared.clone();
            worst.gain.mean -= half;
            format!("{}, at worst", change(&worst))
        }
    }
}

fn balance(all: &[Compared]) -> (String, String) {
    let gains: Vec<String> = all.iter().filter(|c| c.is_gain()).map(change).collect();
    let prices: Vec<String> = all.iter().filter(|c| c.is_price()).map(price).collect();
    (gains.join(", "), prices.join(", "))
}

fn balanced(all: &[Compared]) -> String {
    match balance(all) {
        (gains, prices) if gains.is_empty() && prices.is_empty() => {
            "changes nothing by 3 %".to_owned()
        }
        (gains, prices) if prices.is_empty() => format!("gains: {gains}"),
        (gains, prices) if gains.is_empty() => format!("gains nothing, and costs: {prices}"),
        (gains, prices) => format!("gains: {gains}; costs: {prices}"),
    }
}

fn sentences(advice: &Advice, asked: &Asked) -> String {
    let base = name(advice.base);
    let mut text = String::new();
    let recorded = busy_bps(&asked.trace);
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
            does(outcome.kind),
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
            let missed = asked.question.goals.0.iter().zip(&at.goals);
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

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars).collect()
}

/// The mean receive rate in bit/s over the seconds in which the link was in use: those with at
/// least half the bytes of the busiest second. Outgoing frames are used if their receiver was
/// recorded, otherwise incoming ones.
fn busy_bps(trace: &Trace) -> f64 {
    use airlane_channel::trace::{FrameOutcome, Way};
    let path = trace.path(Way::Out).or_else(|| trace.path(Way::In));
    let mut seconds = std::collections::BTreeMap::<u64, u64>::new();
    for sample in path.iter().flat_map(|path| &path.samples) {
        if matches!(sample.outcome, FrameOutcome::Received(_)) {
            let bytes = u64::from(sample.len) + u64::from(trace.header.overhead_bytes);
            *seconds
                .entry(sample.at.as_nanos() / 1_000_000_000)
                .or_default() += bytes;
        }
    }
    let most = seconds.values().max().copied().unwrap_or(0);
    let busy = seconds.values().filter(|bytes| **bytes * 2 >= most);
    let (sum, count) = busy.fold((0, 0_u64), |(sum, count), bytes| (sum + bytes, count + 1));
    sum as f64 * 8.0 / count.max(1) as f64
}

fn candidate(advice: &Advice, kind: Kind) -> Option<&Candidate> {
    advice
        .candidates
        .iter()
        .find(|candidate| candidate.kind == kind)
}

/// The user's file with the advised change; `None` if the advice is to change nothing.
fn advised_file(advice: &Advice, text: &str) -> anyhow::Result<Option<String>> {
    let Choice::Change { to, .. } = &advice.choice else {
        return Ok(None);
    };
    let candidate = candidate(advice, *to).context("the choice is one of the candidates")?;
    Ok(Some(
        rewritten(text, candidate).map_err(|error| BadInput(error.to_string()))?,
    ))
}

fn recommendation(
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
    match &advice.choice {
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
    if let (Some(file), Some(before)) = (file, before) {
        text.push('\n');
        text.push_str(&diff(before, file));
    } else if let Choice::Change { to, .. } = &advice.choice
        && let Some(services) = candidate(advice, *to).and_then(|c| c.services.as_ref())
    {
        text.push_str("\nIn the file of each end (--file FILE --write NEW writes it):\n");
        for service in services {
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
    let traces: Vec<String> = of
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
