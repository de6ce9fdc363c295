//! `airlane study`: runs and judges published figures.

mod grid;
mod text;

use std::collections::BTreeMap;
use std::path::Path;

use airlane_base::config::nearest;
use airlane_study::{
    Grid, Manifest, ManifestWork, Needs, Plan, Report, RunRequest, Shard, Store, StudyError,
    Verdict, Verdicts, Work, WorkOutcome, WorkResults, alternatives_of,
};
use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use self::grid::grid_text;
use self::text::{report_text, study_text};
use crate::args::{
    StudyListArgs, StudyOutputArgs, StudyPageArgs, StudyReportArgs, StudyRunArgs, StudyShowArgs,
};
use crate::fault::BadInput;
use crate::output;
use crate::page;
use crate::progress::ProgressLine;
use crate::table::{Align, Table};
use crate::world;

/// Committed verdicts, with the runs and the seed that produced them.
#[derive(Serialize, Deserialize)]
struct Committed {
    runs: u64,
    seed: u64,
    verdicts: Verdicts,
}

/// A work and the ids of its studies to run.
type Asked = (Work, Vec<String>);

/// Runs `study list`.
pub(crate) fn list(args: &StudyListArgs) -> anyhow::Result<()> {
    let mut text = String::new();
    for work in world::works(&args.studies)? {
        text += &format!("{}: {}\n\n", work.id, work.title);
        let heads = [("study", Align::Left), ("shows", Align::Left)];
        let numbers = ["scenarios", "claims"].map(|head| (head, Align::Right));
        let mut table = Table::new(heads.into_iter().chain(numbers));
        for study in &work.studies {
            let scenarios: usize = study.axes.iter().map(|axis| axis.values.len()).product();
            let claims = study.claims.len();
            let cells = [
                study.id.clone(),
                study.title.clone(),
                scenarios.to_string(),
                claims.to_string(),
            ];
            table.row(cells);
        }
        text += &table.render();
        if !work.alternatives.is_empty() {
            text += "\nalternatives:\n";
            let mut table = Table::new([("", Align::Left), ("", Align::Left)]);
            for (name, alternative) in &work.alternatives {
                table.row([name.as_str(), &alternative.title]);
            }
            text += &table.render();
        }
        text.push('\n');
    }
    output::print(&text)
}

/// Runs `study show`.
pub(crate) fn show(args: &StudyShowArgs) -> anyhow::Result<()> {
    let works = world::works(&args.studies)?;
    let asked = select(works, std::slice::from_ref(&args.id))?;
    let mut text = String::new();
    for (work, ids) in &asked {
        for study in work
            .studies
            .iter()
            .filter(|s| ids.is_empty() || ids.contains(&s.id))
        {
            text += &study_text(work, study);
        }
    }
    output::print(&text)
}

/// Runs `study lint`.
pub(crate) fn lint(args: &StudyShowArgs) -> anyhow::Result<()> {
    let works = world::works(&args.studies)?;
    let asked = select(works, std::slice::from_ref(&args.id))?;
    let mut text = String::new();
    for (work, ids) in &asked {
        let shown = |id: &str| {
            let mut studies = work
                .studies
                .iter()
                .filter(|s| ids.is_empty() || ids.contains(&s.id));
            studies.any(|study| study.claims.iter().any(|claim| claim.id == id))
        };
        let mut found: Vec<(String, Vec<String>)> = work.contradictions().into_iter().collect();
        let request = RunRequest {
            committed: true,
            ..RunRequest::default()
        };
        let plan = Plan::new(work.clone(), &[], &request)?;
        found.extend(plan.lint_files()?);
        for (id, by) in found.into_iter().filter(|(id, _)| shown(id)) {
            text += &format!("{id}\n  {}\n", by.join("\n  "));
        }
    }
    if text.is_empty() {
        "no check excludes another one, repeats one or cannot fail\n".clone_into(&mut text);
    }
    output::print(&text)
}

