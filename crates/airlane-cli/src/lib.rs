//! The command line of Airlane: arguments in, text out, exit codes.
//!
//! Everything that computes lives in the libraries below; what is here chooses, prints and refuses.
//! It is a library, too, so that the demo prints with the same tables and bars.

pub mod args;
mod capture;
mod carried;
pub mod chart;
pub mod compare;
mod doctor;
mod events;
mod explain;
mod fault;
mod flows;
mod import;
mod input;
mod journal;
mod keys;
mod live;
mod log;
mod media;
mod metric;
pub mod output;
mod over_time;
mod page;
mod progress;
mod pull;
pub mod quantity;
mod record;
mod reference;
mod relay;
mod scenario;
mod schema;
mod service;
mod setup;
mod ship;
mod sim;
mod status;
mod study;
pub mod svg;
pub mod table;
mod test;
mod top;
mod trace;
mod vary;

use std::process::ExitCode;

use anyhow::Context as _;
use args::{Cli, Command, ImportVerb, JournalVerb, SimVerb, StudyVerb, TraceVerb};
use clap::{CommandFactory as _, Parser as _};

/// The run failed.
const FAILED: u8 = 1;
/// The input or the command line is wrong; clap uses the same number.
const BAD_INPUT: u8 = 2;

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Some(commit) = args::COMMIT {
        airlane_live::status::set_commit(commit);
    }
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if error.downcast_ref::<fault::Told>().is_none() {
                output::note(&output::error_text(&error));
            }
            let code = if fault::is_bad_input(&error) {
                BAD_INPUT
            } else {
                FAILED
            };
            ExitCode::from(code)
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Study(StudyVerb::List(args)) => study::list(&args),
        Command::Study(StudyVerb::Show(args)) => study::show(&args),
        Command::Study(StudyVerb::Lint(args)) => study::lint(&args),
        Command::Study(StudyVerb::Run(args)) => study::run(&args),
        Command::Study(StudyVerb::Merge(args)) => study::merge(&args),
        Command::Study(StudyVerb::Report(args)) => study::report(&args),
        Command::Study(StudyVerb::Scenario(args)) => scenario::of_study(&args),
        Command::Scenario(verb) => scenario::scenario(&verb),
        Command::Sim(SimVerb::Run(args)) => sim::run(&args),
        Command::Sim(SimVerb::Compare(args)) => sim::compare(&args),
        Command::Schema(args) => schema::schema(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Up(args) => live::up(&args),
        Command::Keygen(args) => keys::keygen(&args),
        Command::Setup(args) => setup::setup(&args),
        Command::Air(args) => live::air(&args),
        Command::Relay(args) => relay::relay(&args),
        Command::Send(args) => ship::send(&args),
        Command::Recv(args) => ship::recv(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Reload(args) => live::reload(&args),
        Command::Import(ImportVerb::Wireguard(args)) => import::wireguard(&args),
        Command::Set(args) => live::set(&args),
        Command::Service(verb) => service::service(&verb),
        Command::Status(args) => live::status(&args),
        Command::Flows(args) => flows::flows(&args),
        Command::Pull(args) => pull::pull(&args),
        Command::Top(args) => live::socket(args.link.as_deref()).and_then(|s| top::top(&s)),
        Command::Test(args) => test::test(&args),
        Command::Record(args) => record::record(&args),
        Command::Journal(JournalVerb::Replay(args)) => journal::replay(&args),
        Command::Trace(TraceVerb::Show(args)) => trace::show(&args),
        Command::Trace(TraceVerb::Join(args)) => trace::join(&args),
        Command::Trace(TraceVerb::Fit(args)) => trace::fit::run(&args),
        Command::Trace(TraceVerb::Stats(args)) => trace::stats::stats(&args),
        Command::Trace(TraceVerb::Generate(args)) => trace::blocks::generate(&args),
        Command::Trace(TraceVerb::Convert(args)) => trace::blocks::convert(&args),
        Command::Trace(TraceVerb::Retrace(args)) => trace::retrace::run(&args),
        Command::Manual { folder } => std::fs::create_dir_all(&folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), &folder))
            .with_context(|| format!("cannot write to {}", folder.display())),
        Command::Version => output::print(&format!("airlane {}\n", args::version())),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "airlane", &mut script);
            output::print(&String::from_utf8_lossy(&script))
        }
    }
}
