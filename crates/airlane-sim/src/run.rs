//! One repetition, from a scenario to its result.

use airlane_base::{Duration, Instant, Streams};
use airlane_channel::{ChannelStats, ErrorModelConfig};
use airlane_link::{ServiceStatus, effective_goodput};
use airlane_transport::Endpoint as _;

use crate::app::Flow;
use crate::app::custom::Custom;
use crate::app::end::End;
use crate::app::exchange::Totals;
use crate::custom::Pieces;
use crate::engine::Engine;
use crate::engine::observe::{Nobody, Observer};
use crate::error::{ScenarioError, known};
use crate::event::{Names, Typed, Watcher};
use crate::paths::{LinkPath, link_path, path_results};
use crate::probe::DelayProbe;
use crate::progress::group_results;
use crate::radio::radio_results;
use crate::result::{
    DirectionResult, FlowResult, FlowService, HandoffResult, LinkResult, RunResult, ServiceResult,
};
use crate::retrace::RetraceResult;
use crate::route::Routes;
use crate::scenario::{AppConfig, EmptyRun, Epochs, LinkConfig, Scenario, TransportConfig};
use crate::services::flow_services;
use crate::world::{build, direction_index, mean_rate};

/// Simulates repetition `run` of a scenario under `seed`.
///
/// The same scenario, seed and run give the same result, to the last bit, on every machine.
///
/// # Errors
/// If the scenario describes no world; [`Scenario::from_toml`] has checked that already for
/// scenarios that come from files.
pub fn run(scenario: &Scenario, seed: u64, run: u64) -> Result<RunResult, ScenarioError> {
    Ok(Prepared::new(scenario)?.run(seed, run))
}

