//! Files over split connections.

use airlane_sim::{RunResult, Scenario, run};

/// A fast wire and a slow, lossy radio, with or without a relay between them.
fn world(relay: &str, loss: f64, pool: &str) -> String {
    let relay = match relay {
        "" => String::new(),
        recovery => format!(
            "relay = {{ kind = \"split\", at = \"base\", pool = \"{pool}\", \
             transport = {{ kind = \"tcp\", profile = \"ns2-1999\", recovery = \"{recovery}\", window = 20 }} }}\n"
        ),
    };
    format!(
        "schema = 1\nname = \"relay\"\nduration = \"900 s\"\nuntil = \"file\"\n\
         [nodes.source]\n[nodes.base]\n[nodes.mobile]\n\
         [links.wire]\nends = [\"source\", \"base\"]\nrate = \"10 Mbit/s\"\ndelay = \"40 ms\"\n\
         [links.radio]\nends = [\"base\", \"mobile\"]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n\
         frame = \"1000 B\"\nerrors = {{ kind = \"uniform\", rate = {loss} }}\n\
         [[flows]]\nname = \"file\"\nends = [\"source\", \"mobile\"]\n\
         transport = {{ kind = \"tcp\", profile = \"ns2-1999\", window = 20 }}\n{relay}\
         app = {{ kind = \"bulk\", size = \"1 MB\" }}\n"
    )
}

fn result(relay: &str, loss: f64, pool: &str) -> RunResult {
    let scenario = Scenario::from_toml(&world(relay, loss, pool), "relay").unwrap();
    let result = run(&scenario, 1, 0).unwrap();
    assert!(result.finished, "{relay} {loss} {pool}");
    assert_eq!(result.flows[0].delivered_bytes, 1_000_000);
    result
}

/// The wired leg has no losses and so no retransmissions; losses on the radio are repaired by the relay alone.
#[test]
fn the_source_sees_nothing_of_the_radio() {
    for recovery in ["reno", "smart", "sack"] {
        let split = result(recovery, 0.03, "64 kB");
        let file = &split.flows[0];
        assert_eq!(
            (file.retransmissions, file.timeouts),
            (Some(0), Some(0)),
            "{recovery}"
        );
        assert!(file.relay_retransmissions > Some(20), "{recovery}");
        let whole = result("", 0.03, "64 kB");
        assert!(
            file.throughput_bps > whole.flows[0].throughput_bps,
            "{recovery}"
        );
    }
}

/// The radio is slower than the wire: the pool and a window bound what the relay holds, and so the data that the
/// source believes delivered.
#[test]
fn a_full_pool_stalls_the_source() {
    for (pool, most) in [("4 kB", 24_000), ("64 kB", 85_536)] {
        let split = result("reno", 0.0, pool);
        let file = &split.flows[0];
        let (held, early) = (
            file.relay_held_bytes.unwrap(),
            file.relay_early_bytes.unwrap(),
        );
        assert!(held > 1_000 && held <= most, "{pool}: {held} B held");
        // One more window may wait in the first leg's receiver.
        assert!(
            early > 0 && early <= most + 20_000,
            "{pool}: {early} B early"
        );
        assert_eq!(file.retransmissions, Some(0));
    }
}

#[test]
fn faults_of_a_relay_are_named() {
    let wrong = |from: &str, to: &str| {
        let text = world("reno", 0.0, "64 kB").replace(from, to);
        Scenario::from_toml(&text, "relay").unwrap_err().to_string()
    };
    assert!(wrong("at = \"base\"", "at = \"bass\"").contains("there is no node \"bass\""));
    assert!(wrong("at = \"base\"", "at = \"mobile\"").contains("is an end of the flow"));
    assert!(wrong("pool = \"64 kB\"", "pool = \"0 B\"").contains("passes nothing on"));
    let udp = wrong(
        "transport = { kind = \"tcp\", profile = \"ns2-1999\", window = 20 }\n",
        "transport = { kind = \"udp\" }\n",
    );
    assert!(udp.contains("only bulk transfers over TCP"), "{udp}");
}
