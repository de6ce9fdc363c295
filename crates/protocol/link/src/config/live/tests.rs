use super::*;

/// 20 Mbit/s, 25 ms: a round trip of 50 ms, a full packet in 0.6 ms.
fn facts() -> LiveFacts {
    LiveFacts {
        rate: "20 Mbit/s".parse().unwrap(),
        delay: Duration::from_millis(25),
        packet: 1500,
    }
}

fn service(scheme: &str, more: &str) -> ServiceConfig {
    toml::from_str(&format!(
        "number = 1\nname = \"it\"\nrate = 1.0\nscheme = {{ {scheme} }}\n{more}"
    ))
    .unwrap_or_else(|e| panic!("{scheme}: {e}"))
}

fn class(conditions: &str) -> ClassConfig {
    toml::from_str(&format!("match = {{ {conditions} }}\nservice = \"it\"")).unwrap()
}

fn tcp() -> [ClassConfig; 1] {
    [class("protocol = \"tcp\"")]
}

const ARQ: [&str; 9] = [
    "kind = \"gbn\"",
    "kind = \"sr\"",
    "kind = \"sr-m1\"",
    "kind = \"sr-m2\"",
    "kind = \"sr-bitmap\"",
    "kind = \"rlp\"",
    "kind = \"rlp-oos\"",
    "kind = \"rse-ad\"",
    "kind = \"gsm-rlp\"",
];
const OTHERS: [&str; 5] = [
    "kind = \"default\"",
    "kind = \"xor\"",
    "kind = \"xor-ad\", silence = \"50 ms\"",
    "kind = \"rse\"",
    "kind = \"snoop\", base-station = \"here\"",
];

fn problems(scheme: &str, more: &str) -> Vec<ConfigError> {
    check_live(&facts(), &[service(scheme, more)], &tcp())
}

#[test]
fn every_scheme_runs_live_as_it_is() {
    for scheme in ARQ.iter().chain(&OTHERS) {
        assert_eq!(problems(scheme, ""), [], "{scheme}");
        for queue in ["50 packets", "125 kB"] {
            for kind in ["drop-tail", "fq-codel"] {
                let queue = format!("queue = {{ kind = \"{kind}\", limit = \"{queue}\" }}");
                assert_eq!(problems(scheme, &queue), [], "{scheme} {queue}");
            }
        }
    }
    for scheme in ARQ {
        for timers in [
            "\"tight\"",
            "\"relaxed\"",
            "\"buffer\"",
            "\"measured\"",
            "{ ack = \"1 ms\", nak = \"60 ms\", keepalive = \"1 ms\", rto = \"60 ms\" }",
            "{ ack = 0.1, nak = 1, keepalive = 1, rto = 1 }",
        ] {
            let scheme = format!("{scheme}, timers = {timers}");
            assert_eq!(problems(&scheme, ""), [], "{scheme}");
        }
    }
}

#[test]
fn a_service_needs_a_queue() {
    for scheme in ARQ.iter().chain(&OTHERS) {
        let found = problems(scheme, "queue = { kind = \"none\" }");
        assert_eq!(found.len(), 1, "{scheme}: {found:?}");
        assert_eq!(found[0].path, "services[0].queue");
        for kind in ["drop-tail", "fq-codel"] {
            let queue = format!("queue = {{ kind = \"{kind}\", limit = \"1499 B\" }}");
            let found = problems(scheme, &queue);
            assert_eq!(found.len(), 1, "{scheme}: {found:?}");
            assert_eq!(found[0].path, "services[0].queue.limit");
            assert!(found[0].help.contains("1500 B"), "{}", found[0]);
        }
    }
}