/// Runs `study run`.
pub(crate) fn run(args: &StudyRunArgs) -> anyhow::Result<()> {
    let shard = match &args.shard {
        None => Shard::ALL,
        Some(text) => Shard::parse(text).with_context(|| {
            BadInput(format!(
                "--shard {text}: write I/N with I from 1 to N, such as 1/4"
            ))
        })?,
    };
    let works = world::works(&args.studies)?;
    let asked = select(works, &args.ids)?;
    let grids = args.grid.iter().map(|text| {
        Grid::parse(text).with_context(|| {
            BadInput(format!(
                "--grid {text}: write PATH=VALUE,VALUE, such as traffic-seed=1,2,3"
            ))
        })
    });
    let grids = grids.collect::<anyhow::Result<Vec<_>>>()?;
    let alternatives = alternatives_of(&args.alternative, &grids);
    let request = RunRequest {
        runs: args.runs.map(u64::from),
        alternative_runs: args.alternative_runs.map(u64::from),
        seed: args.seed,
        set: set(args),
        committed: alternatives.is_empty(),
        alternatives,
        figure_only: args.figure_only,
    };
    let plans = plan(&asked, &request, args.alternatives)?;
    // Verdicts that cannot be compared are refused before hours of simulation, not after.
    let before = committed(&plans, &args.show)?;
    let works = plans
        .iter()
        .zip(&asked)
        .map(|(plan, (_, ids))| ManifestWork::new(plan, ids));
    let manifest = Manifest::new(command(args), request, works.collect());
    manifest.write(&args.out)?;
    let mut store = Store::open(&args.out)?;
    let mut others = 0;
    for (plan, (_, ids)) in plans.iter().zip(&asked) {
        announce(plan, ids);
        others += execute(plan, &mut store, shard, args.jobs.map_or(0, usize::from))?;
    }
    if others > 0 {
        let out = args.out.display();
        output::note(&format!(
            "{others} runs are left to other shards; put all shards into one folder and run \
             `airlane study merge {out}`"
        ));
        return Ok(());
    }
    finish(&plans, &mut store, &manifest, &args.out, &args.show, before)
}

/// Runs `study merge`.
pub(crate) fn merge(args: &StudyReportArgs) -> anyhow::Result<()> {
    let (manifest, plans, mut store) = reopen(args)?;
    let before = committed(&plans, &args.show)?;
    let keys: Vec<_> = plans.iter().flat_map(Plan::keys).collect();
    if let Some(missing) = keys.iter().find(|key| store.get(key).is_none()) {
        let missing = format!("repetition {} of scenario {}", missing.2, missing.0);
        let folder = args.folder.display();
        return Err(BadInput(format!(
            "{folder}: {missing} is missing; are all shards in this folder?"
        ))
        .into());
    }
    store.merge()?;
    finish(
        &plans,
        &mut store,
        &manifest,
        &args.folder,
        &args.show,
        before,
    )
}

/// Runs `study report`.
pub(crate) fn report(args: &StudyPageArgs) -> anyhow::Result<()> {
    let StudyReportArgs { folder, show, .. } = &args.report;
    let (manifest, plans, store) = reopen(&args.report)?;
    let before = committed(&plans, show)?;
    let outcomes = judge(&plans, &store, &manifest, folder)?;
    let shown = present(&plans, &store, &outcomes, show, before);
    if args.html.is_some() || !show.json {
        page::write(folder, args.html.as_deref())?;
    }
    shown
}

/// The works and studies that `ids` names.
pub(crate) fn select(works: Vec<Work>, ids: &[String]) -> Result<Vec<Asked>, StudyError> {
    let mut asked: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut whole = vec![];
    for id in ids {
        let (name, study) = match id.split_once('/') {
            Some((work, study)) => (Some(work), Some(study)),
            None if works.iter().any(|work| work.id == *id) => (Some(id.as_str()), None),
            None => (None, Some(id.as_str())),
        };
        let found: Vec<usize> = (0..works.len())
            .filter(|at| name.is_none_or(|name| works[*at].id == name))
            .filter(|at| study.is_none_or(|study| works[*at].study(study).is_some()))
            .collect();
        match (found.as_slice(), study) {
            ([at], Some(study)) => asked.entry(*at).or_default().push(study.to_owned()),
            ([at], None) => {
                asked.entry(*at).or_default();
                whole.push(*at);
            }
            (several, _) => {
                // The same id in several works is ambiguous.
                let full = |at: &usize| format!("{}/{id}", works[*at].id);
                let full: Vec<String> = several.iter().map(full).collect();
                if let [first, others @ ..] = full.as_slice() {
                    return Err(StudyError::Results(format!(
                        "{id} is a study of several works; write {first} or {}",
                        others.join(" or ")
                    )));
                }
                let studies = works.iter().flat_map(|work| &work.studies);
                let studies = studies.map(|study| study.id.as_str());
                let ids: Vec<&str> = works.iter().map(|work| work.id.as_str()).collect();
                let name = study.unwrap_or(id);
                let help = match nearest(name, ids.iter().copied().chain(studies)) {
                    Some(meant) => format!("did you mean {meant}?"),
                    None => format!(
                        "there are: {}; `airlane study list` has their studies",
                        ids.join(", ")
                    ),
                };
                return Err(StudyError::Unknown {
                    what: "work or study",
                    name: name.to_owned(),
                    help,
                });
            }
        }
    }
    let works = works.into_iter().enumerate();
    Ok(works
        .filter_map(|(at, work)| {
            let ids = asked.remove(&at)?;
            Some((work, if whole.contains(&at) { vec![] } else { ids }))
        })
        .collect())
}

