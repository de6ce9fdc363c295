//! The result of a flow, from the counters of its application and its ends.
//!
//! Each number covers one period of the flow: until it has finished or, if it has not, until the stop. Arrivals after
//! the stop only distinguish datagrams in flight from lost ones.

use airlane_base::Instant;
use airlane_channel::ChannelStats;
use airlane_transport::Endpoint as _;

use super::Prepared;
use crate::app::Flow;
use crate::app::custom::Custom;
use crate::app::datagrams::Datagrams;
use crate::app::end::{End, under_way};
use crate::app::exchange::Totals;
use crate::engine::Engine;
use crate::paths::{LinkPath, link_path};
use crate::probe::{DelayProbe, rate_bps};
use crate::result::FlowResult;
use crate::scenario::{AppConfig, WebThroughput};
use crate::world::direction_index;

impl Prepared {
    pub(super) fn flow_result(
        &self,
        index: usize,
        engine: &Engine,
        at_stop: &[ChannelStats],
        stopped: Instant,
    ) -> FlowResult {
        let config = &self.scenario.flows[index];
        let flow = &engine.flows[index];
        // For a file: from its first segment to its end, or to the stop if it is endless. If nothing could leave, the
        // time counts from its start.
        let file_rate = |bytes, first: Option<Instant>, done: Option<Instant>| {
            let from = first.unwrap_or(Instant::ORIGIN + config.start);
            rate_bps(bytes, done.unwrap_or(stopped).saturating_since(from))
        };
        let progress = |sent, received, duplicates| {
            let progress = flow.progress()?;
            Some(progress.result(sent, received, duplicates))
        };
        let base = FlowResult {
            name: config.name.clone(),
            app: config.app.kind(),
            delivered_bytes: flow.delivered_bytes(),
            ..FlowResult::default()
        };
        match flow {
            Flow::Bulk(bulk) => {
                let [first, second] = bulk.ends();
                let (sender, receiver) = (first.endpoint().sender(), second.endpoint().receiver());
                let acked_bytes = sender.acked_bytes();
                let finished = sender.is_acknowledged();
                let done = sender.last_acked().filter(|_| finished);
                let stats = sender.stats();
                let got = receiver.stats();
                FlowResult {
                    progress: progress(
                        stats.segments_sent,
                        got.segments_received,
                        got.segments_duplicate,
                    ),
                    finished: Some(finished),
                    throughput_bps: file_rate(acked_bytes, sender.first_sent(), done),
                    goodput_ratio: self.goodput(index, acked_bytes, at_stop, engine),
                    packets_sent: stats.segments_sent,
                    packets_received: receiver.stats().segments_received,
                    packets_under_way: under_way(first, second),
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
                let finished = flow.is_finished();
                let done = out.sender().last_acked().filter(|_| finished);
                let (stats, relay) = (sender.stats(), out.sender().stats());
                FlowResult {
                    finished: Some(finished),
                    throughput_bps: file_rate(out.acknowledged(), sender.first_sent(), done),
                    goodput_ratio: self.goodput(index, out.acknowledged(), at_stop, engine),
                    packets_sent: stats.segments_sent,
                    packets_received: receiver.stats().segments_received,
                    packets_under_way: split.under_way(),
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
                FlowResult {
                    progress: progress(sent.data_sent, got.data_received, got.duplicates),
                    finished: Some(flow.is_finished()),
                    throughput_bps: app.throughput_bps(stopped),
                    goodput_ratio: self.goodput(index, app.delivered_bytes(), at_stop, engine),
                    packets_sent: sent.data_sent,
                    packets_received: got.data_received,
                    packets_under_way: app.under_way(),
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
                let datagrams = &app.datagrams;
                FlowResult {
                    throughput_bps: app.throughput_bps(stopped),
                    packets_sent: datagrams.sent,
                    packets_received: datagrams.received,
                    packets_under_way: datagrams.under_way(),
                    progress: progress(datagrams.sent, datagrams.came(), 0),
                    ..datagram_result(base, datagrams)
                }
            }
            Flow::Pages(app) => {
                let (totals, finished) = (app.totals(), flow.is_finished());
                let period = app.script.period();
                FlowResult {
                    finished: Some(finished),
                    throughput_bps: pages_rate(totals.delivered_bytes, period, finished, stopped),
                    ..page_result(base, totals, &app.line.times)
                }
            }
            Flow::Web(app) => {
                let (totals, finished) = (app.totals(), flow.is_finished());
                let period = app.period();
                let completed = pages_rate(app.completed_bytes(), period, true, stopped)
                    .filter(|_| app.times.count() > 0);
                let rule = match &config.app {
                    AppConfig::Web(web) => web.throughput,
                    _ => WebThroughput::default(),
                };
                FlowResult {
                    finished: Some(finished),
                    throughput_bps: match rule {
                        WebThroughput::Delivered => {
                            pages_rate(totals.delivered_bytes, period, finished, stopped)
                        }
                        WebThroughput::Completed => completed,
                        WebThroughput::CompletedOrZero => completed.or(Some(0.0)),
                    },
                    ..page_result(base, totals, &app.times)
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
                ..custom_result(base, app, stopped)
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
        // This flow itself is one of the users.
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
}

/// The window measurements of a file's sender, if enabled.
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
        window_falls: probe.falls(),
        ..base
    }
}

/// Bits per second of pages, from the first request to the end of the last page if they have `finished`, else to the
/// stop.
fn pages_rate(
    bytes: u64,
    period: Option<(Instant, Option<Instant>)>,
    finished: bool,
    stopped: Instant,
) -> Option<f64> {
    let (first, last) = period?;
    let end = last.filter(|_| finished).unwrap_or(stopped);
    rate_bps(bytes, end.saturating_since(first))
}

/// Metrics of applications that fetch pages.
fn page_result(base: FlowResult, totals: Totals, times: &DelayProbe) -> FlowResult {
    FlowResult {
        pages: Some(times.count()),
        page_time_mean_s: times.mean_s(),
        page_time_sd_s: times.sd_s(),
        page_time_median_s: times.quantile_s(0.5),
        page_time_p95_s: times.quantile_s(0.95),
        page_time_max_s: times.max_s(),
        ..exchange_result(base, totals)
    }
}

/// Metrics of applications that wait for responses.
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

/// Metrics of custom applications: losses and delays over UDP, counters over TCP.
fn custom_result(base: FlowResult, app: &Custom, stopped: Instant) -> FlowResult {
    let base = FlowResult {
        app: "custom",
        throughput_bps: app.throughput_bps(stopped),
        ..response_result(base, app.totals(), &app.times)
    };
    match app.datagrams() {
        None => base,
        Some(datagrams) => FlowResult {
            retransmissions: None,
            timeouts: None,
            ..datagram_result(base, datagrams)
        },
    }
}

/// Metrics of datagrams: how many are lost, and the delay of the rest.
fn datagram_result(base: FlowResult, datagrams: &Datagrams) -> FlowResult {
    let (sent, came, delays) = (datagrams.sent, datagrams.came(), &datagrams.delays);
    let both = delays.mean_s().zip(delays.sd_s());
    FlowResult {
        loss_ratio: (sent > 0).then(|| 1.0 - came as f64 / sent as f64),
        delay_mean_s: delays.mean_s(),
        delay_sd_s: delays.sd_s(),
        delay_mean_plus_2sd_s: both.map(|(mean, sd)| mean + 2.0 * sd),
        delay_median_s: delays.quantile_s(0.5),
        delay_p95_s: delays.quantile_s(0.95),
        delay_p99_s: delays.quantile_s(0.99),
        jitter_mean_s: datagrams.jitter.mean_s(),
        ..base
    }
}

/// Metrics that all request-reply applications share.
fn exchange_result(base: FlowResult, totals: Totals) -> FlowResult {
    FlowResult {
        packets_sent: totals.segments_sent,
        packets_received: totals.segments_received,
        packets_under_way: totals.under_way,
        retransmissions: Some(totals.retransmissions),
        timeouts: Some(totals.timeouts),
        ..base
    }
}
