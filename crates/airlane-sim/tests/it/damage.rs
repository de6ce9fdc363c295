//! Links that hand damaged frames up: who cannot use them drops them, and nothing else changes.

use crate::common::{Air, Link, SEED, file, talk};
use airlane_link::ServiceLedger;
use airlane_sim::{RunResult, Scenario, run};

const BITS: [&str; 3] = [
    "{ kind = \"uniform-ber\", ber = 1e-5 }",
    "{ kind = \"byte-exponential\", mean = \"32768 B\" }",
    "{ kind = \"two-state\", good = \"4 s\", bad = \"0.2 s\", ber_good = 1e-6, ber_bad = 0.01 }",
];

/// The same world, and another in which damaged frames arrive.
fn both(mut scenario: Scenario) -> [RunResult; 2] {
    let whole = run(&scenario, SEED, 0).unwrap();
    for link in scenario.links.values_mut().filter(|l| l.frame.is_some()) {
        link.deliver_corrupted = true;
    }
    [whole, run(&scenario, SEED, 0).unwrap()]
}

#[test]
fn services_that_cannot_use_damaged_frames_do_as_if_they_were_lost() {
    for errors in BITS {
        for scheme in [
            "{ kind = \"default\" }",
            "{ kind = \"sr-m2\" }",
            "{ kind = \"rlp\" }",
            "{ kind = \"xor\" }",
            "{ kind = \"rse-ad\" }",
        ] {
            let air = Air {
                errors: Some(errors),
                scheme: Some(scheme),
                ..Air::default()
            };
            for scenario in [
                file(Link::Wlan, "LAN1", air, "500 kB", 20),
                talk(Link::Wlan, "LAN1", air, 20),
            ] {
                let [lost, damaged] = both(scenario);
                assert_eq!(lost.flows, damaged.flows, "{errors} {scheme}");
                for (lost, damaged) in lost.links.iter().zip(&damaged.links) {
                    for (lost, damaged) in [(&lost.down, &damaged.down), (&lost.up, &damaged.up)] {
                        assert_eq!(lost.channel.lost_air, damaged.channel.damaged);
                        assert!(damaged.channel.lost_air.is_zero());
                        let count = |of: fn(&ServiceLedger) -> u64| -> u64 {
                            damaged.services.iter().map(|s| of(&s.receiver)).sum()
                        };
                        assert_eq!(count(|l| l.corrupted), damaged.channel.damaged.frames);
                        assert_eq!(count(|l| l.corrupted_bytes), damaged.channel.damaged.bytes);
                        for (lost, damaged) in lost.services.iter().zip(&damaged.services) {
                            let but_for_that = |ledger: ServiceLedger| ServiceLedger {
                                corrupted: 0,
                                corrupted_bytes: 0,
                                ..ledger
                            };
                            assert_eq!(lost.sender, but_for_that(damaged.sender));
                            assert_eq!(lost.receiver, but_for_that(damaged.receiver));
                        }
                    }
                }
                let hit = damaged.links.iter().map(|l| l.down.channel.damaged.frames);
                assert!(hit.sum::<u64>() > 0, "{errors}: nothing was hit");
            }
        }
    }
}

#[test]
fn errors_of_whole_frames_have_no_bytes_to_deliver() {
    let air = Air {
        errors: Some("{ kind = \"uniform\", rate = 0.1 }"),
        scheme: Some("{ kind = \"default\" }"),
        ..Air::default()
    };
    let mut scenario = talk(Link::Wlan, "LAN1", air, 1);
    scenario.links.get_mut("radio").unwrap().deliver_corrupted = true;
    let error = run(&scenario, SEED, 0).unwrap_err().to_string();
    assert!(error.contains("deliver-corrupted"), "{error}");
    assert!(error.contains("uniform-ber"), "{error}");
    let mut bare = talk(Link::Wlan, "LAN1", Air::default(), 1);
    bare.links.get_mut("radio").unwrap().deliver_corrupted = true;
    let error = run(&bare, SEED, 0).unwrap_err().to_string();
    assert!(error.contains("without services"), "{error}");
}