fn plan(asked: &[Asked], request: &RunRequest, all: bool) -> Result<Vec<Plan>, StudyError> {
    asked
        .iter()
        .map(|(work, ids)| {
            let mut request = request.clone();
            if all {
                request.alternatives = work.alternatives.keys().cloned().collect();
            }
            let plan = Plan::new(work.clone(), ids, &request)?;
            plan.check()?;
            Ok(plan)
        })
        .collect()
}

/// The assignments for every scenario.
fn set(args: &StudyRunArgs) -> Vec<String> {
    let traffic = args.traffic_seed.map(|seed| format!("traffic-seed={seed}"));
    args.set.iter().cloned().chain(traffic).collect()
}

/// The arguments that determine the results.
fn command(args: &StudyRunArgs) -> Vec<String> {
    let mut command: Vec<String> = ["airlane", "study", "run"].map(str::to_owned).to_vec();
    command.extend(args.ids.iter().cloned());
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            command.extend([name.to_owned(), value]);
        }
    };
    option("--runs", args.runs.map(|n| n.to_string()));
    option(
        "--alternative-runs",
        args.alternative_runs.map(|n| n.to_string()),
    );
    option("--seed", args.seed.map(|n| n.to_string()));
    for set in set(args) {
        option("--set", Some(set));
    }
    for name in &args.alternative {
        option("--alternative", Some(name.clone()));
    }
    for grid in &args.grid {
        option("--grid", Some(grid.clone()));
    }
    let folder = args.studies.studies.as_ref();
    option(
        "--studies",
        folder.map(|folder| folder.display().to_string()),
    );
    for (given, name) in [
        (args.alternatives, "--alternatives"),
        (args.figure_only, "--figure-only"),
    ] {
        if given {
            command.push(name.to_owned());
        }
    }
    command
}

/// Says what a plan will simulate.
fn announce(plan: &Plan, ids: &[String]) {
    let work = &plan.work.id;
    let what = match ids {
        [] => format!("{work}, all of it"),
        ids => format!("{work}/{}", ids.join(" ")),
    };
    let Needs {
        figures,
        claims,
        read,
    } = plan.needs();
    let scenarios = plan.worlds.len();
    let runs = plan.runs;
    if claims == 0 {
        output::note(&format!(
            "{what}: {figures} simulations, {scenarios} scenarios to {runs} runs each"
        ));
        return;
    }
    let too = if plan.set.is_empty() {
        ""
    } else {
        "; --set changes these, too"
    };
    output::note(&format!(
        "{what}: {figures} simulations, and {claims} that only its claims read, of {}{too}; --figure-only \
         leaves them out and such claims unjudged",
        read.join(", ")
    ));
}

/// Simulates and shows the progress; returns how many runs are left to other shards.
fn execute(plan: &Plan, store: &mut Store, shard: Shard, threads: usize) -> anyhow::Result<u64> {
    let progress = ProgressLine::new(&plan.work.id, plan.jobs());
    let done = plan.execute(store, shard, threads, &progress);
    progress.finish();
    let done = done?;
    output::note(&format!(
        "{}: {} runs, {} known before",
        plan.work.id, done.run, done.known
    ));
    Ok(done.others)
}

