//! One repetition, from a scenario to its result.

mod flow;
mod over_time;

use airlane_base::{Duration, Instant, Streams};
use airlane_channel::{ChannelStats, ErrorModelConfig};
use airlane_link::{ServiceStatus, effective_goodput};

use crate::app::conferencing::Departures;
use crate::custom::Pieces;
use crate::engine::Engine;
use crate::engine::observe::{Nobody, Observer};
use crate::error::{ScenarioError, known};
use crate::event::{Names, Typed, Watcher};
use crate::paths::path_results;
use crate::progress::group_results;
use crate::radio::{airtimes, radio_results};
use crate::result::{
    DirectionResult, FlowResult, HandoffResult, LinkResult, NodeResult, RunResult, ServiceResult,
};
use crate::retrace::RetraceResult;
use crate::route::Routes;
use crate::scenario::{AppConfig, Epochs, LinkConfig, Scenario, TransportConfig};
use crate::shares::flow_services;
use crate::world::{build, direction_index};
use over_time::OverTime;
pub use over_time::usual_interval;

/// Simulates repetition `run` of a scenario under `seed`.
///
/// The same scenario, seed and run give the same result, to the last bit, on every machine.
///
/// # Errors
/// If the scenario is invalid; for scenarios from files, [`Scenario::from_toml`] has already checked that.
pub fn run(scenario: &Scenario, seed: u64, run: u64) -> Result<RunResult, ScenarioError> {
    Ok(Prepared::new(scenario)?.run(seed, run))
}

/// A scenario that has been checked and resolved once, for any number of repetitions.
#[derive(Clone, Debug)]
pub struct Prepared {
    scenario: Scenario,
    hash: String,
    /// The routes of flows over time.
    epochs: Epochs,
    /// Which links are wireless.
    wireless: Vec<bool>,
    /// How many flows cross each link in their main direction at any time.
    users: Vec<u32>,
    /// Interval of the throughput over time, if requested.
    interval: Option<Duration>,
}

