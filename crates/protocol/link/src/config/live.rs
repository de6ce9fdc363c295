//! Finds settings that cannot work between two machines, although each value is legal by itself.
//!
//! A live port hands the scheduler one frame of each service at a time and takes the configured rate and
//! delay as given. So a service needs a queue, and a fixed timer must not expire before an answer can arrive.
//! A scenario may try all that; a live link refuses it.

use airlane_base::{Duration, QueueLimit, Rate};

use super::arq::USUAL_RETRIES;
use super::problem::{ConfigError, Wrong};
use super::scheme::SchemeConfig;
use super::service::ServiceConfig;
use super::snoop::SnoopVariant;
use super::timers::{Multiplier, MultiplierHeuristic, TimerProfile, TimersConfig};
use crate::classify::{ClassConfig, Protocol};
use crate::flow;
use crate::mechanism::timers::{LinkTiming, RttEstimator, TimerPolicy};
use crate::queue::QueueConfig;

/// The facts about a live link that the checks need.
#[derive(Clone, Copy, Debug)]
pub struct LiveFacts {
    /// Rate of the link.
    pub rate: Rate,
    /// One-way delay.
    pub delay: Duration,
    /// Length of a full packet, bytes.
    pub packet: usize,
}

/// Finds services and classes that cannot work on a live link. [`check`](super::check) finds all other
/// problems.
pub fn check_live(
    facts: &LiveFacts,
    services: &[ServiceConfig],
    classes: &[ClassConfig],
) -> Vec<ConfigError> {
    let mut found = Vec::new();
    let mut wrong = |path: String, problem: String, help: &str| {
        found.push(ConfigError {
            path,
            problem,
            help: help.to_owned(),
        });
    };
    for (i, service) in services.iter().enumerate() {
        check_queue(facts, service, &format!("services[{i}].queue"), &mut wrong);
        if let Some(budget) = service.budget.filter(|budget| *budget <= facts.delay) {
            wrong(
                format!("services[{i}].budget"),
                format!(
                    "a budget of {budget} is spent on the link, which takes {}",
                    facts.delay
                ),
                "more than link.delay; with a round trip more, losses can be repaired",
            );
        }
        check_timers(facts, services, i, &mut wrong);
        if let SchemeConfig::Snoop(snoop) = &service.scheme {
            check_snoop(i, service, classes, &mut wrong);
            if snoop.variant != SnoopVariant::Standard {
                wrong(
                    format!("services[{i}].scheme.variant"),
                    "ns-2's module withholds acknowledgments that other connections of the same \
                     hosts need"
                        .to_owned(),
                    "leave it out; \"ns2\" reproduces ns-2's module in the simulator",
                );
            }
            if snoop.notify {
                wrong(
                    format!("services[{i}].scheme.notify"),
                    "no TCP reads such a mark, and no header has a place for it".to_owned(),
                    "leave it out; scenarios have senders that do",
                );
            }
        }
    }
    found
}

fn check_queue(facts: &LiveFacts, service: &ServiceConfig, at: &str, wrong: Wrong<'_>) {
    let limit = match service.queue {
        None | Some(QueueConfig::FqCodel { limit: None, .. }) => return,
        Some(QueueConfig::None {}) => {
            return wrong(
                at.to_owned(),
                "a live service without a queue loses every packet that comes while a frame of it \
                 waits for the link"
                    .to_owned(),
                "leave it out, or give the packets a place: queue = { kind = \"drop-tail\", limit \
                 = \"50 packets\" }",
            );
        }
        Some(
            QueueConfig::DropTail { limit }
            | QueueConfig::FqCodel {
                limit: Some(limit), ..
            },
        ) => limit,
    };
    if let QueueLimit::Bytes(bytes) = limit
        && bytes < facts.packet as u64
    {
        wrong(
            format!("{at}.limit"),
            format!(
                "a queue of {bytes} B has no room for a full packet of {} B: those that must wait \
                 are lost",
                facts.packet
            ),
            &format!("at least \"{} B\", or a number of packets", facts.packet),
        );
    }
}