/// The plans of a folder and its results.
fn reopen(args: &StudyReportArgs) -> anyhow::Result<(Manifest, Vec<Plan>, Store)> {
    let manifest = Manifest::read(&args.folder)?;
    let works = world::works(&args.studies)?;
    let mut plans = vec![];
    for described in &manifest.works {
        let work = works.iter().find(|work| work.id == described.id);
        let work = work.cloned().ok_or_else(|| {
            let known = works.iter().map(|work| work.id.as_str());
            StudyError::unknown("work", &described.id, known)
        })?;
        let names = described
            .variants
            .iter()
            .filter_map(|v| v.alternative.clone());
        let request = RunRequest {
            runs: Some(described.runs),
            alternative_runs: Some(described.alternative_runs),
            seed: Some(described.seed),
            alternatives: names.collect(),
            ..manifest.request.clone()
        };
        plans.push(Plan::new(work, &described.asked, &request)?);
    }
    Ok((manifest, plans, Store::open(&args.folder)?))
}

/// Writes the tables of complete results, then shows them.
fn finish(
    plans: &[Plan],
    store: &mut Store,
    manifest: &Manifest,
    folder: &Path,
    show: &StudyOutputArgs,
    before: Option<Committed>,
) -> anyhow::Result<()> {
    for plan in plans {
        plan.write_tables(store, folder)?;
        plan.record(folder)?;
    }
    let outcomes = judge(plans, store, manifest, folder)?;
    present(plans, store, &outcomes, show, before)
}

/// Judges complete results and writes the report next to them.
fn judge(
    plans: &[Plan],
    store: &Store,
    manifest: &Manifest,
    folder: &Path,
) -> anyhow::Result<Vec<WorkOutcome>> {
    let mut outcomes: Vec<WorkOutcome> = vec![];
    for plan in plans {
        outcomes.extend(plan.outcomes(store)?);
    }
    for (plan, asked) in plans.iter().zip(&manifest.works) {
        if let Some(results) = WorkResults::new(plan, &outcomes, asked, manifest.options()) {
            results.write(folder)?;
        }
    }
    Ok(outcomes)
}

/// Shows the report, and which verdicts got worse than they were `before`.
fn present(
    plans: &[Plan],
    store: &Store,
    outcomes: &[WorkOutcome],
    show: &StudyOutputArgs,
    before: Option<Committed>,
) -> anyhow::Result<()> {
    let report = Report::new(outcomes);
    if let Some(path) = &show.markdown {
        pages(path, plans, outcomes)?;
    }
    if let Some(path) = &show.comparisons {
        write(path, &airlane_study::comparisons(&report))?;
    }
    if let Some(path) = &show.save {
        let (runs, seed) = made_with(&plans[0]);
        let verdicts = in_full(outcomes).flat_map(WorkOutcome::verdicts).collect();
        let committed = Committed {
            runs,
            seed,
            verdicts,
        };
        write(path, &(serde_json::to_string_pretty(&committed)? + "\n"))?;
    }
    if show.json {
        output::print(&(serde_json::to_string_pretty(&report)? + "\n"))?;
    } else {
        output::print(&report_text(&report, grid_text(outcomes)))?;
        warn_few(plans, &report);
    }
    match show.check.as_ref().zip(before) {
        Some((path, before)) => {
            let findings = plans.iter().map(|plan| plan.lint(store));
            check(
                path,
                &before,
                outcomes,
                &findings.collect::<Result<Vec<_>, _>>()?.concat(),
            )
        }
        None => Ok(()),
    }
}

/// Warns if claims may fail only because there are fewer repetitions than the work asks for.
fn warn_few(plans: &[Plan], report: &Report) {
    for plan in plans {
        let (runs, usual) = (made_with(plan).0, plan.work.runs);
        let claims = report.claims.iter().chain(&report.apart);
        let open = claims
            .filter(|claim| claim.work == plan.work.id)
            .filter(|claim| {
                claim
                    .item
                    .verdict
                    .is_some_and(|verdict| verdict < Verdict::SourceInconsistent)
            })
            .count();
        if runs < usual && open > 0 {
            output::warn(&format!(
                "{}: {open} claims do not hold with {runs} repetitions, where the work has {usual}: so few runs may decide \
                 this; leave out --runs for a firm verdict",
                plan.work.id
            ));
        }
    }
}