impl Prepared {
    /// Checks and resolves a scenario.
    ///
    /// # Errors
    /// As [`run`].
    pub fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        scenario.check()?;
        let scenario = scenario.resolved();
        let epochs = scenario.epochs();
        let mut users = vec![0; scenario.links.len()];
        for flow in 0..scenario.flows.len() {
            epochs.hops(flow).for_each(|hop| users[hop.link] += 1);
        }
        Ok(Self {
            hash: scenario.own_hash(),
            epochs,
            users,
            wireless: scenario.links.values().map(is_wireless).collect(),
            scenario,
            interval: None,
        })
    }

    /// Records the throughput of each flow in each `interval`, for `runs` runs.
    ///
    /// # Errors
    /// If memory has no room for that many numbers.
    pub fn over_time(mut self, interval: Duration, runs: u64) -> Result<Self, ScenarioError> {
        over_time::check(interval, &self.scenario, runs)?;
        self.interval = Some(interval);
        Ok(self)
    }

    /// [`Scenario::hash`] of the scenario.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The scenario with every default filled in.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// When the datagrams of a flow leave in repetition `run` under `seed`, from the beginning of the run to its
    /// longest duration; none if they are no conference.
    pub fn departures(&self, flow: usize, seed: u64, run: u64) -> Vec<Instant> {
        let config = &self.scenario.flows[flow];
        let AppConfig::Conferencing(app) = &config.app else {
            return Vec::new();
        };
        let end = Instant::ORIGIN + self.scenario.duration;
        let traffic = self.scenario.traffic_streams(seed, run);
        let all = Departures::of(config, app, traffic);
        all.take_while(|at| *at < end).collect()
    }

    /// Simulates repetition `run` under `seed`.
    pub fn run(&self, seed: u64, run: u64) -> RunResult {
        self.run_observed(seed, run, &mut Nobody)
    }

    /// Runs a repetition with a watcher, which changes nothing: the result is that of [`run`](Self::run).
    ///
    /// If the watcher ends the run early, the result is that of a run that stopped there.
    pub fn run_watched(&self, seed: u64, run: u64, watcher: &mut impl Watcher) -> RunResult {
        let mut typed = Typed::new(watcher, self.scenario.flows.len());
        self.run_observed(seed, run, &mut typed)
    }

    /// Runs a repetition with user-supplied parts in place of the scenario's. The hash in the result is marked: it
    /// ends with `+custom`.
    ///
    /// # Errors
    /// If a part is for something that the scenario does not have, or a weight policy returns invalid weights.
    pub fn run_custom(
        &self,
        seed: u64,
        run: u64,
        pieces: Pieces,
        watcher: &mut impl Watcher,
    ) -> Result<RunResult, ScenarioError> {
        self.check_pieces(&pieces)?;
        let custom = !pieces.is_empty();
        let mut typed = Typed::new(watcher, self.scenario.flows.len());
        let mut result = self.simulate(seed, run, pieces, &mut typed)?;
        if custom {
            result.scenario_hash.push_str("+custom");
        }
        Ok(result)
    }

    fn check_pieces(&self, pieces: &Pieces) -> Result<(), ScenarioError> {
        let names = self.names();
        let media = self.scenario.media_places();
        let refuse = |place: &str, reason: &str| ScenarioError::NoPlace {
            place: place.to_owned(),
            reason: reason.to_owned(),
        };
        for (link, _) in pieces.errors.keys() {
            known("link", link, names.links())?;
            let config = &self.scenario.links[link];
            if media.stations(config, true).is_some() {
                let reason = "its frames are lost as its radio channel says";
                return Err(refuse(link, reason));
            }
        }
        for (link, policy) in &pieces.weights {
            known("link", link, names.links())?;
            if self.scenario.links[link].services.is_empty() {
                let reason = "it has no services whose weights could be set";
                return Err(refuse(link, reason));
            }
            if policy.interval() == Duration::ZERO {
                let reason = "its policy has an interval of 0; write how often it is asked";
                return Err(refuse(link, reason));
            }
        }
        for name in pieces.applications.keys() {
            known("flow", name, names.flows())?;
            let flow = self.scenario.flows.iter().find(|flow| flow.name == *name);
            if flow.is_some_and(|flow| matches!(flow.transport, TransportConfig::Clap(_))) {
                let reason = "CLAP carries files alone; give the flow TCP or UDP";
                return Err(refuse(name, reason));
            }
        }
        Ok(())
    }

    /// Names of the links, flows and services that events refer to by number.
    pub fn names(&self) -> Names {
        Names::new(&self.scenario)
    }

    pub(crate) fn run_observed<O: Observer>(
        &self,
        seed: u64,
        run: u64,
        observer: &mut O,
    ) -> RunResult {
        let result = self.simulate(seed, run, Pieces::default(), observer);
        result.expect("only custom pieces are refused")
    }

    fn simulate<O: Observer>(
        &self,
        seed: u64,
        run: u64,
        pieces: Pieces,
        observer: &mut O,
    ) -> Result<RunResult, ScenarioError> {
        let scenario = &self.scenario;
        let mut engine = build(scenario, &self.epochs, seed, run, pieces);
        let until = scenario
            .until
            .as_ref()
            .and_then(|name| scenario.flows.iter().position(|f| &f.name == name));
        let end = Instant::ORIGIN + scenario.duration;
        let mut over_time = self
            .interval
            .map(|interval| OverTime::new(interval, scenario.flows.len()));
        match &mut over_time {
            None => _ = engine.run(end, until, observer),
            Some(over_time) => over_time.run(&mut engine, end, until, observer),
        }
        let stopped = engine.now();
        let events = engine.events();
        let finished = until.is_none_or(|flow| engine.flows[flow].is_finished());
        // Bytes in flight at the stop belong to no ratio, so counters are read before the drain.
        let at_stop: Vec<ChannelStats> = engine.directions.iter().map(|d| *d.stats()).collect();
        let services = flow_services(scenario, &self.epochs, &engine.served);
        let airtimes = airtimes(&engine);
        let way = |link, down| direction_result(&engine, direction_index(link, down), stopped);
        let links = scenario
            .links
            .keys()
            .enumerate()
            .map(|(link, name)| LinkResult {
                name: name.clone(),
                down: way(link, true),
                up: way(link, false),
            })
            .collect();
        let radios = radio_results(scenario, &engine, &airtimes);
        let paths = path_results(scenario, self.routes_at(stopped), &engine);
        let nodes = engine.lives.status(stopped);
        let nodes: Vec<NodeResult> = nodes
            .filter_map(|(at, status)| {
                let node = scenario.nodes.keys().nth(at.into())?.clone();
                Some(NodeResult { node, status })
            })
            .collect();
        let unroutable = engine.unroutable();
        engine.stop();
        if !(O::WATCHES && observer.is_over()) {
            engine.run(stopped + scenario.drain, None, observer);
        }
        engine.settle();
        if let Some(refused) = engine.refused() {
            return Err(refused);
        }
        let flows = services
            .into_iter()
            .enumerate()
            .map(|(index, services)| FlowResult {
                services,
                over_time: over_time.as_mut().map(|kept| kept.result(index)),
                ..self.flow_result(index, &engine, &at_stop, stopped)
            });
        Ok(RunResult {
            scenario: scenario.name.clone(),
            scenario_hash: self.hash.clone(),
            seed,
            run,
            version: env!("CARGO_PKG_VERSION"),
            stopped_s: stopped.as_secs_f64(),
            finished,
            events,
            flows: flows.collect(),
            groups: group_results(scenario, &engine),
            links,
            radios,
            nodes,
            handoffs: self.handoff_results(),
            unroutable,
            paths,
            retraces: self.retrace_results(Streams::new(seed, run)),
        })
    }

    fn retrace_results(&self, streams: Streams) -> Vec<RetraceResult> {
        let all = self.scenario.retraces.iter();
        let duration = self.scenario.duration;
        all.map(|(name, retrace)| retrace.analyse(name, duration, streams))
            .collect()
    }

    /// The routes at a time.
    fn routes_at(&self, now: Instant) -> &Routes {
        let begun = self.epochs.iter().rev().find(|epoch| epoch.begin <= now);
        &begun.unwrap_or(&self.epochs[0]).routes
    }

    fn handoff_results(&self) -> Vec<HandoffResult> {
        let handoffs = self.scenario.handoffs.iter();
        handoffs
            .zip(self.scenario.handoff_kinds())
            .map(|(handoff, kind)| HandoffResult {
                at_s: handoff.at.as_secs_f64(),
                gap_s: handoff.gap.as_secs_f64(),
                node: handoff.node.clone(),
                from: handoff.from.clone(),
                to: handoff.to.clone(),
                kind,
            })
            .collect()
    }
}

