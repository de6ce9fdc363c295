//! Arguments of published studies.

use std::path::PathBuf;

use airlane_sim::scenario::TrafficSeed;
use clap::{Args, Subcommand, ValueHint};

/// The verbs of published studies.
#[derive(Debug, Subcommand)]
pub enum StudyVerb {
    /// List the works, their figures and their claims
    #[command(after_help = STUDY_LIST_EXAMPLES)]
    List(StudyListArgs),
    /// Show one study: what it runs and what was claimed
    #[command(after_help = STUDY_SHOW_EXAMPLES)]
    Show(StudyShowArgs),
    /// Name the claims that their own source contradicts
    ///
    /// Two checks of which no result could satisfy both, or a check and printed ranges that exclude it.
    #[command(after_help = STUDY_LINT_EXAMPLES)]
    Lint(StudyShowArgs),
    /// Run studies and judge their claims
    ///
    /// ID is a work, a study, or WORK/STUDY. Results are kept in the folder of --out: a run that
    /// was stopped resumes where it was, and worlds that several figures share run once.
    #[command(after_help = STUDY_RUN_EXAMPLES)]
    Run(StudyRunArgs),
    /// Write one point of a study as a scenario file, to run, look at and change by itself
    ///
    /// `airlane sim run` then gives the same results as the study, repetition by repetition.
    #[command(after_help = STUDY_SCENARIO_EXAMPLES)]
    Scenario(StudyScenarioArgs),
    /// Join the results of shards in one folder
    #[command(after_help = STUDY_MERGE_EXAMPLES)]
    Merge(StudyReportArgs),
    /// Judge the results in a folder again, without simulating, and write an HTML page for each work
    #[command(after_help = STUDY_REPORT_EXAMPLES)]
    Report(StudyPageArgs),
}

/// Where the works are.
#[derive(Debug, Args)]
pub struct StudiesArgs {
    /// Folder with one folder for each work [default: studies, and the works that come with the program]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub studies: Option<PathBuf>,
}

/// Arguments of `study list`.
#[derive(Debug, Args)]
pub struct StudyListArgs {
    /// Where the works are.
    #[command(flatten)]
    pub studies: StudiesArgs,
}

/// Arguments of `study show`.
#[derive(Debug, Args)]
pub struct StudyShowArgs {
    /// The study.
    pub id: String,
    /// Where the works are.
    #[command(flatten)]
    pub studies: StudiesArgs,
}

/// Arguments of `study run`.
#[derive(Debug, Args)]
pub struct StudyRunArgs {
    /// Works or studies.
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    /// How many repetitions [default: the work's, 30]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: Option<u32>,
    /// Seed of all random streams [default: the work's]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Seed of the applications' random numbers, apart from --seed; each-run draws anew in every
    /// repetition [default: what the work sets, or --seed]
    #[arg(long, value_name = "N|each-run")]
    pub traffic_seed: Option<TrafficSeed>,
    /// How many repetitions run at once [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Run only what the figures show; claims that read other studies are not judged
    #[arg(long)]
    pub figure_only: bool,
    /// Where results are kept
    #[arg(long, value_name = "DIR", default_value = "results", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
    /// Run only part I of N, for `airlane study merge`
    #[arg(long, value_name = "I/N")]
    pub shard: Option<String>,
    /// Changes of every scenario.
    #[arg(long = "set", value_name = "PATH=VALUE", help = STUDY_SET_HELP)]
    pub set: Vec<String>,
    /// Run with another choice where the work is silent, instead of the committed one; several hold at once
    #[arg(long, value_name = "NAME", conflicts_with = "alternatives")]
    pub alternative: Vec<String>,
    /// Run with each of these values, such as traffic-seed=1,2,3; several grids make every combination
    #[arg(long, value_name = "PATH=VALUE,VALUE", conflicts_with = "alternatives")]
    pub grid: Vec<String>,
    /// Run with every other choice, too, and show which verdicts change
    #[arg(long)]
    pub alternatives: bool,
    /// Repetitions of alternatives [default: as many as of the committed choices]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub alternative_runs: Option<u32>,
    /// How results are shown.
    #[command(flatten)]
    pub show: StudyOutputArgs,
    /// Where the works are.
    #[command(flatten)]
    pub studies: StudiesArgs,
}

