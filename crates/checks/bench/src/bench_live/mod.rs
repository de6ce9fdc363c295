//! Compares Airlane with other tunnels: throughput on a clean link, and applications on an impaired one.
//! `docs/lab/bench-live.md` describes the method and what is left out.

pub mod ceiling;
pub mod channel;
pub mod clean;
pub mod criteria;
pub mod impaired;
pub mod install;
pub mod measured;
pub mod never_worse;
pub mod paths;
pub mod results;
pub mod site;
pub mod tool;
pub mod traffic;
pub mod tunnel;

mod airlane;
mod openvpn;
mod plain_tun;
mod plain_tun_offload;
mod wireguard;

pub use plain_tun::forward;
pub use plain_tun_offload::forward_offload;

use airlane_testkit::live::LiveError;
use airlane_testkit::machine::MachineWatch;

use crate::progress::ProgressLine;
use clean::CleanPlan;
use impaired::ImpairedPlan;
use results::Results;
use site::Programs;
use tool::Tool;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct BenchPlan {
    /// Over the clean link.
    pub clean: Option<CleanPlan>,
    /// Over the impaired link.
    pub impaired: Option<ImpairedPlan>,
}

impl BenchPlan {
    /// Removes tools that cannot be run here; returns them with the reasons.
    fn leave_out(&mut self, programs: &Programs) -> Vec<(Tool, String)> {
        let lists = |plan: &mut Self| -> Vec<Tool> {
            let clean = plan.clean.iter().flat_map(|p| &p.tools);
            let impaired = plan.impaired.iter().flat_map(|p| &p.tools);
            let mut tools: Vec<Tool> = clean.chain(impaired).copied().collect();
            tools.sort_unstable();
            tools.dedup();
            tools
        };
        let wanted = lists(self).into_iter();
        let left_out: Vec<(Tool, String)> = wanted
            .filter_map(|tool| Some((tool, install::provide(tool, programs).err()?)))
            .collect();
        let stays = |tool: &Tool| left_out.iter().all(|(other, _)| other != tool);
        if let Some(plan) = &mut self.clean {
            plan.tools.retain(stays);
        }
        if let Some(plan) = &mut self.impaired {
            plan.tools.retain(stays);
        }
        left_out
    }
}

/// Carries out the plan.
///
/// # Errors
/// If namespaces or files cannot be created. A tool that does not run is part of the results.
pub fn run(mut plan: BenchPlan, programs: &Programs) -> Result<Results, LiveError> {
    let mut results = Results {
        left_out: plan.leave_out(programs),
        ..Results::default()
    };
    let clean = plan.clean.as_ref();
    let clean = clean.map_or(0, |p| p.tools.len() * p.runs as usize);
    let impaired = plan.impaired.as_ref().map_or(0, ImpairedPlan::steps);
    let mut progress = ProgressLine::new((clean + impaired) as u64);
    let watch = MachineWatch::begin().map_err(LiveError::Traffic)?;
    if let Some(plan) = &plan.clean {
        results.clean = Some(clean::run(plan, programs, &mut progress)?);
    }
    if let Some(plan) = &plan.impaired {
        results.impaired = Some(impaired::run(plan, programs, &mut progress)?);
    }
    results.lost = watch.lost().map_err(LiveError::Traffic)?;
    Ok(results)
}
