//! Circuits of GSM's data service, end to end.

use airlane_sim::{RunResult, Scenario, run};

/// A file over a circuit with these errors on its radio.
fn file(radio: &str, gsm: &str) -> Result<Scenario, String> {
    let text = format!(
        "schema = 1\nname = \"phone\"\nduration = \"6000 s\"\nuntil = \"file\"\n[nodes]\nbase = {{}}\nphone = {{}}\n\
         [links.gsm]\nends = [\"base\", \"phone\"]\nrate = \"12 kbit/s\"\ndelay = \"110 ms\"\n\
         queue = \"20 packets\"\n{radio}\ngsm = {{ {gsm} }}\n\
         [[flows]]\nname = \"file\"\nends = [\"base\", \"phone\"]\n\
         app = {{ kind = \"bulk\", size = \"600 kB\", packet = \"576 B\" }}\n\
         transport = {{ kind = \"tcp\", profile = \"ns2-1999\", window = 20 }}\n"
    );
    Scenario::from_toml(&text, "phone.toml").map_err(|error| error.to_string())
}

fn sent(radio: &str, gsm: &str) -> RunResult {
    run(&file(radio, gsm).unwrap(), 1, 0).unwrap()
}

/// Frames of 7 blocks carry 197 bytes in 140 ms; PPP takes 7 bytes of each packet (Ludwig et al. 1999, section 4.3).
#[test]
fn a_clean_circuit_is_as_fast_as_its_frames_allow() {
    for (frame, bytes_s) in [
        ("{ blocks = 1 }", 1200.0),
        ("{ blocks = 7 }", 197.0 / 0.14),
        ("{ blocks = 47 }", 1357.0 / 0.94),
    ] {
        let result = sent("", &format!("frame = {frame}"));
        let expected = bytes_s * 8.0 * 576.0 / 583.0;
        let share = result.flows[0].throughput_bps.unwrap() / expected;
        assert!((0.98..=1.0).contains(&share), "{frame}: {share}");
    }
}

/// Erasures on the radio cost time but no packets.
#[test]
fn only_a_reset_loses_packets() {
    let radio = "errors = { kind = \"blocks\", model = \"onoff-c\" }";
    for gsm in [
        "",
        ", frame = { blocks = 7 }",
        ", frame = \"adaptive\"",
        ", repair = \"go-back\"",
    ] {
        let result = sent(radio, &format!("persistence = {{ polls = 128 }}{gsm}"));
        assert!(result.flows[0].finished == Some(true), "{gsm}");
        assert!(result.links[0].down.channel.lost_air.frames > 0);
        for way in [&result.links[0].down, &result.links[0].up] {
            let circuit = way.circuit.unwrap();
            assert_eq!((circuit.resets, circuit.spoiled.frames), (0, 0), "{gsm}");
        }
    }
}

#[test]
fn an_outage_beyond_the_persistence_loses_frames_in_flight() {
    for (to, resets) in [("14 s", 0), ("15.2 s", 1)] {
        let outage = format!("outages = [{{ from = \"10 s\", to = \"{to}\" }}]");
        let result = sent(&outage, "");
        let circuit = result.links[0].down.circuit.unwrap();
        assert_eq!(circuit.resets.min(1), resets, "{to}: {circuit:?}");
        assert_eq!(circuit.spoiled.frames > 0, resets > 0, "{to}: {circuit:?}");
        assert!(
            circuit.spoiled.frames <= 4,
            "61 frames hold parts of 4 packets: {circuit:?}"
        );
        // TCP retransmits the losses, and the link works as before.
        assert!(result.flows[0].finished == Some(true));
    }
}

/// A phone with a transfer in progress moves from one base station's circuit to another's, with a gap of 0.3 s.
fn handed_over(how: &str) -> RunResult {
    let link = |name: &str| {
        format!(
            "[links.{name}]\nends = [\"base\", \"phone\"]\nrate = \"12 kbit/s\"\ndelay = \"110 ms\"\n\
             queue = \"20 packets\"\nerrors = {{ kind = \"blocks\", model = \"onoff-c\" }}\n\
             gsm = {{ frame = {{ blocks = 2 }}, persistence = {{ polls = 128 }} }}\n"
        )
    };
    let text = format!(
        "schema = 1\nname = \"phone\"\nduration = \"6000 s\"\nuntil = \"file\"\n[nodes]\nbase = {{}}\nphone = {{}}\n\
         {}{}\
         [[handoffs]]\nat = \"30 s\"\nnode = \"phone\"\nfrom = \"old\"\nto = \"new\"\ngap = \"0.3 s\"\n{how}\n\
         [[flows]]\nname = \"file\"\nends = [\"base\", \"phone\"]\n\
         app = {{ kind = \"bulk\", size = \"100 kB\", packet = \"576 B\" }}\n\
         transport = {{ kind = \"tcp\", profile = \"ns2-1999\", window = 8 }}\n",
        link("old"),
        link("new")
    );
    run(&Scenario::from_toml(&text, "phone.toml").unwrap(), 1, 0).unwrap()
}