/// How results of studies are shown.
#[derive(Debug, Args)]
pub struct StudyOutputArgs {
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
    /// Compare with the verdicts in FILE; exit with 1 if one got worse or is not in it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub check: Option<PathBuf>,
    /// Write the verdicts to FILE, for --check
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub save: Option<PathBuf>,
    /// Write every comparison of claims to FILE, as CSV
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub comparisons: Option<PathBuf>,
    /// Write the verdicts with their reasons to FILE, as Markdown, of several works to FILE-WORK.md each; of works without claims, a table for each figure
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub markdown: Option<PathBuf>,
}

/// Arguments of `study report`.
#[derive(Debug, Args)]
pub struct StudyPageArgs {
    /// The results.
    #[command(flatten)]
    pub report: StudyReportArgs,
    /// Write the HTML pages into OUT [default: `report` in the folder; none with --json]
    ///
    /// The Python package `airlane` writes them. AIRLANE_PYTHON names the interpreter that has it
    /// [default: python3]. Without the package there is a note, and with --html an error.
    #[arg(long, value_name = "OUT", value_hint = ValueHint::DirPath)]
    pub html: Option<PathBuf>,
}

/// Arguments of `study merge` and `study report`.
#[derive(Debug, Args)]
pub struct StudyReportArgs {
    /// Folder with results.
    #[arg(value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// How results are shown.
    #[command(flatten)]
    pub show: StudyOutputArgs,
    /// Where the works are.
    #[command(flatten)]
    pub studies: StudiesArgs,
}

/// Arguments of `study scenario`.
#[derive(Debug, Args)]
pub struct StudyScenarioArgs {
    /// The study.
    pub id: String,
    /// The point: one value of each axis, as `airlane study show ID` lists them.
    #[arg(value_name = "AXIS=VALUE")]
    pub point: Vec<String>,
    /// Changes of the scenario.
    #[arg(long = "set", value_name = "PATH=VALUE", help = STUDY_SET_HELP)]
    pub set: Vec<String>,
    /// With another choice where the work is silent, instead of the committed one
    #[arg(long, value_name = "NAME")]
    pub alternative: Option<String>,
    /// Write to a file, which is replaced, instead of standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Where the works are.
    #[command(flatten)]
    pub studies: StudiesArgs,
}

const STUDY_SET_HELP: &str = "Change every scenario that has the place, such as links.*.services[*].scheme(kind=rlp).retries=2";

const STUDY_LIST_EXAMPLES: &str = "\
Examples:
  airlane study list";

const STUDY_SHOW_EXAMPLES: &str = "\
Examples:
  airlane study show F4.2";

const STUDY_LINT_EXAMPLES: &str = "\
Examples:
  airlane study lint xylomenos-1999";
const STUDY_RUN_EXAMPLES: &str = "\
Examples:
  airlane study run F4.2 F4.8
  airlane study run F4.2 --runs 5 --figure-only
  airlane study run xylomenos-1999 --runs 3 --json > claims.json
  airlane study run xylomenos-1999 --shard 1/2 --out results
  airlane study run F5.4 --set 'links.*.services[*].scheme(kind=rlp|rlp-oos).timers=tight'
  airlane study run xylomenos-1999 --runs 3 --check studies/verdicts.json
  airlane study run F7.8 --alternative snoop-agents --alternative pacing-off --grid traffic-seed=1,2,3

Exit codes: 0 whatever the verdicts are, 1 the run failed or --check found one that got worse or is not
in its file, 2 the input or the command line is wrong.";

const STUDY_MERGE_EXAMPLES: &str = "\
Examples:
  airlane study merge results";

const STUDY_REPORT_EXAMPLES: &str = "\
Examples:
  airlane study report results               # and results/report/WORK.html
  airlane study report results --html pages
  airlane study report results --json > claims.json";

const STUDY_SCENARIO_EXAMPLES: &str = "\
Examples:
  airlane study scenario F4.2 scheme=rlp level=L3
  airlane study scenario xylomenos-1999/F4.2 scheme=sr-m2 level=L1 --output sr-m2.toml";
