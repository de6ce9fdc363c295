//! The verbs of the lab: those that simulate, and those that fit models to recordings.

use clap::Subcommand;

use super::page::LAB_EXAMPLES;
use super::{AdviseArgs, CheckArgs, PageArgs, ScenarioVerb, SimVerb, StudyVerb, TraceVerb, advise};

/// The verbs that need the feature `lab`.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Simulate: run a scenario, or compare several
    #[command(subcommand, arg_required_else_help = true)]
    Sim(SimVerb),
    /// List and show the scenarios that come with the program, and translate configurations of
    /// other tools into scenarios
    #[command(subcommand, arg_required_else_help = true)]
    Scenario(ScenarioVerb),
    /// Simulate in a browser, and watch a live node: serve the page of the lab to this machine
    ///
    /// The page has the simulator in it and gives the numbers of `airlane sim run`. It loads
    /// nothing from elsewhere.
    #[command(after_help = LAB_EXAMPLES)]
    Lab(PageArgs),
    /// Run the figures of published works and judge their claims
    #[command(subcommand, arg_required_else_help = true)]
    Study(StudyVerb),
    /// Look at recorded traces, and join those of two ends
    #[command(subcommand, arg_required_else_help = true)]
    Trace(TraceVerb),
    /// Recommend settings for a recorded link, and say what each costs
    ///
    /// Candidates are simulated on the link and compared. At 20 Mbit/s that takes about 8 s on two
    /// cores, with --search 40 s; the time grows with the rate.
    #[command(after_help = advise::ADVISE_EXAMPLES)]
    Advise(AdviseArgs),
    /// Say whether goals are met on a recorded link
    #[command(after_help = advise::CHECK_EXAMPLES)]
    Check(CheckArgs),
}
