//! What nodes log about faults, end to end.

use airlane_testkit::Log;

use super::*;
use crate::fault::Ns;

/// The log of both ends in a world with a found rate, a bulk flow and a thin one, and the fault of `draws` after a
/// while.
fn said_in(seed: u64, draws: impl FnOnce(&mut Draw) -> Fault) -> String {
    let mut draw = Draw::new(seed, "log");
    let rate = *draw.of(&[1_000_000, 4_000_000]);
    let room = rate / 8 * draw.within(50, 200) / 1_000;
    let pipe = Pipe::new(rate, draw.ms(2, 60), room.max(20_000), 0.0);
    let keys = [0; 2].map(|_| PrivateKey::generate(draw.key()));
    let ends = End::all(keys.into(), "auto", "", &mut draw).unwrap();
    let load = *draw.of(&[0.3, 0.8, 1.3]);
    let every = (1_200.0 * 8e9 / (rate as f64 * load)) as u64;
    let (port, lengths) = (
        *draw.of(&[443, 60_001]),
        *draw.of(&[(60, 1_200), (1_200, 1_200)]),
    );
    let flows = vec![
        Flow::new(0, (0, 1), port, every, lengths),
        Flow::new(1, (1, 0), 5_004, draw.ms(20, 100), (60, 200)),
    ];
    let faults = vec![(15 * SECOND, draws(&mut draw))];
    let usual = vec![pipe.clone(), pipe];
    // In worlds with an odd seed, no router reports anything.
    let world = World::start(2 * seed + 1, draw, ends, (usual, flows), faults);
    log_of(world.unwrap())
}

fn log_of(mut world: World) -> String {
    let log = Log::default();
    let writer = log.clone();
    let said = tracing_subscriber::fmt().with_ansi(false);
    let said = said.with_writer(move || writer.clone()).finish();
    let ran = tracing::subscriber::with_default(said, || world.run(None));
    let said = log.text();
    assert_eq!(
        ran,
        Ok(()),
        "{}: {:?}\n{said}",
        world.seed,
        world.done.faults
    );
    said
}

/// A base cannot call its stations, and logs once that they have not called.
#[test]
fn a_base_does_not_warn_of_stations_that_have_not_called() {
    let mut draw = Draw::new(1, "log");
    let pipe = Pipe::new(4_000_000, 20 * MS, 50_000, 0.0);
    let keys = [0; 3].map(|_| PrivateKey::generate(draw.key()));
    let ends = End::all(keys.into(), "auto", "", &mut draw).unwrap();
    let lasts = Ns(150 * SECOND);
    let faults = vec![(0, Fault::CutAll { lasts })];
    let world = World::start(1, draw, ends, (vec![pipe; 4], Vec::new()), faults);
    let said = log_of(world.unwrap());
    let of_the_base = |line: &&str| line.contains("wherever it calls from");
    let (warned, mentioned): (Vec<_>, Vec<_>) = said
        .lines()
        .filter(of_the_base)
        .partition(|line| line.contains("WARN"));
    assert_eq!(warned, [""; 0]);
    let once = mentioned.iter().filter(|line| line.contains("not called"));
    assert_eq!(once.count(), 2, "{said}");
    assert!(said.contains("peer is up"), "{said}");
}

/// A path that drops long datagrams is not a policer.
#[test]
fn the_log_does_not_take_a_black_hole_for_a_policer() {
    for seed in 0..12 {
        let said = said_in(seed, |draw| Fault::Narrow {
            pipe: 0,
            // Smaller than the frames of the bulk flow.
            mtu: draw.within(600, 1_250) as usize,
            lasts: Ns(40 * SECOND),
        });
        let mut narrower = said
            .lines()
            .filter(|line| line.contains("path MTU changed"));
        let first = narrower.next().unwrap_or_default();
        assert!(
            first.contains("WARN") && first.contains("a black hole"),
            "{seed}: {said}"
        );
        assert!(!said.contains("policed"), "{seed}: {said}");
    }
}

/// Messages in flight when an end is restarted are no reason for a warning.
#[test]
fn a_restart_causes_no_warning_about_drops() {
    for seed in 0..12 {
        let said = said_in(seed, |draw| Fault::Restart {
            end: draw.within(0, 2) as usize,
            lasts: Ns(draw.ms(0, 1_500)),
        });
        assert!(said.contains("the peer was restarted"), "{seed}: {said}");
        let mut lines = said.lines();
        let warned = lines.find(|line| line.contains("WARN") && line.contains("dropped"));
        assert_eq!(warned, None, "{seed}: {said}");
    }
}
