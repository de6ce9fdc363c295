//! Validates a service table.

use airlane_base::Duration;

use super::problem::{ConfigError, Wrong};
use super::scheme::SchemeConfig;
use super::service::{IMPLICIT_NAME, ServiceConfig};
use super::timers::{Multiplier, TimerProfile, TimerValue, TimersConfig};
use crate::classify::ClassConfig;
use crate::wire::HeaderProfile;

/// Finds all problems of a service table at once.
pub fn check(
    header: HeaderProfile,
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
        let at = |field: &str| format!("services[{i}].{field}");
        if service.number > 15 {
            let problem = format!("service number {} does not fit 4 bits", service.number);
            wrong(at("number"), problem, "use a number from 0 to 15");
        }
        if !(service.rate > 0.0 && service.rate.is_finite()) {
            let problem = format!("a rate of {} gives the service nothing", service.rate);
            wrong(
                at("rate"),
                problem,
                "a rate is a share above 0, such as 0.5",
            );
        }
        if service.name.is_empty() {
            let problem = "the name is empty".to_owned();
            wrong(
                at("name"),
                problem,
                "give the service a name, such as \"voice\"",
            );
        }
        if service.name == IMPLICIT_NAME && !services.iter().any(|s| s.number == 0) {
            wrong(
                at("name"),
                format!("\"{IMPLICIT_NAME}\" is the raw service, number 0, that every link has"),
                "another name, or number = 0 if unrecognised traffic shall go here",
            );
        }
        for (j, other) in services[..i].iter().enumerate() {
            if other.number == service.number {
                let problem = format!(
                    "number {} is taken by services[{j}] \"{}\"",
                    service.number, other.name
                );
                wrong(
                    at("number"),
                    problem,
                    "each service of a link has a number of its own",
                );
            }
            if other.name == service.name {
                let problem = format!("the name \"{}\" is taken by services[{j}]", service.name);
                wrong(
                    at("name"),
                    problem,
                    "each service of a link has a name of its own",
                );
            }
        }
        if let Some(budget) = service.budget {
            check_budget(budget, &service.scheme, at("budget"), &mut wrong);
        }
        if service.patience == Some(Duration::ZERO) {
            let problem = "a patience of 0 s lets nothing wait".to_owned();
            wrong(at("patience"), problem, "some seconds, or leave it out");
        }
        if let Some(aggregate) = service.aggregate {
            let (scheme, budget) = (&service.scheme, service.budget);
            aggregate.check(header, scheme, budget, &at("aggregate"), &mut wrong);
        }
        if service.compact_headers {
            check_compact_headers(header, &service.scheme, at("compact-headers"), &mut wrong);
        }
        check_scheme(header, &service.scheme, &at("scheme"), &mut wrong);
    }
    for (i, class) in classes.iter().enumerate() {
        let known = services.iter().any(|s| s.name == class.service)
            || (class.service == IMPLICIT_NAME && !services.iter().any(|s| s.number == 0));
        if !known {
            let mut names: Vec<_> = services.iter().map(|s| s.name.as_str()).collect();
            names.push(IMPLICIT_NAME);
            wrong(
                format!("classes[{i}].service"),
                format!("there is no service \"{}\" on this link", class.service),
                &format!("the services are {}", names.join(", ")),
            );
        }
    }
    found
}

fn check_compact_headers(
    header: HeaderProfile,
    scheme: &SchemeConfig,
    at: String,
    wrong: Wrong<'_>,
) {
    if !header.is_live() {
        let problem = "the works send headers as they are".to_owned();
        wrong(at, problem, "leave it out, or header = \"live\"");
    } else if scheme.looks_into_packets() {
        let problem = format!(
            "{} looks into packets, and needs their headers",
            scheme.kind()
        );
        wrong(
            at,
            problem,
            "leave it out, or use another scheme, such as sr-m2",
        );
    }
}

fn check_budget(budget: Duration, scheme: &SchemeConfig, at: String, wrong: Wrong<'_>) {
    if budget == Duration::ZERO {
        let problem = "a budget of 0 s lets nothing through".to_owned();
        wrong(
            at,
            problem,
            "more than the link's delay, such as \"150 ms\"",
        );
    } else if scheme.is_reliable() {
        wrong(
            at,
            format!(
                "{} repairs each packet until it is there, however late: the peer holds what \
                 follows until then",
                scheme.kind()
            ),
            "leave it out, or use \"rlp-oos\" or \"rlp\"",
        );
    }
}

