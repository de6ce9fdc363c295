//! What must hold whatever strangers and peers say to what touches files and sockets: lists of files, requests for metrics,
//! a test's control connection and datagrams, and the status plane between three peers. By the fuzzer and by property
//! tests.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::{Mutex, PoisonError};

use airlane_live::metrics::exporter::{REQUEST, answer_with};
use airlane_live::ship::Store;
use airlane_probe::strangers;
use airlane_session::{Offer, StatusProbe};
use airlane_ship::{Entry, Kind, Manifest, Ranges};

#[allow(
    dead_code,
    unreachable_pub,
    reason = "tests of a live node use more of it"
)]
#[path = "../crates/host/live/tests/it/common/cell.rs"]
mod cell;

use cell::{Cell, Told};

/// Names in lists that are, or look like, something else: links and files of the folder, what is above it, and the store's
/// own.
pub(crate) const NAMES: [&str; 16] = [
    "..",
    ".",
    "",
    "link",
    "mine",
    "/",
    "a\0",
    "a\\",
    ".airlane-parts",
    "list.json",
    "missing.json",
    "new",
    "umask",
    "a",
    "b",
    "c",
];

/// A list of files and folders, of few names.
pub(crate) fn files(data: &[u8]) {
    let Some((&[how, interrupted], mut rest)) = data.split_first_chunk() else {
        return;
    };
    let mut entries = Vec::new();
    while let Some((&[names, bytes, mode, time], more)) = rest.split_first_chunk()
        && entries.len() < 8
    {
        let (path, after) = more.split_at(more.len().min(usize::from(names >> 6)));
        rest = after;
        let path = path.iter().map(|at| NAMES[usize::from(at % 16)]);
        let is_folder = names & 1 == 1;
        entries.push(Entry {
            path: path.collect::<Vec<_>>().join("/"),
            kind: if is_folder { Kind::Folder } else { Kind::File },
            bytes: match bytes {
                _ if is_folder => 0,
                255 => u64::MAX,
                bytes => u64::from(bytes % 40),
            },
            mode: u32::from_be_bytes([mode, names, bytes, mode]),
            modified_ns: u64::from_be_bytes([time; 8]),
        });
    }
    list(entries, how & 1 == 1, interrupted.into());
}

/// What nobody would invent.
fn byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// Whatever a list says: nothing outside of the folder is touched, what is there is replaced only if that is wanted, a later
/// try knows what is missing, and files that got their names are whole.
pub(crate) fn list(entries: Vec<Entry>, overwrite: bool, interrupted: u64) {
    let [folder, outside] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let at = |name: &str| folder.path().join(name);
    fs::write(outside.path().join("a"), "outside").expect("a file");
    symlink(outside.path(), at("link")).expect("a link");
    fs::write(at("mine"), "mine").expect("a file");
    let Ok(manifest) = Manifest::new(entries) else {
        return;
    };
    let replaces = |name: &str| overwrite && manifest.files().any(|(_, entry)| entry.path == name);
    let fill = |store: &mut Store, missing: &Ranges, until: u64| {
        let mut left = Ranges::none();
        for (from, len) in missing.iter() {
            let now = len.min(until.saturating_sub(from));
            let bytes: Vec<u8> = (from..from + now).map(byte).collect();
            store.keep(from, &bytes).expect("there is room");
            left.push(from + now, len - now);
        }
        left
    };
    let mut ended = false;
    if let Ok((mut store, missing)) = Store::open(folder.path(), &manifest, overwrite) {
        assert!(missing.check(manifest.total()).is_ok());
        let left = fill(&mut store, &missing, interrupted);
        store.save(&left).expect("there is room");
        drop(store);
        let (mut store, again) =
            Store::open(folder.path(), &manifest, overwrite).expect("as before");
        assert_eq!(again, left);
        fill(&mut store, &again, u64::MAX);
        ended = store.finish().is_ok();
    }
    let stays = fs::read(outside.path().join("a")).expect("it stays");
    assert_eq!(stays, b"outside");
    assert_eq!(fs::read_dir(outside.path()).expect("it stays").count(), 1);
    assert!(at("link").is_symlink() || replaces("link"));
    if !replaces("mine") {
        assert_eq!(fs::read(at("mine")).expect("it stays"), b"mine");
    }
    if ended {
        let starts = manifest.starts();
        for (place, entry) in manifest.files() {
            let path = at(&entry.path);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is there");
            let expected: Vec<u8> = (starts[place]..starts[place] + entry.bytes)
                .map(byte)
                .collect();
            assert_eq!(
                fs::read(&path).expect("it is there"),
                expected,
                "{}",
                entry.path
            );
        }
        assert!(!at(".airlane-parts").exists());
    }
}

