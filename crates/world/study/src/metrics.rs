//! The numbers that a study keeps of a run, by name: `flow.metric_unit`, `link.direction.count` or
//! `link.direction.service.metric_unit`; for radio channels `medium.count` and
//! `medium.station.count`, for groups of flows `group.metric_unit`.

use std::collections::BTreeMap;

use airlane_base::config;
use airlane_sim::{DirectionResult, FlowResult, ProgressResult, RunResult, ServiceResult};

use crate::curve;

/// Names and values of one run, in a fixed order. A value that could not be measured is NaN.
pub fn metrics(run: &RunResult) -> (Vec<String>, Vec<f64>) {
    let mut names = vec![];
    let mut values = vec![];
    let mut push = |name: String, value: f64| {
        names.push(name);
        values.push(value);
    };
    push("stopped_s".into(), run.stopped_s);
    push("finished".into(), f64::from(u8::from(run.finished)));
    push("events".into(), run.events as f64);
    let numbers = service_numbers(run);
    for flow in &run.flows {
        for (metric, value) in flow_metrics(flow) {
            push(format!("{}.{metric}", config::key(&flow.name)), value);
        }
        let carried = most_of(flow, &numbers).map_or(f64::NAN, f64::from);
        push(
            format!("{}.service_number", config::key(&flow.name)),
            carried,
        );
        for (metric, value) in flow.progress.iter().flat_map(progress_metrics) {
            push(format!("{}.{metric}", config::key(&flow.name)), value);
        }
    }
    for group in &run.groups {
        for (metric, value) in group.scalars() {
            let name = format!("{}.{metric}", config::key(&group.name));
            push(name, value.unwrap_or(f64::NAN));
        }
    }
    for radio in &run.radios {
        let place = config::key(&radio.name).into_owned();
        for (metric, value) in radio.scalars() {
            push(format!("{place}.{metric}"), value);
        }
        for station in &radio.stations {
            let node = config::key(&station.node);
            for (metric, value) in station.scalars() {
                push(format!("{place}.{node}.{metric}"), value);
            }
        }
    }
    for link in &run.links {
        for (direction, result) in [("down", &link.down), ("up", &link.up)] {
            let place = format!("{}.{direction}", config::key(&link.name));
            for (metric, value) in direction_metrics(result) {
                push(format!("{place}.{metric}"), value);
            }
            for service in &result.services {
                for (metric, value) in service_metrics(service) {
                    push(
                        format!("{place}.{}.{metric}", config::key(&service.name)),
                        value,
                    );
                }
            }
        }
    }
    for retrace in &run.retraces {
        for (metric, value) in retrace.metrics() {
            push(format!("{}.{metric}", config::key(&retrace.name)), value);
        }
    }
    (names, values)
}

/// The numbers of services, by link and name.
fn service_numbers(run: &RunResult) -> BTreeMap<(&str, &str), u8> {
    let links = run.links.iter().flat_map(|link| {
        let services = link.down.services.iter().chain(&link.up.services);
        services.map(|service| ((&*link.name, &*service.name), service.number))
    });
    links.collect()
}

/// The service that carried most of a flow's packets in its main direction, on the first link with
/// services that they reached.
fn most_of(flow: &FlowResult, numbers: &BTreeMap<(&str, &str), u8>) -> Option<u8> {
    let on = flow.services.iter().find(|on| !on.there.is_empty())?;
    let most = on.there.first()?;
    numbers.get(&(&*on.link, &*most.service)).copied()
}

/// The names are the same for every run of a scenario, whatever happened in it.
fn flow_metrics(flow: &FlowResult) -> Vec<(&'static str, f64)> {
    let measured = flow.scalars();
    let value = |name: &&'static str| {
        let found = measured.iter().find(|(metric, _)| metric == name);
        (*name, found.map_or(f64::NAN, |(_, value)| *value))
    };
    let counts = [
        ("packets_sent", flow.packets_sent as f64),
        ("packets_received", flow.packets_received as f64),
        ("packets_under_way", flow.packets_under_way as f64),
        ("delivered_bytes", flow.delivered_bytes as f64),
    ];
    flow.measures().iter().map(value).chain(counts).collect()
}

/// The metrics of a progress probe, including points of its curve and time windows, with their
/// names.
fn progress_metrics(progress: &ProgressResult) -> Vec<(String, f64)> {
    let number = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let whole = progress.scalars().into_iter();
    let whole = whole.map(|(metric, value)| (metric.to_owned(), number(value)));
    let curve = progress.curve.iter();
    let curve = curve.map(|(at, bytes)| (curve::name(*at), *bytes as f64));
    let windows = progress.windows.iter().flat_map(|(name, window)| {
        let scalars = window.scalars().into_iter();
        scalars.map(move |(metric, value)| {
            let name = format!("{}.{metric}", config::key(name));
            (name, number(value))
        })
    });
    whole.chain(curve).chain(windows).collect()
}