fn check_scheme(header: HeaderProfile, scheme: &SchemeConfig, at: &str, wrong: Wrong<'_>) {
    scheme.check(header, at, wrong);
    if let Some(TimersConfig::Fixed(fixed)) = scheme.timers() {
        let all = [
            ("ack", fixed.ack),
            ("nak", fixed.nak),
            ("keepalive", fixed.keepalive),
            ("rto", fixed.rto),
        ];
        for (name, value) in all {
            let problem = match value {
                TimerValue::Time(Duration::ZERO) => {
                    "a timer of 0 s would never let time pass".to_owned()
                }
                TimerValue::RoundTrips(n) if !(0.001..=1e6).contains(&n) => {
                    format!("a timer of {n} round trips is impossible")
                }
                _ => continue,
            };
            wrong(
                format!("{at}.timers.{name}"),
                problem,
                "a timer runs for the round trip of the link or longer",
            );
        }
    }
    // RLP measures the time from a NAK to its repair; the other schemes need the peer's echo.
    let measured = Some(&TimersConfig::Profile(TimerProfile::Measured));
    if header == HeaderProfile::Study && scheme.is_reliable() && scheme.timers() == measured {
        wrong(
            format!("{at}.timers"),
            format!(
                "{} cannot measure round trips with study headers, which have no room for the peer's echo",
                scheme.kind()
            ),
            "use \"relaxed\", \"tight\", \"buffer\" or values by hand, or header = \"live\"",
        );
    }
    if let Some(copies) = scheme.copies() {
        copies.check(header, &format!("{at}.copies"), wrong);
    }
    let largest = match header {
        HeaderProfile::Study => scheme.traits().study_window_at_most,
        HeaderProfile::Live | HeaderProfile::Sealed => scheme.traits().live_window_at_most,
    };
    if let Some(window) = scheme.window()
        && !(1..=largest).contains(&window)
    {
        wrong(
            format!("{at}.window"),
            format!("a window of {window} frames is impossible here"),
            &format!("with this header a window has 1 to {largest} frames"),
        );
    }
    if let Some(retries) = scheme.arq().and_then(|options| options.retries)
        && !(1..=255).contains(&retries)
    {
        let problem = format!("{retries} retries are impossible");
        wrong(format!("{at}.retries"), problem, "use 1 to 255 retries");
    }
    if let Some(Multiplier::Factor(factor)) = scheme.multiplier()
        && !(factor > 0.0 && factor.is_finite())
    {
        let problem = format!("timers cannot be multiplied by {factor}");
        wrong(
            format!("{at}.multiplier"),
            problem,
            "use \"services\", \"share\" or a number above 0",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(header: HeaderProfile, scheme: &str, more: &str) -> Vec<String> {
        let service: ServiceConfig = toml::from_str(&format!(
            "number = 0\nname = \"all\"\nrate = 1.0\nscheme = {{ {scheme} }}\n{more}"
        ))
        .unwrap();
        let found = check(header, &[service], &[]);
        found.into_iter().map(|problem| problem.path).collect()
    }

    #[test]
    fn retries_and_residual_exclude_each_other() {
        for (options, field) in [
            ("residual = 0.001", None),
            ("residual = 0.001, retries = 3", Some("retries")),
            ("residual = 0", Some("residual")),
            ("residual = 0.9", Some("residual")),
        ] {
            let found = paths(
                HeaderProfile::Live,
                &format!("kind = \"rlp\", {options}"),
                "",
            );
            let expected: Vec<_> = field
                .map(|name| format!("services[0].scheme.{name}"))
                .into_iter()
                .collect();
            assert_eq!(found, expected, "{options}");
        }
    }

    #[test]
    fn gsm_has_62_numbers() {
        for (header, options, right) in [
            (HeaderProfile::Live, "window = 31", true),
            (HeaderProfile::Live, "window = 32", false),
            (
                HeaderProfile::Live,
                "window = 61, repair = \"go-back\"",
                true,
            ),
            (
                HeaderProfile::Live,
                "window = 62, repair = \"go-back\"",
                false,
            ),
            (HeaderProfile::Study, "window = 61", true),
            (HeaderProfile::Study, "window = 62", false),
            (
                HeaderProfile::Live,
                "persistence = { time = \"1 ms\" }",
                false,
            ),
        ] {
            let found = paths(header, &format!("kind = \"gsm-rlp\", {options}"), "");
            assert_eq!(found.len(), usize::from(!right), "{options}: {found:?}");
        }
    }

    #[test]
    fn only_out_of_order_delivery_can_hold_repeats() {
        let [live, study] = [HeaderProfile::Live, HeaderProfile::Study];
        for (kind, header, right) in [
            ("rlp-oos", live, true),
            ("rlp-oos", study, false),
            ("rlp", live, false),
        ] {
            let found = paths(
                header,
                &format!("kind = \"{kind}\", hold-repeats = true"),
                "",
            );
            assert_eq!(found.is_empty(), right, "{kind}: {found:?}");
        }
    }

    #[test]
    fn options_of_live_headers_are_refused_with_others() {
        let options = [
            "copies = {}",
            "keepalives = 8",
            "repeat-naks = true",
            "dejitter = true",
            "order = \"flow\"",
        ];
        for option in options {
            let scheme = format!("kind = \"sr-m2\", {option}");
            assert!(paths(HeaderProfile::Live, &scheme, "").is_empty());
            let name = option.split(' ').next().unwrap();
            let expected = format!("services[0].scheme.{name}");
            assert_eq!(paths(HeaderProfile::Study, &scheme, ""), [expected]);
        }
    }

    #[test]
    fn impossible_copies_and_budgets_are_refused() {
        for (copies, field) in [
            ("number = 0", "number"),
            ("number = 5", "number"),
            ("after = \"0 s\"", "after"),
            ("share = 0.0", "share"),
            ("share = 1.5", "share"),
        ] {
            let scheme = format!("kind = \"rlp-oos\", copies = {{ {copies} }}");
            let expected = format!("services[0].scheme.copies.{field}");
            assert_eq!(paths(HeaderProfile::Live, &scheme, ""), [expected]);
        }
        let budget = |scheme, budget| {
            let more = format!("budget = \"{budget}\"");
            paths(HeaderProfile::Live, scheme, &more)
        };
        assert!(budget("kind = \"rlp\"", "150 ms").is_empty());
        assert_eq!(budget("kind = \"rlp\"", "0 s"), ["services[0].budget"]);
        assert_eq!(budget("kind = \"sr-m2\"", "1 s"), ["services[0].budget"]);
    }

    #[test]
    fn measured_timers_are_refused_where_headers_cannot_measure() {
        for (kind, study) in [
            ("gbn", false),
            ("sr", false),
            ("sr-m1", false),
            ("sr-m2", false),
            ("sr-bitmap", false),
            ("rlp", true),
            ("rlp-oos", true),
        ] {
            let service: ServiceConfig = toml::from_str(&format!(
                "number = 0\nname = \"all\"\nrate = 1.0\n\
                 scheme = {{ kind = \"{kind}\", timers = \"measured\" }}"
            ))
            .unwrap();
            let services = [service];
            assert_eq!(check(HeaderProfile::Live, &services, &[]), [], "{kind}");
            let found = check(HeaderProfile::Study, &services, &[]);
            assert_eq!(found.is_empty(), study, "{kind}: {found:?}");
            for problem in found {
                assert_eq!(problem.path, "services[0].scheme.timers");
                assert!(problem.problem.contains("echo"), "{problem}");
            }
        }
    }

    #[test]
    fn only_go_back_n_may_use_more_than_half_of_the_numbers() {
        let refused = |scheme: &str, window: u32| {
            let found = paths(
                HeaderProfile::Study,
                &format!("kind = \"{scheme}\", window = {window}"),
                "",
            );
            found == ["services[0].scheme.window"]
        };
        assert_eq!(
            [255, 256].map(|window| refused("gbn", window)),
            [false, true]
        );
        for scheme in ["sr", "sr-m2", "sr-bitmap", "rlp"] {
            let windows = [127, 128].map(|window| refused(scheme, window));
            assert_eq!(windows, [false, true], "{scheme}");
        }
    }

    #[test]
    fn an_impossible_agent_is_refused() {
        let agent = |more: &str| {
            let scheme = format!("kind = \"snoop\", base-station = \"here\", {more}");
            paths(HeaderProfile::Study, &scheme, "")
        };
        for more in [
            "suppress = false, detect = \"smart\"",
            "threshold = 1, min-timeout = \"200 ms\"",
            "variant = \"ns2\"",
        ] {
            assert!(agent(more).is_empty(), "{more}");
        }
        for (more, field) in [
            ("threshold = 0", "threshold"),
            ("threshold = 11", "threshold"),
            ("min-timeout = \"0 s\"", "min-timeout"),
            ("variant = \"ns2\", suppress = false", "variant"),
            ("variant = \"ns2\", notify = true", "variant"),
        ] {
            assert_eq!(agent(more), [format!("services[0].scheme.{field}")]);
        }
    }
}