/// A request for metrics, and how much of it comes first.
pub(crate) fn metrics(data: &[u8]) {
    if let Some((&cut, request)) = data.split_first() {
        request_of(request, cut.into());
    }
}

/// However a request comes, it is answered once and whole, or not yet.
pub(crate) fn request_of(request: &[u8], cut: usize) {
    const TEXT: &str = "# EOF\n";
    let first = answer_with(TEXT, &request[..cut.min(request.len())]);
    let whole = answer_with(TEXT, request);
    assert!(whole.is_some() || request.len() <= REQUEST);
    if let (Some(first), Some(whole)) = (&first, &whole) {
        assert_eq!(first, whole, "an early answer is the same");
    }
    let Some(whole) = whole else {
        return;
    };
    let text = String::from_utf8(whole).expect("an answer is text");
    let (head, body) = text.split_once("\r\n\r\n").expect("it has a head");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    let length: usize = length
        .and_then(|length| length.parse().ok())
        .expect("it is said");
    assert!(body.len() == length || body.is_empty() && request.starts_with(b"HEAD"));
}

/// A test's control connection, and its datagrams.
pub(crate) fn probe(data: &[u8]) {
    strangers::lines(data);
    strangers::datagram(data);
    if let Some((packet, rest)) = data.split_first_chunk() {
        strangers::echo(packet, rest.len() % 2 == 0, rest.len() as u64);
    }
    // What has the token.
    let mut known = data.to_vec();
    for at in [4, 8, 16] {
        if let Some(token) = known.get_mut(at..at + strangers::TOKEN.len()) {
            token.copy_from_slice(&strangers::TOKEN);
            strangers::datagram(&known);
            known.copy_from_slice(data);
        }
    }
}

/// The base and its stations, for all that they say.
static CELL: Mutex<Option<Cell>> = Mutex::new(None);

/// Probes that three stations tell, and what they are changed to.
pub(crate) fn plane(data: &[u8]) {
    let (mut all, mut changes) = (Vec::new(), Vec::new());
    for bytes in data.as_chunks::<20>().0.iter().take(12) {
        let [speaker, from, to, how, hops, protocol, place, change, ..] = *bytes;
        let two = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        // The base, its stations, and nobody.
        let ends = [from, to].map(|end| 1 + end % 5);
        let own = Offer {
            out_packets: two(8).into(),
            out_bytes: two(10).into(),
            underflows: two(12).into(),
            room_bytes: two(14).into(),
        };
        let addresses = [0, 1].map(|end| ([10, 7, 0, ends[end]], two(16 + 2 * end)).into());
        let probe = StatusProbe::new(two(8), protocol, addresses, 0, own);
        all.push(Told {
            speaker: usize::from(speaker % 3),
            ends,
            probe: StatusProbe {
                back: how & 1 == 1,
                complete: how & 2 == 2,
                hops: hops % 20,
                ..probe
            },
        });
        changes.push((place.into(), change));
    }
    let mut cell = CELL.lock().unwrap_or_else(PoisonError::into_inner);
    cell.get_or_insert_default().tell_all(&all, &changes);
}