fn direction_metrics(direction: &DirectionResult) -> Vec<(&'static str, f64)> {
    let channel = &direction.channel;
    let mut all = vec![("frame_bytes", channel.offered.bytes as f64)];
    all.extend(direction.scalars());
    if let Some(circuit) = &direction.circuit {
        all.extend([
            ("repeated_frames", circuit.repeated as f64),
            ("abandoned_frames", circuit.abandoned as f64),
            ("resets", circuit.resets as f64),
            ("spoiled_packets", circuit.spoiled.frames as f64),
            ("dropped_packets", channel.dropped_queue.frames as f64),
        ]);
    }
    if let Some(headers) = &direction.headers {
        all.extend([
            ("whole_headers", headers.whole as f64),
            ("header_mean_bytes", headers.mean_bytes()),
            ("out_of_step_packets", headers.out_of_step.frames as f64),
        ]);
    }
    if !direction.services.is_empty() {
        all.extend(repairs(&direction.services));
    }
    all
}

/// The metrics of one service: those that it measures itself, then its counts.
fn service_metrics(service: &ServiceResult) -> Vec<(&'static str, f64)> {
    let measured = [
        ("goodput_ratio", service.goodput_ratio),
        ("loss_ratio", service.loss_ratio),
        ("delay_s", service.delay_s),
        ("queueing_s", service.queueing_s),
    ];
    let measured = measured.map(|(metric, value)| (metric, value.unwrap_or(f64::NAN)));
    let sender = &service.sender;
    let sent = [
        ("packets", sender.packets_offered as f64),
        ("frame_bytes", sender.frame_sent_bytes as f64),
    ];
    let repairs = repairs(std::slice::from_ref(service));
    measured.into_iter().chain(sent).chain(repairs).collect()
}

/// What all services together did against losses.
fn repairs(services: &[ServiceResult]) -> [(&'static str, f64); 7] {
    let sum = |of: fn(&ServiceResult) -> u64| services.iter().map(of).sum::<u64>() as f64;
    [
        ("repair_frames", sum(|s| s.sender.repair_frames_sent)),
        ("control_frames", sum(|s| s.sender.control_frames_sent)),
        ("dropped_packets", sum(|s| s.sender.packets_dropped())),
        ("recovered_packets", sum(|s| s.receiver.packets_recovered)),
        ("given_up_packets", sum(|s| s.receiver.given_up)),
        ("resyncs", sum(|s| s.receiver.resyncs)),
        ("hold_s", sum(|s| s.receiver.hold_ns) / 1e9),
    ]
}

#[cfg(test)]
mod tests {
    use airlane_sim::{Scenario, run};

    use super::*;

    #[test]
    fn a_flow_has_the_number_of_the_service_that_carried_it() {
        let of = |services: &str| {
            let flow = |name: &str, port: u16| {
                format!(
                    "[[flows]]\nname = \"{name}\"\nends = [\"a\", \"b\"]\nport = {port}\n\
                     transport = {{ kind = \"udp\" }}\napp = {{ kind = \"cbr\", rate = \"64 kbit/s\", packet = \"200 B\" }}\n"
                )
            };
            let text = format!(
                "schema = 1\nname = \"two\"\nduration = \"2 s\"\n[nodes.a]\n[nodes.b]\n[links.wire]\n\
                 ends = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n{services}\n{}{}",
                flow("call", 5004),
                flow("other", 6000)
            );
            let scenario = Scenario::from_toml(&text, "two").unwrap_or_else(|e| panic!("{e}"));
            let (names, values) = metrics(&run(&scenario, 1, 0).unwrap());
            ["call", "other"].map(|flow| {
                let name = format!("{flow}.service_number");
                values[names.iter().position(|n| *n == name).unwrap()]
            })
        };
        let services = "services = [{ number = 3, name = \"calls\", rate = 1, scheme = { kind = \"rlp-oos\" } }]\n\
                        classes = [{ match = { port = 5004 }, service = \"calls\" }]";
        assert_eq!(of(services), [3.0, 0.0]);
        assert!(
            of("").iter().all(|number| number.is_nan()),
            "no service at all"
        );
    }

    #[test]
    fn custom_applications_have_all_that_they_measure() {
        let flow = FlowResult {
            app: "custom",
            throughput_bps: Some(8000.0),
            loss_ratio: Some(0.25),
            delay_mean_s: Some(0.1),
            responses: Some(20),
            response_time_mean_s: Some(0.2),
            timeouts: Some(3),
            ..FlowResult::default()
        };
        let metrics = flow_metrics(&flow);
        for measured in flow.scalars() {
            assert!(metrics.contains(&measured), "{measured:?}");
        }
        let unmeasured = |name| metrics.iter().any(|(n, v)| *n == name && v.is_nan());
        assert!(unmeasured("retransmissions"));
        assert!(metrics.iter().all(|(name, _)| !name.starts_with("page")));
    }
}