/// A scenario that has been checked and resolved once, for any number of repetitions.
#[derive(Clone, Debug)]
pub struct Prepared {
    scenario: Scenario,
    hash: String,
    /// Which way flows go, and when.
    epochs: Epochs,
    /// Which links lose frames, or repair them.
    wireless: Vec<bool>,
    /// How many flows cross each link in their main direction at any time.
    users: Vec<u32>,
    /// What the classes of the links say of each flow.
    services: Vec<Vec<FlowService>>,
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
            services: flow_services(&scenario, &epochs),
            epochs,
            users,
            wireless: scenario.links.values().map(is_wireless).collect(),
            scenario,
        })
    }

    /// [`Scenario::hash`] of the scenario.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The scenario with every default filled in.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Simulates repetition `run` under `seed`.
    pub fn run(&self, seed: u64, run: u64) -> RunResult {
        self.run_observed(seed, run, &mut Nobody)
    }

    /// Runs a repetition under the eyes of somebody who changes nothing: the result is that of
    /// [`run`](Self::run).
    ///
    /// If the watcher ends the run before its time, the result is that of a run that stopped there.
    pub fn run_watched(&self, seed: u64, run: u64, watcher: &mut impl Watcher) -> RunResult {
        let mut typed = Typed::new(watcher, self.scenario.flows.len());
        self.run_observed(seed, run, &mut typed)
    }

    /// Runs a repetition with pieces that somebody else wrote in the place of those of the scenario. The hash
    /// in the result says so: it ends with `+custom`.
    ///
    /// # Errors
    /// If a piece stands for something that the scenario does not have, or a weight policy gives
    /// weights that are none.
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

    /// Names of what events know by number.
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
        engine.run(end, until, observer);
        let stopped = engine.now();
        let finished = until.is_none_or(|flow| engine.flows[flow].is_finished());
        // Bytes that are on the air after the end belong to no metric of a ratio.
        let at_stop: Vec<ChannelStats> = engine.directions.iter().map(|d| *d.stats()).collect();
        let used = self.utilisation(&engine, stopped);
        engine.stop();
        if !(O::WATCHES && observer.is_over()) {
            engine.run(stopped + scenario.drain, None, observer);
        }
        if let Some(refused) = engine.refused() {
            return Err(refused);
        }
        let flows = (0..scenario.flows.len())
            .map(|index| self.flow_result(index, &engine, &at_stop, stopped))
            .collect();
        let links = scenario
            .links
            .keys()
            .enumerate()
            .map(|(link, name)| LinkResult {
                name: name.clone(),
                down: direction_result(&engine, direction_index(link, true), &used),
                up: direction_result(&engine, direction_index(link, false), &used),
            })
            .collect();
        Ok(RunResult {
            scenario: scenario.name.clone(),
            scenario_hash: self.hash.clone(),
            seed,
            run,
            version: env!("CARGO_PKG_VERSION"),
            stopped_s: stopped.as_secs_f64(),
            finished,
            events: engine.events(),
            flows,
            groups: group_results(scenario, &engine),
            links,
            radios: radio_results(scenario, &engine),
            handoffs: self.handoff_results(),
            unroutable: engine.unroutable(),
            paths: path_results(scenario, self.routes_at(stopped), &engine),
            retraces: self.retrace_results(Streams::new(seed, run)),
        })
    }

    fn retrace_results(&self, streams: Streams) -> Vec<RetraceResult> {
        let all = self.scenario.retraces.iter();
        let duration = self.scenario.duration;
        all.map(|(name, retrace)| retrace.analyse(name, duration, streams))
            .collect()
    }

    fn flow_result(
        &self,
        index: usize,
        engine: &Engine,
        at_stop: &[ChannelStats],
        stopped: Instant,
    ) -> FlowResult {
        let config = &self.scenario.flows[index];
        let flow = &engine.flows[index];
        let progress = |sent, received, duplicates| {
            let progress = flow.progress()?;
            Some(progress.result(sent, received, duplicates))
        };
        let base = FlowResult {
            name: config.name.clone(),
            app: config.app.kind(),
            services: self.services[index].clone(),
            ..FlowResult::default()
        };
        match flow {
            Flow::Bulk(bulk) => {
                let [first, second] = bulk.ends();
                let (sender, receiver) = (first.endpoint().sender(), second.endpoint().receiver());
                let acked_bytes = sender.acked_bytes();
                let time = sender.first_sent().zip(sender.last_acked());
                let time_s = time.map(|(first, last)| last.saturating_since(first).as_secs_f64());
                let stats = sender.stats();
                let got = receiver.stats();
                FlowResult {
                    progress: progress(
                        stats.segments_sent,
                        got.segments_received,
                        got.segments_duplicate,
                    ),
                    finished: Some(sender.is_acknowledged()),
                    throughput_bps: time_s.map(|s| acked_bytes as f64 * 8.0 / s),
                    goodput_ratio: self.goodput(index, acked_bytes, at_stop, engine),
                    delivered_bytes: receiver.stats().delivered_bytes,
                    packets_sent: stats.segments_sent,
                    packets_received: receiver.stats().segments_received,
                    retransmissions: Some(stats.retransmissions),
                    timeouts: Some(stats.timeouts),
                    window_cuts: Some(stats.window_cuts),
                    duplicates: Some(receiver.stats().segments_duplicate),
                    delay_mean_s: bulk.delays.mean_s(),
                    delay_p95_s: bulk.delays.quantile_s(0.95),
                    pause_max_s: bulk.longest_pause().map(|pause| pause.as_secs_f64()),
                    ..window_result(base, first)
                }
            }
            Flow::Split(split) => {
                let [source, _, out, end] = split.ends().each_ref().map(End::endpoint);
                let base = window_result(base, &split.ends()[0]);
                let (sender, receiver) = (source.sender(), end.receiver());
                let time = sender.first_sent().zip(out.sender().last_acked());
                let time_s = time.map(|(first, last)| last.saturating_since(first).as_secs_f64());
                let (stats, relay) = (sender.stats(), out.sender().stats());
                FlowResult {
                    finished: Some(out.written() == source.written() && out.is_acknowledged()),
                    throughput_bps: time_s.map(|s| out.acknowledged() as f64 * 8.0 / s),
                    goodput_ratio: self.goodput(index, out.acknowledged(), at_stop, engine),
                    delivered_bytes: receiver.stats().delivered_bytes,
                    packets_sent: stats.segments_sent,
                    packets_received: receiver.stats().segments_received,
                    retransmissions: Some(stats.retransmissions),
                    timeouts: Some(stats.timeouts),
                    window_cuts: Some(stats.window_cuts),
                    duplicates: Some(receiver.stats().segments_duplicate),
                    relay_retransmissions: Some(relay.retransmissions),
                    relay_timeouts: Some(relay.timeouts),
                    relay_early_bytes: Some(split.early_bytes),
                    relay_held_bytes: Some(split.held_bytes),
                    delay_mean_s: split.delays.mean_s(),
                    delay_p95_s: split.delays.quantile_s(0.95),
                    ..base
                }
            }
            Flow::Clap(app) => {
                let (sender, receiver) = app.ends();
                let (sent, got) = (sender.stats(), receiver.stats());
                let delivered = app.delivered_bytes();
                FlowResult {
                    progress: progress(sent.data_sent, got.data_received, got.duplicates),
                    finished: Some(flow.is_finished()),
                    throughput_bps: app.throughput_bps(),
                    goodput_ratio: self.goodput(index, delivered, at_stop, engine),
                    delivered_bytes: delivered,
                    packets_sent: sent.data_sent,
                    packets_received: got.data_received,
                    retransmissions: Some(sent.repairs),
                    duplicates: Some(got.duplicates),
                    duplicates_before_sweep: Some(got.duplicates_before_sweep),
                    nacks: Some(got.nacks),
                    delay_mean_s: app.delays.mean_s(),
                    delay_p95_s: app.delays.quantile_s(0.95),
                    ..base
                }
            }
            Flow::Conferencing(app) => {
                let received = app.delays.count();
                let bytes = received * u64::from(app.packet_len());
                let on = stopped.saturating_since(Instant::ORIGIN + config.start);
                FlowResult {
                    throughput_bps: (on.as_nanos() > 0)
                        .then(|| bytes as f64 * 8.0 / on.as_secs_f64()),
                    delivered_bytes: bytes,
                    packets_sent: app.sent,
                    packets_received: received,
                    progress: progress(app.sent, received, 0),
                    ..datagram_result(base, app.sent, received, &app.delays)
                }
            }
            Flow::Pages(app) => {
                let times = &app.line.times;
                let completed = app.script.completed(times.count());
                FlowResult {
                    finished: Some(engine.flows[index].is_finished()),
                    ..page_result(base, completed, app.totals(), times)
                }
            }
            Flow::Web(app) => {
                let result = page_result(base, app.completed(), app.totals(), &app.times);
                let zero =
                    matches!(&config.app, AppConfig::Web(web) if web.empty == EmptyRun::Zero);
                FlowResult {
                    finished: Some(engine.flows[index].is_finished()),
                    throughput_bps: result.throughput_bps.or(zero.then_some(0.0)),
                    ..result
                }
            }
            Flow::Telnet(app) => FlowResult {
                finished: Some(engine.flows[index].is_finished()),
                ..response_result(base, app.totals(), &app.line.times)
            },
            Flow::Mail(app) => FlowResult {
                finished: Some(engine.flows[index].is_finished()),
                ..response_result(base, app.totals(), &app.line.times)
            },
            Flow::Custom(app) => FlowResult {
                finished: Some(engine.flows[index].is_finished()),
                ..custom_result(base, app)
            },
        }
    }

    /// User bytes over the mean of the bytes that entered each wireless link of the path.
    fn goodput(
        &self,
        flow: usize,
        user_bytes: u64,
        at_stop: &[ChannelStats],
        engine: &Engine,
    ) -> Option<f64> {
        let mut paths = self
            .epochs
            .iter()
            .map(|epoch| link_path(&epoch.routes, flow));
        let path = paths.next()?;
        if paths.any(|other| other != path) {
            return None;
        }
        let custom = |link: usize| {
            [true, false]
                .map(|down| engine.directions[direction_index(link, down)].has_custom_errors())
                != [false; 2]
        };
        let wireless: LinkPath = path
            .into_iter()
            .filter(|(link, _)| self.wireless[*link] || custom(*link))
            .collect();
        // The flow is one of them.
        let shared = wireless.iter().any(|(link, _)| self.users[*link] > 1);
        if wireless.is_empty() || shared {
            return None;
        }
        let bytes: u64 = wireless
            .iter()
            .map(|(link, down)| &at_stop[direction_index(*link, *down)])
            .map(|stats| stats.offered.bytes - stats.dropped_queue.bytes)
            .sum();
        let mean = bytes as f64 / wireless.len() as f64;
        (bytes > 0).then(|| user_bytes as f64 / mean)
    }

    /// Of each direction, what has left by `now` over what could have.
    fn utilisation(&self, engine: &Engine, now: Instant) -> Vec<f64> {
        let links = self.scenario.links.values();
        let rates = links.flat_map(|link| [true, false].map(|down| mean_rate(link, down)));
        let directions = engine.directions.iter().zip(rates);
        let used = directions.map(|(direction, rate)| {
            let stats = direction.stats();
            let bits = (stats.offered.bytes - stats.dropped_queue.bytes) as f64 * 8.0;
            // What was accepted and waits in front of the transmitter has not left.
            let waits_s = direction.free_at().saturating_since(now).as_secs_f64();
            let could = rate.as_bps() as f64 * now.as_secs_f64();
            let left = bits - rate.as_bps() as f64 * waits_s;
            if could > 0.0 {
                (left / could).clamp(0.0, 1.0)
            } else {
                0.0
            }
        });
        used.collect()
    }

    /// The ways at a time.
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

