//! The works in `studies/`: complete, consistent, and every scenario in them can run.

use std::collections::BTreeSet;
use std::path::Path;

use airlane_study::{Plan, RunRequest, Work};

fn works() -> Vec<Work> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../studies");
    Work::load_all(&folder).expect("the works that are shipped can be read")
}

#[test]
fn every_claim_is_judged() {
    // Committed verdicts are looked up by the claim's id alone, whatever work it belongs to.
    let mut seen = BTreeSet::new();
    for work in works() {
        // A work that continues another one may have no claims; a publication has some.
        let published = work.parts_of.is_none();
        assert!(!published || !work.ids.is_empty(), "{}: no ids", work.id);
        let distinct: BTreeSet<&String> = work.ids.iter().collect();
        assert_eq!(
            distinct.len(),
            work.ids.len(),
            "{}: an id stands twice",
            work.id
        );
        assert_eq!(work.missing_ids(), Vec::<&str>::new(), "{}", work.id);
        for claim in work.studies.into_iter().flat_map(|study| study.claims) {
            assert!(seen.insert(claim.id.clone()), "{} is there twice", claim.id);
        }
    }
}

#[test]
fn every_scenario_and_claim_can_be_planned_under_every_alternative() {
    let mut shares = false;
    for work in works() {
        let request = RunRequest {
            runs: Some(1),
            alternatives: work.alternatives.keys().cloned().collect(),
            committed: true,
            ..RunRequest::default()
        };
        let plan = Plan::new(work, &[], &request).unwrap_or_else(|e| panic!("{e}"));
        plan.check().unwrap_or_else(|e| panic!("{e}"));
        let worlds: BTreeSet<&str> = plan.worlds.iter().map(|world| world.hash()).collect();
        assert_eq!(
            worlds.len(),
            plan.worlds.len(),
            "no world is simulated twice"
        );
        let shown: Vec<usize> = plan.variants[0]
            .studies
            .iter()
            .flat_map(|s| s.worlds.iter().copied())
            .collect();
        let distinct: BTreeSet<usize> = shown.iter().copied().collect();
        shares |= distinct.len() < shown.len();
    }
    assert!(
        shares,
        "some works show throughput of a world in one figure and goodput in another"
    );
}

/// Section 13 of docs/spec/tcp-over-wireless.md declares a run invalid if a queue drops anything:
/// errors are to be the only losses.
#[test]
fn no_queue_drops_anything_of_balakrishnans_tables() {
    let mut works = works().into_iter();
    let work = works.find(|work| work.id == "balakrishnan-1997");
    let request = RunRequest {
        runs: Some(1),
        committed: true,
        ..RunRequest::default()
    };
    let tables = ["peak", "T2", "T3", "T4"].map(str::to_owned);
    let work = work.expect("it is shipped");
    let plan = Plan::new(work, &tables, &request).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(plan.worlds.len(), 39);
    for world in &plan.worlds {
        for link in world.run(plan.seed, 0).links {
            for way in [&link.down, &link.up] {
                let waiting = way.services.iter().map(|s| s.sender.packets_dropped());
                let dropped = [way.channel.dropped_queue.frames, waiting.sum()];
                assert_eq!(dropped, [0; 2], "{} of {}", link.name, world.hash());
            }
        }
    }
}
