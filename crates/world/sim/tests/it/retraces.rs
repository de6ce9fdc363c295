//! Retrace analyses.

use airlane_sim::{Scenario, run};

fn scenario(of: &str) -> Result<Scenario, String> {
    let text = format!(
        "schema = 1\nname = \"car\"\nduration = \"6000 s\"\n[nodes]\n[links]\n[retraces.radio]\nmodel = \"onoff-c\"\n{of}"
    );
    Scenario::from_toml(&text, "car.toml").map_err(|error| error.to_string())
}

#[test]
fn units_of_one_run_meet_the_same_blocks() {
    let of = |unit: &str| {
        let scenario = scenario(&format!("unit = {unit}\n")).unwrap();
        run(&scenario, 3, 1).unwrap().retraces.swap_remove(0)
    };
    let all = [
        "'best'",
        "'adaptive'",
        "'oracle'",
        "{ frame = 1 }",
        "{ packet = '576 B' }",
        "{ stream = '576 B' }",
    ];
    let all = all.map(of);
    let erased = all[0].erased_ratio;
    assert!((0.01..0.1).contains(&erased), "{erased}");
    for one in &all {
        assert_eq!(one.erased_ratio, erased);
        assert_eq!(one.best_frame, all[0].best_frame);
        assert!((500.0..1450.0).contains(&one.goodput.unwrap()), "{one:?}");
    }
    assert_eq!(
        all[3].lost_ratio,
        Some(erased),
        "a frame of one block is lost as its block is"
    );
    assert!(all[2].goodput > all[3].goodput);
    // Repetitions get different blocks, and the same ones when they are repeated.
    let scenario = scenario("").unwrap();
    let [one, again, other] = [0, 0, 1].map(|repetition| run(&scenario, 3, repetition).unwrap());
    assert_eq!(one.retraces, again.retraces);
    assert_ne!(one.retraces, other.retraces);
}

#[test]
fn analyses_have_hashes_and_refusals_of_their_own() {
    let hash = |of: &str| scenario(of).unwrap().hash();
    assert_ne!(hash(""), hash("arrange = \"even\"\n"));
    for (of, needle) in [
        ("unit = { frame = 0 }\n", "frames of 1 to 10000 blocks"),
        ("unit = { packet = '40 B' }\n", "packets of 48 to 65535 B"),
        ("factor = 1.5\n", "above 0 and at most 1"),
        (
            "in-turn = { model = 'bernoulli 0.1', every = '1 ms' }\n",
            "at least one block",
        ),
    ] {
        let error = scenario(of).unwrap_err();
        assert!(error.contains(needle), "{error}");
    }
}
