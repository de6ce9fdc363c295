//! The fuzz targets' functions on the committed corpora, on entries with bytes removed, changed or repeated, and on
//! random bytes. Finding new inputs is left to the fuzzer (`fuzz/`).

use std::path::{Path, PathBuf};

use crate::strangers::laws;
use crate::strategies::cases;
use airlane_base::{Rng, Streams};
use proptest::prelude::*;

#[path = "../../../../../fuzz/bodies.rs"]
mod bodies;

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus");
    let directory = root.join(target);
    let entries = std::fs::read_dir(&directory).expect("the corpus is part of the repository");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("a readable directory").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", directory.display());
    files
        .into_iter()
        .map(|path| {
            let bytes = std::fs::read(&path).expect("a readable file");
            (path, bytes)
        })
        .collect()
}

/// A mutation like those of a fuzzer.
fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let mut below = |n: usize| (rng.next_u64() % n.max(1) as u64) as usize;
    let at = below(bytes.len());
    match below(5) {
        0 => bytes.truncate(at),
        1 if !bytes.is_empty() => bytes[at] ^= 1 << below(8),
        2 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][below(5)],
        3 => bytes.insert(at, below(256) as u8),
        _ => {
            let end = at + below(bytes.len() - at);
            let copy = bytes[at..end].to_vec();
            bytes.splice(at..at, copy);
        }
    }
    bytes.truncate(4_096);
}

fn replay(target: &str, body: fn(&[u8]), changes: u32) {
    let mut rng = Streams::new(1, 0).stream(target);
    for (path, bytes) in corpus(target) {
        let run = |bytes: &[u8]| {
            let outcome = std::panic::catch_unwind(|| body(bytes));
            assert!(outcome.is_ok(), "{}: fails on {bytes:?}", path.display());
        };
        run(&bytes);
        for _ in 0..changes {
            let mut changed = bytes.clone();
            for _ in 0..1 + rng.next_u64() % 4 {
                mutate(&mut changed, &mut rng);
            }
            run(&changed);
        }
    }
}

#[test]
fn frames() {
    replay("frame", bodies::frame, 300);
}

#[test]
fn operations() {
    replay("operations", bodies::operations, 10);
}

#[test]
fn secure_sessions() {
    replay("secure", bodies::secure, 40);
}

#[test]
fn radio_link_protocol() {
    replay("gsm", bodies::gsm, 300);
}

#[test]
fn clap_packets() {
    replay("clap", bodies::clap, 300);
}

#[test]
fn ships() {
    replay("ship", bodies::ship, 100);
}

#[test]
fn configs() {
    replay("config", bodies::config, 20);
}

#[test]
fn imports() {
    replay("import", bodies::import, 200);
}

#[test]
fn traces() {
    replay("trace", bodies::trace, 300);
}

#[test]
fn control_requests() {
    replay("control", bodies::control, 50);
}

#[test]
fn journals() {
    replay("journal", bodies::journal, 20);
}

#[test]
fn scoreboards_of_tcp() {
    replay("tcp", bodies::tcp, 300);
}

#[test]
fn ip_packets() {
    replay("ip", bodies::ip, 300);
}

#[test]
fn lists_of_files() {
    replay("files", laws::files, 20);
}

#[test]
fn requests_for_metrics() {
    replay("metrics", laws::metrics, 300);
}

#[test]
fn probe_messages() {
    replay("probe", laws::probe, 300);
}

#[test]
fn status_probes() {
    replay("plane", laws::plane, 10);
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        bodies::frame(&bytes);
        bodies::config(&bytes);
        bodies::import(&bytes);
        bodies::ip(&bytes);
        bodies::trace(&bytes);
        bodies::control(&bytes);
        bodies::journal(&bytes);
        bodies::operations(&bytes);
        bodies::secure(&bytes);
        bodies::tcp(&bytes);
    }

    /// Headers of every kind are decoded as they were encoded, with any payload after them.
    #[test]
    fn frames_round_trip(
        which in 0usize..6,
        kind in prop::sample::select(vec![0u8, 1, 2, 3, 4, 7]),
        fields in any::<[u8; 16]>(),
        payload in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        // As long as the service's live header; sealed ones are shorter.
        let (service, header) = [(0, 9), (1, 17), (2, 9), (3, 9), (7, 11), (8, 12)][which];
        let mut bytes = vec![service << 4 | kind];
        bytes.extend_from_slice(&fields[..header - 1]);
        bytes.extend_from_slice(&payload);
        bodies::frame(&bytes);
    }
}
