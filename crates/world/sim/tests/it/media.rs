//! Transmitters that several links share.

use airlane_sim::{RunResult, Scenario, run};

/// Files from one base station to each of its mobiles over one radio channel.
fn cell(mobiles: &[&str], services: &str, bytes: u64) -> Scenario {
    let until = mobiles[0];
    let mut text = format!(
        "schema = 1\nname = \"cell\"\nduration = \"600 s\"\nuntil = \"{until}\"\n\
         [media.radio]\nkind = \"half-duplex\"\noverhead = \"700 us\"\n[nodes.base]\n"
    );
    for mobile in mobiles {
        text += &format!(
            "[nodes.{mobile}]\n[links.to-{mobile}]\nends = [\"base\", \"{mobile}\"]\n\
             medium = \"radio\"\nrate = \"2 Mbit/s\"\ndelay = \"1 ms\"\nframe = \"1000 B\"\n{services}\n\
             [[flows]]\nname = \"{mobile}\"\nends = [\"base\", \"{mobile}\"]\n\
             transport = {{ kind = \"tcp\", profile = \"ns2-1999\", window = 20 }}\n\
             app = {{ kind = \"bulk\", size = \"{bytes} B\" }}\n"
        );
    }
    Scenario::from_toml(&text, "cell").unwrap()
}

fn throughputs(result: &RunResult) -> Vec<f64> {
    let flows = result.flows.iter();
    flows.map(|flow| flow.throughput_bps.unwrap()).collect()
}

/// One frame at a time: every segment takes its own time and that of its acknowledgment.
#[test]
fn a_segment_and_its_acknowledgment_take_turns() {
    let result = run(&cell(&["a"], "", 4_000_000), 1, 0).unwrap();
    let down = result.links[0].down.channel.delivered;
    let up = result.links[0].up.channel.delivered;
    let air_s = |frames: u64, bytes: u64| frames as f64 * 700e-6 + bytes as f64 * 8.0 / 2e6;
    let busy_s = air_s(down.frames, down.bytes) + air_s(up.frames, up.bytes);
    let share = busy_s / result.stopped_s;
    assert!(
        (0.99..=1.0).contains(&share),
        "the air is in use for {share}"
    );
    assert_eq!(down.frames, 4000);
    assert_eq!(up.frames, 4000);
}

/// Each station with something to send gets its turn, however much the others have.
#[test]
fn stations_share_the_air_by_turns() {
    for services in [
        "",
        "header = \"study\"\nservices = [{ number = 0, name = \"all\", rate = 1, scheme = { kind = \"sr-m2\" } }]",
    ] {
        let alone = throughputs(&run(&cell(&["a"], services, 2_000_000), 1, 0).unwrap())[0];
        let all = throughputs(&run(&cell(&["a", "b", "c"], services, 2_000_000), 1, 0).unwrap());
        for rate in &all {
            assert!((0.3..0.36).contains(&(rate / alone)), "{all:?} of {alone}");
        }
    }
}

#[test]
fn faults_of_a_medium_are_named() {
    let wrong = |from: &str, to: &str| {
        let text = cell(&["a"], "", 1000).to_toml().replace(from, to);
        Scenario::from_toml(&text, "cell").unwrap_err().to_string()
    };
    let unknown = wrong("medium = \"radio\"", "medium = \"wire\"");
    assert!(unknown.contains("there is no medium \"wire\""), "{unknown}");
    assert!(unknown.contains("one of: radio"), "{unknown}");
    let kind = wrong("half-duplex", "no-duplex");
    assert!(kind.contains("half-duplex"), "{kind}");
}

/// With a transmitter for each direction, segments and acknowledgments do not wait for each other.
#[test]
fn on_a_full_duplex_medium_only_the_own_frames_take_time() {
    let text = cell(&["a"], "", 4_000_000).to_toml();
    let full = ["media.radio.kind=full-duplex"];
    let result = run(
        &Scenario::from_toml_with(&text, "cell", &full).unwrap(),
        1,
        0,
    )
    .unwrap();
    let down = result.links[0].down.channel.delivered;
    let busy_s = down.frames as f64 * 700e-6 + down.bytes as f64 * 8.0 / 2e6;
    let share = busy_s / result.stopped_s;
    assert!(
        (0.99..=1.0).contains(&share),
        "the way down is in use for {share}"
    );
}

/// A blackout, as during a handoff, loses frames to one station. The others use the channel, and that station
/// continues after it.
#[test]
fn a_blackout_on_shared_air_affects_one_station() {
    let text = cell(&["a", "b"], "", 2_000_000).to_toml();
    let blackout = "links.to-a.outages=[{ from = \"2 s\", to = \"5 s\" }]";
    let [clear, dark] = [&[][..], &[blackout]].map(|changes| {
        let scenario = Scenario::from_toml_with(&text, "cell", changes).unwrap();
        run(&scenario, 1, 0).unwrap()
    });
    assert!(clear.finished && dark.finished);
    let lost = |result: &RunResult| result.links[0].down.channel.lost_air.frames;
    assert_eq!(lost(&clear), 0);
    // One window, and the retransmissions of the timer during the blackout.
    assert!((1..40).contains(&lost(&dark)), "{}", lost(&dark));
    let other = |result: &RunResult| result.flows[1].delivered_bytes;
    assert_eq!(dark.flows[0].delivered_bytes, 2_000_000);
    assert!(dark.flows[1].throughput_bps > clear.flows[1].throughput_bps);
    assert_eq!(dark.links[1].down.channel.lost_air.frames, 0);
    assert_eq!(other(&dark), 2_000_000);
}