#[test]
fn manual_timers_must_exceed_a_round_trip() {
    for scheme in ARQ {
        let rlp = scheme.contains("\"rlp") || scheme.contains("rse");
        let (name, bad) = if rlp {
            ("nak", "16 ms")
        } else {
            ("rto", "49 ms")
        };
        let values =
            format!("ack = \"1 ms\", nak = \"{bad}\", keepalive = \"1 s\", rto = \"{bad}\"");
        let found = problems(&format!("{scheme}, timers = {{ {values} }}"), "");
        assert_eq!(found.len(), 1, "{scheme}: {found:?}");
        assert_eq!(found[0].path, format!("services[0].scheme.timers.{name}"));
        assert!(found[0].problem.contains("50 ms"), "{}", found[0]);
        // Three attempts of 17 ms, or a multiplier, suffice.
        let values = values.replace("16 ms", "17 ms");
        let stretched = format!("{scheme}, multiplier = 1.1, timers = {{ {values} }}");
        assert_eq!(problems(&stretched, ""), [], "{scheme}");

        let found = problems(
            &format!("{scheme}, timers = \"tight\", multiplier = 0.1"),
            "",
        );
        assert_eq!(found.len(), 1, "{scheme}: {found:?}");
        assert_eq!(found[0].path, "services[0].scheme.multiplier");
        // Measured timers are not multiplied.
        assert_eq!(problems(&format!("{scheme}, multiplier = 0.1"), ""), []);
    }
}

#[test]
fn timers_that_follow_the_buffer_are_too_short_on_a_fast_and_long_link() {
    let fast = LiveFacts {
        rate: "1 Gbit/s".parse().unwrap(),
        ..facts()
    };
    for scheme in ARQ {
        let table = [service(&format!("{scheme}, timers = \"buffer\""), "")];
        let found = check_live(&fast, &table, &tcp());
        assert_eq!(found.len(), 1, "{scheme}: {found:?}");
        assert_eq!(found[0].path, "services[0].scheme.timers");
    }
}

#[test]
fn measured_timers_have_an_upper_bound() {
    let far = LiveFacts {
        delay: Duration::from_secs(6),
        ..facts()
    };
    for scheme in ARQ {
        let measured = [
            service(scheme, ""),
            service(&format!("{scheme}, timers = \"measured\""), ""),
        ];
        for one in measured {
            let found = check_live(&far, &[one], &tcp());
            assert_eq!(found.len(), 1, "{scheme}: {found:?}");
            assert!(found[0].problem.contains("12 s"), "{}", found[0]);
        }
        let relaxed = [service(&format!("{scheme}, timers = \"relaxed\""), "")];
        assert_eq!(check_live(&far, &relaxed, &tcp()), [], "{scheme}");
    }
    for scheme in OTHERS {
        assert_eq!(check_live(&far, &[service(scheme, "")], &tcp()), []);
    }
}

#[test]
fn snoop_needs_tcp() {
    let snoop = [service(OTHERS[4], "")];
    for (classes, expected) in [
        (vec![], Some("services[0].scheme.kind")),
        (vec![class("protocol = \"tcp\", port = 80")], None),
        (vec![class("dscp = \"AF11\"")], None),
        (
            vec![class("dscp = \"AF11\""), class("protocol = \"udp\"")],
            Some("classes[1].service"),
        ),
    ] {
        let found = check_live(&facts(), &snoop, &classes);
        let paths: Vec<&str> = found.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, Vec::from_iter(expected), "{found:?}");
    }
    // Unrecognised traffic includes TCP.
    let default = ServiceConfig {
        number: 0,
        ..snoop[0].clone()
    };
    assert_eq!(check_live(&facts(), &[default], &[]), []);
}

#[test]
fn snoop_has_no_study_rules_live() {
    for (key, value) in [("variant", "\"ns2\""), ("notify", "true")] {
        let scheme = format!("kind = \"snoop\", base-station = \"here\", {key} = {value}");
        let found = check_live(&facts(), &[service(&scheme, "")], &tcp());
        let paths: Vec<&str> = found.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, [format!("services[0].scheme.{key}")]);
    }
}