/// Ludwig et al. 1999, section 5: nothing is lost if the circuit is carried over, and something is if it is not.
#[test]
fn a_handover_loses_nothing_where_the_circuit_is_carried_over() {
    let spoiled = |result: &RunResult| {
        let links = result.links.iter();
        let ways = links.flat_map(|link| [&link.down, &link.up]);
        ways.map(|way| way.circuit.unwrap().spoiled.frames)
            .sum::<u64>()
    };
    let carried = handed_over("carries = true");
    assert_eq!(carried.flows[0].finished, Some(true));
    assert_eq!(spoiled(&carried), 0);
    assert_eq!(carried.flows[0].retransmissions, Some(0));
    let new = carried
        .links
        .iter()
        .find(|link| link.name == "new")
        .unwrap();
    assert!(
        new.down.circuit.unwrap().frames > 0,
        "its counts move along"
    );
    let left = handed_over("");
    assert_eq!(left.flows[0].finished, Some(true));
    assert!(spoiled(&left) > 0);
    assert!(left.flows[0].retransmissions > Some(0));
}

#[test]
fn an_impossible_circuit_is_refused() {
    for (gsm, says) in [
        ("frame = { blocks = 129 }", "1 to 128"),
        ("window = 62", "1 to 61"),
        ("t1 = \"1 ms\"", "10 ms"),
        ("persistence = { time = \"0 s\" }", "10 ms"),
    ] {
        let error = file("", gsm).unwrap_err();
        assert!(
            error.contains(says) && error.contains("links.gsm.gsm"),
            "{error}"
        );
    }
    let error = file(
        "frame = \"100 B\"\nservices = [{ number = 0, name = \"all\", rate = 1, scheme = { kind = \"sr\" } }]",
        "",
    );
    assert!(error.unwrap_err().contains("no services"));
}

/// Speech and a file on a radio with erasures.
fn speech(gsm: &str) -> RunResult {
    let radio = "errors = { kind = \"blocks\", model = \"onoff-c\" }";
    let mut scenario = file(radio, gsm).unwrap().to_toml();
    scenario += "\n[[flows]]\nname = \"speech\"\nends = [\"base\", \"phone\"]\ntransport = { kind = \"udp\" }\n\
         app = { kind = \"conferencing\", packet = \"40 B\", rate = \"3.2 kbit/s\", talk = \"1 s\", silence = \"1.35 s\" }\n";
    let scenario = Scenario::from_toml(&scenario, "speech.toml").unwrap();
    run(&scenario, 1, 0).unwrap()
}

/// A packet sent without repair waits for the frame before it, but for no repair, and its loss is counted.
#[test]
fn speech_that_bypasses_the_repair_does_not_wait_for_it() {
    let repaired = "persistence = { polls = 128 }";
    let [repaired, once] =
        ["", ", bypass = true"].map(|bypass| speech(&format!("{repaired}{bypass}")));
    let late = |result: &RunResult| result.flows[1].delay_p99_s.unwrap();
    assert!(
        late(&once) * 4.0 < late(&repaired),
        "{} {}",
        late(&once),
        late(&repaired)
    );
    for result in [&repaired, &once] {
        assert_eq!(result.flows[0].finished, Some(true));
    }
    let speech = &once.flows[1];
    let circuit = once.links[0].down.circuit.unwrap();
    let lost = speech.packets_sent - speech.packets_received;
    // A packet that shares octets with a lost one before it is only known to be lost when the next one arrives.
    assert!(
        lost > 0 && lost.abs_diff(circuit.missed.frames) <= 1,
        "{lost} {circuit:?}"
    );
    assert_eq!(repaired.links[0].down.circuit.unwrap().missed.frames, 0);
}