/// A wired link neither loses frames nor repairs losses.
fn is_wireless(link: &LinkConfig) -> bool {
    !link.services.is_empty()
        || link.is_live()
        || link.errors.down != ErrorModelConfig::None
        || link.errors.up != ErrorModelConfig::None
}

fn direction_result(engine: &Engine, index: usize, stopped: Instant) -> DirectionResult {
    let direction = &engine.directions[index];
    let services = match engine.port_ends(index) {
        // Both ends have the same services, in the same order.
        Some([near, far]) => {
            let pairs = near.port.services().zip(far.port.services());
            pairs.map(|(near, far)| service_result(near, far)).collect()
        }
        None => {
            let pairs = engine.lives.services(index).into_iter();
            pairs.map(|[near, far]| service_result(near, far)).collect()
        }
    };
    DirectionResult {
        channel: direction.counts(),
        under_way: direction.under_way(),
        utilisation_ratio: direction.utilisation(stopped),
        too_long: engine.lives.too_long(index),
        circuit: direction.circuit(),
        headers: direction.headers(),
        services,
    }
}

fn service_result(sender: ServiceStatus, receiver: ServiceStatus) -> ServiceResult {
    ServiceResult {
        number: sender.number,
        goodput_ratio: sender.metrics.goodput,
        loss_ratio: receiver.metrics.loss,
        delay_s: receiver.metrics.delay_s,
        queueing_s: sender.metrics.queueing_s,
        waiting_packets: sender.queue_packets as u64,
        effective_goodput_ratio: effective_goodput(&sender.metrics, &receiver.metrics),
        name: sender.name,
        scheme: sender.scheme,
        sender: sender.ledger,
        receiver: receiver.ledger,
        snoop: sender.snoop,
    }
}
