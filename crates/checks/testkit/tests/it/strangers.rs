//! Randomly drawn input from unknown senders for code that touches files and sockets.

use airlane_live::metrics::exporter::REQUEST;
use airlane_ship::{Entry, Kind};
use proptest::prelude::*;

#[path = "../../../../../fuzz/strangers.rs"]
pub(crate) mod laws;

/// The number of cases, which `make fuzz` raises: each is a folder on the disk.
fn cases(few: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig::with_cases(asked.and_then(|n| n.parse().ok()).unwrap_or(few))
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[abc]",
        1 => prop::sample::select(laws::NAMES.to_vec()).prop_map(str::to_owned),
    ]
}

fn lists() -> impl Strategy<Value = Vec<Entry>> {
    let entry = (
        prop::collection::vec(names(), 1..4),
        any::<bool>(),
        prop_oneof![0_u64..40, Just(u64::MAX)],
        any::<u32>(),
        prop_oneof![Just(1_000_000_007), any::<u64>()],
    );
    let entry = entry.prop_map(|(names, is_folder, bytes, mode, modified_ns)| Entry {
        path: names.join("/"),
        kind: if is_folder { Kind::Folder } else { Kind::File },
        bytes: if is_folder { 0 } else { bytes },
        mode,
        modified_ns,
    });
    prop::collection::vec(entry, 0..6)
}

fn requests() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "GET ", "HEAD ", "POST ", "/metrics", "/metrics?x", "/", " HTTP/1.1\r\n", " HTTP/1.0\r\n", "Host: localhost\r\n",
            "Host: evil.example\r\n", "hOsT: 127.0.0.1:9107\r\n", "Host: [::1]:1\r\n", "Accept: */*\r\n", "\r\n", "\n", ":",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..20),
        1 => (0..REQUEST + 1_000).prop_map(|n| vec![b'x'; n]),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn any_list_is_refused_or_stored_inside_the_folder(
        entries in lists(),
        overwrite: bool,
        interrupted in 0_u64..100,
    ) {
        laws::list(entries, overwrite, interrupted);
    }
}

proptest! {
    #[test]
    fn any_request_is_refused_or_answered_completely(request in requests(), cut in 0_usize..200) {
        laws::request_of(&request, cut);
    }

    #[test]
    fn any_bytes_sent_to_a_test_are_handled(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        laws::probe(&bytes);
    }
}
