//! Ports whose path is dead: the end that calls finds another one, whichever direction is dropped.

use super::*;

/// A world in which the port of the second end is swallowed; `every` is the interval of packets each way, ns.
fn world(seed: u64, is_inward: bool, every: u64) -> World {
    let mut draw = Draw::new(seed, "swallowed");
    let pipe = Pipe::new(4_000_000, draw.ms(2, 60), 100_000, 0.0);
    let keys = [0; 2].map(|_| PrivateKey::generate(draw.key()));
    let ends = End::all(keys.into(), "auto", "", &mut draw).unwrap();
    let flows = vec![
        Flow::new(0, (0, 1), 443, every, (60, 1_200)),
        Flow::new(1, (1, 0), 5_004, every, (60, 200)),
    ];
    let fault = Fault::Swallow {
        end: 1,
        is_inward,
        lasts: Fault::LEFT,
    };
    let faults = vec![(draw.ms(3_000, 20_000), fault)];
    World::start(seed, draw, ends, (vec![pipe.clone(), pipe], flows), faults).unwrap()
}

/// All flows move again, busy or thin: `run` says which does not.
#[test]
fn a_port_that_is_dead_in_either_direction_is_left() {
    for seed in 0..4 {
        for is_inward in [false, true] {
            for every in [20 * MS, 900 * MS] {
                let ran = world(seed, is_inward, every).run(None);
                assert_eq!(ran, Ok(()), "{seed}, inward {is_inward}, every {every} ns");
            }
        }
    }
}
