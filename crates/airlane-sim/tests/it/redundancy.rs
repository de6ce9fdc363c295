//! What redundancy costs in the simulated world: sent always, or on request.

use airlane_link::ServiceLedger;
use airlane_sim::{Scenario, run};

/// Speech over a WLAN with damaged frames.
fn text(errors: &str, scheme: &str) -> String {
    format!(
        "schema = 1\nname = \"test\"\nduration = \"60 s\"\n[nodes.a]\n[nodes.b]\n\
         [links.radio]\nends = [\"a\", \"b\"]\nrate = \"2 Mbit/s\"\ndelay = \"3 ms\"\n\
         frame = \"1000 B\"\ndeliver-corrupted = true\nerrors = {errors}\n\
         services = [{{ number = 0, name = \"all\", rate = 1, scheme = {{ kind = \"{scheme}\" }} }}]\n\
         [[flows]]\nname = \"talk\"\nends = [\"a\", \"b\"]\ntransport = {{ kind = \"udp\" }}\n\
         app = {{ kind = \"conferencing\", rate = \"1 Mbit/s\", talk = \"1 s\", silence = \"1.35 s\" }}\n"
    )
}

/// Sender and receiver of the speech.
fn ledgers(errors: &str, scheme: &str) -> [ServiceLedger; 2] {
    let scenario = Scenario::from_toml(&text(errors, scheme), "test.toml");
    let scenario = scenario.unwrap_or_else(|e| panic!("{e}"));
    let service = &run(&scenario, 1999, 0).unwrap().links[0].down.services[0];
    [service.sender, service.receiver]
}

fn ber(rate: &str) -> String {
    format!("{{ kind = \"uniform-ber\", ber = {rate} }}")
}

/// One frame in twelve is damaged, mostly in one byte. Type I pays for redundancy in every frame,
/// type II only where it is needed, and both repair what RLP sends again as a whole.
#[test]
fn increments_cost_less_than_redundancy_in_every_frame() {
    let [rlp, hybrid_1, hybrid_2] =
        ["rlp", "hybrid-1", "hybrid-2"].map(|scheme| ledgers(&ber("1e-5"), scheme));
    for [sender, receiver] in [&rlp, &hybrid_1, &hybrid_2] {
        assert_eq!(receiver.packets_delivered, sender.packets_sent);
        assert_eq!(sender.packets_sent, rlp[0].packets_sent);
    }
    let bytes = |[sender, _]: &[ServiceLedger; 2]| sender.frame_sent_bytes as f64;
    // Two symbols of 17 bytes in some 1070.
    assert!(bytes(&hybrid_2) < 0.985 * bytes(&hybrid_1));
    let repairs = |[sender, _]: &[ServiceLedger; 2]| sender.repair_frame_bytes;
    assert!(10 * repairs(&hybrid_2) < repairs(&rlp));
    assert!(10 * repairs(&hybrid_1) < repairs(&rlp));
}

/// More than half of the frames are damaged: whole frames sent again are damaged again.
#[test]
fn what_is_left_of_damaged_frames_is_worth_much() {
    let errors = ber("1e-4");
    let [_, rlp] = ledgers(&errors, "rlp");
    assert!(rlp.residual_lost > 100, "{rlp:?}");
    for scheme in ["hybrid-1", "hybrid-2"] {
        let [sender, receiver] = ledgers(&errors, scheme);
        assert!(receiver.residual_lost <= 2, "{scheme}: {receiver:?}");
        assert!(receiver.packets_delivered + 2 >= sender.packets_sent);
    }
}

/// Fades, in which headers are hit as well.
#[test]
fn hybrid_schemes_live_with_fades() {
    let errors = "{ kind = \"two-state\", good = \"1 s\", bad = \"50 ms\", ber_good = 1e-6, \
                  ber_bad = 0.002 }";
    let [_, rlp] = ledgers(errors, "rlp");
    for scheme in ["hybrid-1", "hybrid-2"] {
        let [sender, receiver] = ledgers(errors, scheme);
        assert!(receiver.corrupted > 0, "{scheme}: {receiver:?}");
        assert!(receiver.packets_delivered + receiver.residual_lost <= sender.packets_sent);
        assert!(
            receiver.residual_lost <= rlp.residual_lost,
            "{scheme}: {receiver:?}"
        );
    }
}

/// At one loss in a hundred most blocks need the first parity or none.
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

#[test]
fn a_link_that_loses_damaged_frames_has_no_use_for_hybrid_schemes() {
    for scheme in ["hybrid-1", "hybrid-2"] {
        let text = text(&ber("1e-5"), scheme).replace("deliver-corrupted = true\n", "");
        let error = Scenario::from_toml(&text, "test.toml").unwrap_err();
        let error = error.to_string();
        assert!(error.contains("deliver-corrupted = true"), "{error}");
        assert!(error.contains(scheme), "{error}");
    }
}