/// What a probe saw of the windows of a file's sender, if there was one.
fn window_result(base: FlowResult, end: &End) -> FlowResult {
    let Some(probe) = end.probe() else {
        return base;
    };
    let sender = end.endpoint().sender();
    let means = probe.means(sender);
    FlowResult {
        cwnd_mean_bytes: means.map(|[cwnd, _]| cwnd),
        window_mean_bytes: means.map(|[_, usable]| usable),
        timeout_wait_s: Some(probe.waited().as_secs_f64()),
        duplicate_acks: Some(sender.stats().duplicate_acks),
        ..base
    }
}

/// What applications that fetch pages report.
fn page_result(
    base: FlowResult,
    completed: Option<(Duration, u64)>,
    totals: Totals,
    times: &DelayProbe,
) -> FlowResult {
    FlowResult {
        throughput_bps: completed.map(|(time, bytes)| bytes as f64 * 8.0 / time.as_secs_f64()),
        pages: Some(times.count()),
        page_time_mean_s: times.mean_s(),
        page_time_sd_s: times.sd_s(),
        page_time_median_s: times.quantile_s(0.5),
        page_time_max_s: times.max_s(),
        ..exchange_result(base, totals)
    }
}

/// What applications that wait for responses report.
fn response_result(base: FlowResult, totals: Totals, times: &DelayProbe) -> FlowResult {
    FlowResult {
        responses: Some(times.count()),
        response_time_mean_s: times.mean_s(),
        response_time_sd_s: times.sd_s(),
        response_time_median_s: times.quantile_s(0.5),
        response_time_p95_s: times.quantile_s(0.95),
        response_time_max_s: times.max_s(),
        ..exchange_result(base, totals)
    }
}

