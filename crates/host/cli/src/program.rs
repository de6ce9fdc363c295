//! The program: from its arguments to an exit code.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory as _, FromArgMatches as _};

use crate::args::{self, Cli, Command};
#[cfg(feature = "live")]
use crate::args::{ImportVerb, JournalVerb, LiveCommand};
#[cfg(feature = "lab")]
use crate::args::{LabCommand, SimVerb, StudyVerb, TraceVerb};
#[cfg(feature = "emulate")]
use crate::emulate;
#[cfg(feature = "screen")]
use crate::top;
#[cfg(feature = "lab")]
use crate::{advise, lab, scenario, sim, study, trace};
#[cfg(feature = "live")]
use crate::{
    doctor, flows, import, journal, keys, live, pull, record, relay, service, setup, ship, test,
};
use crate::{explain, fault, features, output, schema};

/// The run failed.
const FAILED: u8 = 1;
/// The input or the command line is wrong; clap uses the same number.
const BAD_INPUT: u8 = 2;

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    let verb = std::env::args_os().nth(1).unwrap_or_default();
    let done = match features::left_out(&verb.to_string_lossy()) {
        Some(error) => Err(error.into()),
        None => {
            let matches = args::grouped_command().get_matches();
            let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
            run(cli.command)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if error.downcast_ref::<fault::LoggedError>().is_none() {
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
        #[cfg(feature = "lab")]
        Command::Lab(command) => simulate(command),
        #[cfg(feature = "live")]
        Command::Live(command) => operate(command),
        #[cfg(feature = "emulate")]
        Command::Emulate(args) => emulate::emulate(&args),
        Command::Schema(args) => schema::schema(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Manual { folder } => std::fs::create_dir_all(&folder)
            .and_then(|()| clap_mangen::generate_to(args::grouped_command(), &folder))
            .with_context(|| format!("cannot write to {}", folder.display())),
        Command::Version => output::print(&format!("airlane {}\n", args::version())),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "airlane", &mut script);
            output::print(&String::from_utf8_lossy(&script))
        }
    }
}

#[cfg(feature = "lab")]
fn simulate(command: LabCommand) -> anyhow::Result<()> {
    match command {
        LabCommand::Lab(args) => lab::serve(&args),
        LabCommand::Study(StudyVerb::List(args)) => study::list(&args),
        LabCommand::Study(StudyVerb::Show(args)) => study::show(&args),
        LabCommand::Study(StudyVerb::Lint(args)) => study::lint(&args),
        LabCommand::Study(StudyVerb::Run(args)) => study::run(&args),
        LabCommand::Study(StudyVerb::Merge(args)) => study::merge(&args),
        LabCommand::Study(StudyVerb::Report(args)) => study::report(&args),
        LabCommand::Study(StudyVerb::Scenario(args)) => scenario::of_study(&args),
        LabCommand::Scenario(verb) => scenario::scenario(&verb),
        LabCommand::Sim(SimVerb::Run(args)) => sim::run(&args),
        LabCommand::Sim(SimVerb::Compare(args)) => sim::compare(&args),
        LabCommand::Trace(TraceVerb::Show(args)) => trace::show(&args),
        LabCommand::Trace(TraceVerb::Join(args)) => trace::join(&args),
        LabCommand::Trace(TraceVerb::Fit(args)) => trace::fit(&args),
        LabCommand::Advise(args) => advise::advise(&args),
        LabCommand::Check(args) => advise::check(&args),
        LabCommand::Trace(TraceVerb::Stats(args)) => trace::stats::stats(&args),
        LabCommand::Trace(TraceVerb::Generate(args)) => trace::blocks::generate(&args),
        LabCommand::Trace(TraceVerb::Convert(args)) => trace::blocks::convert(&args),
        LabCommand::Trace(TraceVerb::Retrace(args)) => trace::retrace::run(&args),
    }
}

#[cfg(feature = "live")]
fn operate(command: LiveCommand) -> anyhow::Result<()> {
    if let Some(commit) = args::COMMIT {
        airlane_live::status::set_commit(commit);
    }
    match command {
        LiveCommand::Up(args) => live::up(&args),
        LiveCommand::Keygen(args) => keys::keygen(&args),
        LiveCommand::Setup(args) => setup::setup(&args),
        LiveCommand::Air(args) => live::air(&args),
        LiveCommand::Relay(args) => relay::relay(&args),
        LiveCommand::Send(args) => ship::send(&args),
        LiveCommand::Recv(args) => ship::recv(&args),
        LiveCommand::Doctor(args) => doctor::doctor(&args),
        LiveCommand::Reload(args) => live::reload(&args),
        LiveCommand::Import(ImportVerb::Wireguard(args)) => import::wireguard(&args),
        LiveCommand::Set(args) => live::set(&args),
        LiveCommand::Service(verb) => service::service(&verb),
        LiveCommand::Status(args) => live::status(&args),
        LiveCommand::Flows(args) => flows::flows(&args),
        LiveCommand::Pull(args) => pull::pull(&args),
        #[cfg(feature = "screen")]
        LiveCommand::Top(args) => live::socket(args.node.named()).and_then(|s| top::top(&s)),
        LiveCommand::Test(args) => test::test(&args),
        LiveCommand::Record(args) => record::record(&args),
        LiveCommand::Journal(JournalVerb::Replay(args)) => journal::replay(&args),
    }
}
