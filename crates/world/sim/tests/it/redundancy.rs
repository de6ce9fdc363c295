//! The cost of redundancy in the simulator: always sent, or on request.

use airlane_link::ServiceLedger;
use airlane_sim::{Scenario, run};

/// Speech over a WLAN.
fn text(errors: &str, scheme: &str) -> String {
    format!(
        "schema = 1\nname = \"test\"\nduration = \"60 s\"\n[nodes.a]\n[nodes.b]\n\
         [links.radio]\nends = [\"a\", \"b\"]\nrate = \"2 Mbit/s\"\ndelay = \"3 ms\"\n\
         frame = \"1000 B\"\nerrors = {errors}\n\
         header = \"study\"\nservices = [{{ number = 0, name = \"all\", rate = 1, scheme = {{ kind = \"{scheme}\" }} }}]\n\
         [[flows]]\nname = \"talk\"\nends = [\"a\", \"b\"]\ntransport = {{ kind = \"udp\" }}\n\
         app = {{ kind = \"conferencing\", rate = \"1 Mbit/s\", talk = \"1 s\", silence = \"1.35 s\" }}\n"
    )
}

/// The ledgers of the speech's sender and receiver.
fn ledgers(errors: &str, scheme: &str) -> [ServiceLedger; 2] {
    let scenario = Scenario::from_toml(&text(errors, scheme), "test.toml");
    let scenario = scenario.unwrap_or_else(|e| panic!("{e}"));
    let service = &run(&scenario, 1999, 0).unwrap().links[0].down.services[0];
    [service.sender, service.receiver]
}

/// At 1 % loss, most blocks need at most the first parity.
#[test]
fn parities_on_request_are_fewer() {
    let errors = "{ kind = \"byte-exponential\", mean = \"100 kB\" }";
    let [fixed, fixed_receiver] = ledgers(errors, "rse");
    let [adaptive, receiver] = ledgers(errors, "rse-ad");
    assert!(fixed.repair_frames_sent > 500, "{fixed:?}");
    assert!(
        10 * adaptive.repair_frames_sent < 6 * fixed.repair_frames_sent,
        "{adaptive:?}"
    );
    assert!(receiver.packets_delivered >= fixed_receiver.packets_delivered);
}
