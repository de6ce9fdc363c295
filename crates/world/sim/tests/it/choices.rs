//! Harmful settings cause a warning: a world with a warning is slower than the one that the warning advises, and good
//! worlds get no warning.

use airlane_sim::{Scenario, run};

use crate::common;

/// A file over one link, with keys for the link and the transport, and assignments.
fn world(link: &str, transport: &str, set: &[&str]) -> Scenario {
    let text = format!(
        "schema = 1\nname = \"w\"\nduration = \"20 s\"\nnodes = {{ a = {{}}, b = {{}} }}\n[links.radio]\n\
         ends = [\"a\", \"b\"]\nrate = \"20 Mbit/s\"\ndelay = \"40 ms\"\n{link}\n[[flows]]\nname = \"file\"\n\
         ends = [\"a\", \"b\"]\ntransport = {{ kind = \"tcp\"{transport} }}\napp = {{ kind = \"bulk\" }}\n"
    );
    Scenario::from_toml_with(&text, "w", set).unwrap_or_else(|e| panic!("{e}"))
}

fn rate(scenario: &Scenario) -> f64 {
    run(scenario, 1, 0).unwrap().flows[0]
        .throughput_bps
        .unwrap()
}

/// The only warning of `hurt`: `advised` does not have it, and is faster by `factor`.
fn heeded(hurt: &Scenario, advised: &Scenario, factor: f64, words: &[&str]) {
    let [said] = &hurt.warnings()[..] else {
        panic!("{:?}", hurt.warnings());
    };
    for word in words {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
    assert_eq!(advised.warnings(), [""; 0]);
    let (before, after) = (rate(hurt), rate(advised));
    assert!(after > factor * before, "{said}: {before} and {after}");
}

const REPAIRED: &str = "errors = { kind = \"uniform\", rate = 0.02 }\nclasses = \"heuristic\"\n\
    services = [{ number = 1, name = \"all\", rate = 1, scheme = { kind = \"sr-m2\" } }]\n";

#[test]
fn a_receive_window_that_cannot_fill_the_path_is_reported() {
    let hurt = world("queue = \"400 packets\"", ", window = 40", &[]);
    let advised = world("queue = \"400 packets\"", ", window = 140", &[]);
    heeded(
        &hurt,
        &advised,
        2.0,
        &[
            "a window of 40 segments fills 30 %",
            "write window = 135 or more",
        ],
    );
}

#[test]
fn a_service_window_that_cannot_fill_the_link_is_reported() {
    let study = world(
        &format!("{REPAIRED}header = \"study\"\nqueue = \"400 packets\""),
        "",
        &[],
    );
    let live = world(REPAIRED, "", &[]);
    heeded(
        &study,
        &live,
        1.5,
        &[
            "service \"all\" may have 127 frames",
            "write header = \"live\"",
        ],
    );
    let short = world(
        &REPAIRED.replace("\"sr-m2\"", "\"sr-m2\", window = 60"),
        "",
        &[],
    );
    let long = world(
        &REPAIRED.replace("\"sr-m2\"", "\"sr-m2\", window = 300"),
        "",
        &[],
    );
    heeded(
        &short,
        &long,
        1.5,
        &["may have 60 frames", "or more in its scheme"],
    );
}

#[test]
fn a_queue_that_runs_dry_is_reported() {
    let hurt = world("queue = \"6 packets\"", "", &["duration=60 s"]);
    let advised = world("queue = \"135 packets\"", "", &["duration=60 s"]);
    heeded(
        &hurt,
        &advised,
        1.1,
        &["a queue of 6 packets", "write queue = \"135 packets\""],
    );
}

#[test]
fn bbr_over_an_in_order_service_is_reported() {
    let bbr = ", congestion = \"bbr\", pacing = true";
    let losses = &["links.radio.errors.rate=0.05"];
    let hurt = world(REPAIRED, bbr, losses);
    let in_order = "rate = 1, scheme = { kind = \"sr-m2\" }";
    let paced = REPAIRED.replace(in_order, "goal = \"paced\"");
    let paced = paced.replace("heuristic", "behaviour");
    let advised = world(&paced, bbr, losses);
    heeded(
        &hurt,
        &advised,
        1.5,
        &["BBR takes what sr-m2", "write goal = \"paced\""],
    );
    let dejitter = REPAIRED.replace("\"sr-m2\"", "\"sr-m2\", dejitter = true");
    assert_eq!(world(&dejitter, bbr, losses).warnings(), [""; 0]);
    // Few losses do no harm.
    let few = &["links.radio.errors.rate=0.01"];
    let [few, raw] = [REPAIRED, "errors = { kind = \"uniform\", rate = 0.01 }"]
        .map(|link| world(link, bbr, few));
    assert_eq!(few.warnings(), [""; 0]);
    assert!(
        rate(&few) > 0.9 * rate(&raw),
        "{} and {}",
        rate(&few),
        rate(&raw)
    );
}

#[test]
fn a_queue_without_effect_is_reported() {
    let hurt = world(&format!("{REPAIRED}queue = \"400 packets\""), "", &[]);
    let [said] = &hurt.warnings()[..] else {
        panic!("{:?}", hurt.warnings());
    };
    assert!(
        said.contains("queue = \"400 packets\" has no effect"),
        "{said}"
    );
    assert_eq!(rate(&hurt), rate(&world(REPAIRED, "", &[])));
    let queue = "name = \"all\", queue = { kind = \"drop-tail\", limit = \"400 packets\" }";
    let own = world(&REPAIRED.replace("name = \"all\"", queue), "", &[]);
    assert_eq!(own.warnings(), [""; 0]);
    // A queue below the ports, or at IP before them, does have an effect.
    for use_of in ["rate-limit = \"found\"", "pacing = \"nominal\""] {
        let below = world(
            &format!("{REPAIRED}queue = \"400 packets\"\n{use_of}"),
            "",
            &[],
        );
        assert_eq!(below.warnings(), [""; 0], "{use_of}");
    }
}

#[test]
fn unrepaired_losses_are_not_blamed_on_windows() {
    let lossy = "errors = { kind = \"uniform\", rate = 0.02 }\nqueue = \"6 packets\"";
    assert_eq!(world(lossy, ", window = 40", &[]).warnings(), [""; 0]);
}

#[test]
fn shipped_scenarios_cause_no_warning() {
    for (name, text) in common::shipped() {
        let scenario = Scenario::from_toml(&text, &name).unwrap();
        assert_eq!(scenario.warnings(), [""; 0], "{name}");
    }
}
