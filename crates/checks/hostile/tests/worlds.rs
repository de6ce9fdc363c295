//! Some worlds of every kind, as many as take a moment; `make hostile` runs more.

use airlane_hostile::run;

/// Worlds that once broke a law.
const FOUND: [u64; 27] = [
    31, 105, 237, 264, 339, 392, 475, 786, 818, 995, 1081, 1300, 1403, 1822, 2568, 2772, 4779,
    5335, 6692, 42472, 45046, 45075, 45302, 47426, 48105, 48284, 60168,
];
const WORLDS: u64 = 200;

#[test]
fn every_law_holds_in_every_world() {
    let broken: Vec<String> = (0..WORLDS)
        .chain(FOUND)
        .filter_map(|seed| run(seed, None).err())
        .map(|broken| broken.to_string())
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn a_seed_is_a_world() {
    for seed in 0..8 {
        assert_eq!(run(seed, None), run(seed, None));
    }
}