/// What custom applications report: over UDP losses and delays, over TCP its counters.
fn custom_result(base: FlowResult, app: &Custom) -> FlowResult {
    let base = FlowResult {
        app: "custom",
        throughput_bps: app.throughput_bps(),
        ..response_result(base, app.totals(), &app.times)
    };
    if app.is_tcp() {
        return base;
    }
    let totals = app.totals();
    let (sent, received) = (totals.segments_sent, totals.segments_received);
    FlowResult {
        retransmissions: None,
        timeouts: None,
        ..datagram_result(base, sent, received, &app.delays)
    }
}

/// What nobody repairs: how much of it is lost, and how late the rest comes.
fn datagram_result(base: FlowResult, sent: u64, received: u64, delays: &DelayProbe) -> FlowResult {
    let both = delays.mean_s().zip(delays.sd_s());
    FlowResult {
        loss_ratio: (sent > 0).then(|| 1.0 - received as f64 / sent as f64),
        delay_mean_s: delays.mean_s(),
        delay_sd_s: delays.sd_s(),
        delay_mean_plus_2sd_s: both.map(|(mean, sd)| mean + 2.0 * sd),
        delay_median_s: delays.quantile_s(0.5),
        delay_p95_s: delays.quantile_s(0.95),
        delay_p99_s: delays.quantile_s(0.99),
        ..base
    }
}

/// What all applications of requests and replies report.
fn exchange_result(base: FlowResult, totals: Totals) -> FlowResult {
    FlowResult {
        delivered_bytes: totals.delivered_bytes,
        packets_sent: totals.segments_sent,
        packets_received: totals.segments_received,
        retransmissions: Some(totals.retransmissions),
        timeouts: Some(totals.timeouts),
        ..base
    }
}

/// Wired links neither lose frames nor repair them.
fn is_wireless(link: &LinkConfig) -> bool {
    !link.services.is_empty()
        || link.errors.down != ErrorModelConfig::None
        || link.errors.up != ErrorModelConfig::None
}

fn direction_result(engine: &Engine, index: usize, used: &[f64]) -> DirectionResult {
    let direction = &engine.directions[index];
    let services = engine.port_ends(index).map_or(vec![], |[near, far]| {
        let pairs = near.port.services().zip(far.port.services());
        pairs.map(|(near, far)| service_result(near, far)).collect()
    });
    DirectionResult {
        channel: *direction.stats(),
        utilisation_ratio: used[index],
        circuit: direction.circuit(),
        services,
    }
}

/// Both ends have the same table, in the same order.
fn service_result(sender: ServiceStatus, receiver: ServiceStatus) -> ServiceResult {
    ServiceResult {
        number: sender.number,
        goodput_ratio: sender.metrics.goodput,
        loss_ratio: receiver.metrics.loss,
        delay_s: receiver.metrics.delay_s,
        queueing_s: sender.metrics.queueing_s,
        effective_goodput_ratio: effective_goodput(&sender.metrics, &receiver.metrics),
        name: sender.name,
        scheme: sender.scheme,
        sender: sender.ledger,
        receiver: receiver.ledger,
        snoop: sender.snoop,
    }
}