/// Finds timers that always expire before an answer can arrive.
fn check_timers(facts: &LiveFacts, services: &[ServiceConfig], index: usize, wrong: Wrong<'_>) {
    let scheme = &services[index].scheme;
    let at = format!("services[{index}].scheme");
    let Some(multiplier) = scheme.multiplier() else {
        return;
    };
    let air = facts.delay * 2;
    let measured = TimersConfig::Profile(TimerProfile::Measured);
    // A live service measures by default.
    let timers = scheme.timers().unwrap_or(&measured);
    if *timers == measured {
        if air > RttEstimator::AT_MOST {
            let longest = RttEstimator::AT_MOST;
            wrong(
                at,
                format!(
                    "measured timers end at {longest}, and a round trip takes {air} (twice \
                     link.delay): every frame would be sent again and again"
                ),
                "timers = \"relaxed\", which follow link.delay",
            );
        }
        return;
    }
    let timing = LinkTiming {
        rate: facts.rate,
        delay: facts.delay,
        max_payload: facts.packet,
        data_overhead: 0,
        control_len: 0,
        rlp_overhead: 0,
    };
    let mut policy = TimerPolicy::new(Some(timers), &timing);
    policy.set_factor(factor(multiplier, services, index));
    let (name, runs, then) = if scheme.traits().gives_up_by_requests {
        let retries = scheme.arq().and_then(|options| options.retries);
        let runs = policy.nak() * u64::from(retries.unwrap_or(USUAL_RETRIES));
        ("nak", runs, "packets would be given up before their repair")
    } else {
        let then = "every frame would be sent again before its acknowledgment can be there";
        ("rto", policy.rto(), then)
    };
    // A timer of zero has been refused already.
    if runs == Duration::ZERO || runs >= air {
        return;
    }
    let path = match (timers, multiplier) {
        (TimersConfig::Fixed(_), _) => format!("{at}.timers.{name}"),
        (_, Multiplier::Factor(factor)) if factor < 1.0 => format!("{at}.multiplier"),
        _ => format!("{at}.timers"),
    };
    wrong(
        path,
        format!(
            "this service waits {runs} for answers, with all attempts and its multiplier, and a \
             round trip takes {air} (twice link.delay): {then}"
        ),
        "longer timers, timers = \"measured\", or the link.delay that it really is",
    );
}

/// The factor by which sharing stretches the service's timers at the start.
fn factor(multiplier: Multiplier, services: &[ServiceConfig], index: usize) -> f64 {
    match multiplier {
        Multiplier::Factor(factor) => factor,
        Multiplier::Heuristic(MultiplierHeuristic::Services) => services.len() as f64,
        Multiplier::Heuristic(MultiplierHeuristic::Share) => {
            let all: f64 = services.iter().map(|service| service.rate).sum();
            all / services[index].rate
        }
    }
}

/// Snoop repairs only TCP.
fn check_snoop(index: usize, service: &ServiceConfig, classes: &[ClassConfig], wrong: Wrong<'_>) {
    let tcp = |class: &ClassConfig| {
        class
            .r#match
            .protocol
            .is_none_or(|p| p == Protocol(flow::TCP))
    };
    let mut any = service.number == 0;
    for (i, class) in classes.iter().enumerate() {
        if class.service != service.name {
            continue;
        }
        any |= tcp(class);
        if !tcp(class) {
            wrong(
                format!("classes[{i}].service"),
                format!(
                    "\"{}\" is snoop, which repairs TCP alone: these packets would travel \
                     unrepaired",
                    service.name
                ),
                "choose a service that repairs any packet, such as rlp-oos, or protocol = \"tcp\"",
            );
        }
    }
    if !any {
        wrong(
            format!("services[{index}].scheme.kind"),
            "snoop repairs TCP alone, and no class leads TCP to it".to_owned(),
            &format!(
                "add a class: match = {{ protocol = \"tcp\" }}, service = \"{}\"",
                service.name
            ),
        );
    }
}

#[cfg(test)]
mod tests;
