//! Terminal sessions and mail checks: response times, with and without losses.

use airlane_sim::{FlowResult, Scenario, run};

/// A client and a server over one link of 1 Mbit/s and 10 ms, with frames of 1000 B.
fn world(app: &str) -> Scenario {
    let text = format!(
        "schema = 1\nname = \"test\"\nduration = \"100000 s\"\nuntil = \"flow\"\n\
         [nodes.server]\n[nodes.client]\n[links.wire]\nends = [\"server\", \"client\"]\n\
         rate = \"1 Mbit/s\"\ndelay = \"10 ms\"\nframe = \"1000 B\"\n\
         [[flows]]\nname = \"flow\"\nends = [\"server\", \"client\"]\n\
         transport = {{ kind = \"tcp\", profile = \"ns2-1999\" }}\napp = {{ {app} }}\n"
    );
    Scenario::from_toml(&text, "test").unwrap_or_else(|e| panic!("{e}"))
}

fn flow(scenario: &Scenario) -> FlowResult {
    run(scenario, 1, 0).unwrap().flows.remove(0)
}

fn lossy(app: &str) -> Scenario {
    let mut scenario = world(app);
    let wire = scenario.links.get_mut("wire").unwrap();
    wire.errors = toml::from_str("kind = \"uniform\"\nrate = 0.1").unwrap();
    scenario
}

fn close(found: Option<f64>, exact: f64) {
    assert!(
        (found.unwrap() / exact - 1.0).abs() < 1e-9,
        "{found:?}, not {exact}"
    );
}

#[test]
fn an_echo_takes_a_round_trip_after_the_acknowledgment() {
    let telnet = flow(&world(
        "kind = \"telnet\", interval = \"1000 s\", count = 20",
    ));
    // 41 B = 0.328 ms and 10 ms; the acknowledgment of 0.32 ms leaves before the echo.
    close(
        telnet.response_time_mean_s,
        (0.328 + 10.0 + 0.32 + 0.328 + 10.0) / 1e3,
    );
    assert_eq!((telnet.responses, telnet.finished), (Some(20), Some(true)));
    assert_eq!(telnet.packets_sent, 40);
    assert_eq!(telnet.delivered_bytes, 20 * 41);
}

#[test]
fn every_key_is_echoed_once_over_heavy_losses_and_late_ones_wait() {
    let busy = "kind = \"telnet\", interval = \"200 ms\", count = 5000";
    let telnet = flow(&lossy(busy));
    assert_eq!(telnet.responses, Some(5_000));
    // Keys that wait for TCP's timer leave together.
    assert!(telnet.timeouts.unwrap() > 50, "{telnet:?}");
    assert!(telnet.packets_sent < 5_000, "{telnet:?}");
    // With few losses most echoes come at once; only those after a loss wait.
    let mut scenario = world("kind = \"telnet\", count = 5000");
    let wire = scenario.links.get_mut("wire").unwrap();
    wire.errors = toml::from_str("kind = \"uniform\"\nrate = 0.01").unwrap();
    let telnet = flow(&scenario);
    assert_eq!(telnet.responses, Some(5_000));
    assert!(telnet.response_time_median_s.unwrap() < 0.022, "{telnet:?}");
    assert!(telnet.response_time_max_s.unwrap() > 1.0, "{telnet:?}");
}

#[test]
fn keys_are_typed_alike_in_all_repetitions() {
    let scenario = world("kind = \"telnet\", count = 50");
    let stopped = |seed, k| run(&scenario, seed, k).unwrap().stopped_s;
    assert_eq!(stopped(1, 0), stopped(1, 1));
    assert_ne!(stopped(1, 0), stopped(2, 0));
}

#[test]
fn a_mail_check_takes_the_time_of_its_turns() {
    let mail = flow(&world(
        "kind = \"mail\", turns = 2, messages = 0, count = 10",
    ));
    // Command 0.16 ms, response 0.32 ms, 10 ms each way; an acknowledgment of 0.32 ms leaves before
    // each response, and before the second command.
    let turn_ms = 0.16 + 10.0 + 0.32 + 0.32 + 10.0;
    close(mail.response_time_mean_s, (2.0 * turn_ms + 0.32) / 1e3);
    assert_eq!((mail.responses, mail.finished), (Some(10), Some(true)));
    assert_eq!(mail.delivered_bytes, 10 * 2 * 40);
}

#[test]
fn messages_have_their_mean_size() {
    let app = "kind = \"mail\", messages = 4, message = \"5 kB\", pause = \"0 s\", count = 2000";
    let mail = flow(&world(app));
    let message = (mail.delivered_bytes as f64 - 2_000.0 * 5.0 * 40.0) / 8_000.0;
    // Exponential: the standard error is 5000 / sqrt(8000) = 56. The bound is four of them.
    assert!((message - 5_000.0).abs() < 224.0, "{message}");
    let lost = flow(&lossy(app));
    // The same messages, in order and without duplicates.
    assert_eq!(lost.delivered_bytes, mail.delivered_bytes);
    assert!(lost.response_time_mean_s.unwrap() > 2.0 * mail.response_time_mean_s.unwrap());
}

#[test]
fn impossible_sessions_are_refused() {
    let refused = |app: &str, assignment: &str| {
        let text = world(app).to_toml();
        Scenario::from_toml_with(&text, "w", &[assignment])
            .unwrap_err()
            .to_string()
    };
    let telnet = "kind = \"telnet\", count = 1";
    assert!(refused(telnet, "flows[flow].app.interval=0 s").contains("nobody types"));
    assert!(refused(telnet, "flows[flow].app.keystroke=1001 B").contains("\"1000 B\""));
    let mail = "kind = \"mail\", count = 1";
    assert!(refused(mail, "flows[flow].app.turns=0").contains("1 to"));
    assert!(refused(mail, "flows[flow].app.message=0 B").contains("1 GB"));
    assert!(refused(mail, "flows[flow].app.count=0").contains("at least 1"));
}