/// The outcomes to report in full: the first one of each work.
fn in_full(outcomes: &[WorkOutcome]) -> impl Iterator<Item = &WorkOutcome> {
    let works = outcomes.chunk_by(|a, b| a.work == b.work);
    works.filter_map(<[WorkOutcome]>::first)
}

/// Repetitions and seed of the outcome to report in full.
fn made_with(plan: &Plan) -> (u64, u64) {
    (plan.variants[0].runs, plan.seed)
}

/// The verdicts to compare with, read before `--save` may replace them. Refuses works that cannot
/// be compared with them, or whose verdicts do not fit one file.
fn committed(plans: &[Plan], show: &StudyOutputArgs) -> anyhow::Result<Option<Committed>> {
    let flags = |(runs, seed): (u64, u64)| format!("--runs {runs} --seed {seed}");
    let odd = |made: (u64, u64)| plans.iter().find(|plan| made_with(plan) != made);
    if let Some(path) = &show.save {
        let first = &plans[0];
        if let Some(odd) = odd(made_with(first)) {
            return Err(BadInput(format!(
                "--save {}: a file holds the verdicts of one --runs and one --seed, but {} has {} and \
                 {} has {}; give both, or save each work by itself",
                path.display(),
                first.work.id,
                flags(made_with(first)),
                odd.work.id,
                flags(made_with(odd)),
            ))
            .into());
        }
    }
    let Some(path) = &show.check else {
        return Ok(None);
    };
    let name = path.display();
    let text = airlane_base::config::read_text(path)
        .with_context(|| BadInput(format!("cannot read {name}")))?;
    let committed: Committed = serde_json::from_str(&text)
        .with_context(|| BadInput(format!("{name} has no verdicts; --save writes them")))?;
    let made = (committed.runs, committed.seed);
    if let Some(odd) = odd(made) {
        let (made, work, has) = (flags(made), &odd.work.id, flags(made_with(odd)));
        let problem = format!("{name} was made with {made}; use the same for {work}, not {has}");
        return Err(BadInput(problem).into());
    }
    Ok(Some(committed))
}

fn check(
    path: &Path,
    before: &Committed,
    outcomes: &[WorkOutcome],
    findings: &[(String, Vec<String>)],
) -> anyhow::Result<()> {
    let name = path.display();
    let mut worse = vec![];
    for outcome in in_full(outcomes) {
        for (claim, was) in outcome.worse_than(&before.verdicts) {
            let (id, now) = (&claim.id, claim.verdict.map_or("nothing", Verdict::word));
            let was = was.word();
            worse.push(format!("{id}: {now}, was {was}: {}", claim.measured));
        }
        let known = outcome.verdicts().into_iter();
        let new = known.filter(|(id, _)| !before.verdicts.contains_key(id));
        worse.extend(new.map(|(id, _)| format!("{id}: not in it; --save writes it")));
    }
    let mut problems = vec![];
    if !worse.is_empty() {
        let count = worse.len();
        problems.push(format!(
            "{count} verdicts are not as good as in {name}:\n{}",
            worse.join("\n")
        ));
    }
    if !findings.is_empty() {
        let lines = findings
            .iter()
            .map(|(id, why)| format!("{id}: {}", why.join("; ")));
        let lines = lines.collect::<Vec<_>>().join("\n");
        problems.push(format!(
            "{} claims are redundant or cannot fail:\n{lines}",
            findings.len()
        ));
    }
    match problems.as_slice() {
        [] => Ok(()),
        problems => Err(anyhow::anyhow!("{}", problems.join("\n"))),
    }
}

/// Writes FILE.md, and FILE-WORK.md for each of several works.
fn pages(path: &Path, plans: &[Plan], outcomes: &[WorkOutcome]) -> anyhow::Result<()> {
    let works: Vec<&Work> = plans.iter().map(|plan| &plan.work).collect();
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    for page in airlane_study::markdown(outcomes, &works, &name) {
        match page.of {
            None => write(path, &page.text)?,
            Some(work) => write(
                &path.with_file_name(format!("{name}-{work}.md")),
                &page.text,
            )?,
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
