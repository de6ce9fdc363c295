use std::cell::Cell;
use std::fs;

use proptest::prelude::*;

use super::*;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{SystemTime, UNIX_EPOCH};

fn manifest() -> Manifest {
    let entry = |path: &str, kind, bytes, mode| Entry {
        path: path.to_owned(),
        kind,
        bytes,
        mode,
        modified_ns: 1_000_000_007,
    };
    Manifest::new(vec![
        entry("d", Kind::Folder, 0, 0o750),
        entry("d/a", Kind::File, 4, 0o640),
        entry("d/none", Kind::File, 0, 0o600),
        entry("d/b", Kind::File, 6, 0o400),
    ])
    .unwrap()
}

#[test]
fn files_arrive_in_any_order_and_a_later_attempt_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let (mut store, missing) = Store::open(folder.path(), &manifest(), false).unwrap();
    assert_eq!(missing, Ranges::all(10));
    store.keep(7, b"rld").unwrap();
    let mut missing = Ranges::none();
    missing.push(0, 7);
    store.save(&missing).unwrap();
    drop(store);
    let (mut store, again) = Store::open(folder.path(), &manifest(), false).unwrap();
    assert_eq!(again, missing);
    store.keep(0, b"hel").unwrap();
    store.keep(3, b"lowo").unwrap();
    store.flush().unwrap();
    let mut all = [0; 10];
    store.read(0, &mut all).unwrap();
    assert_eq!(&all, b"helloworld");
    store.finish().unwrap();
    let at = |name: &str| folder.path().join(name);
    assert_eq!(fs::read(at("d/a")).unwrap(), b"hell");
    assert_eq!(fs::read(at("d/b")).unwrap(), b"oworld");
    assert_eq!(fs::read(at("d/none")).unwrap(), b"");
    let facts = at("d/b").metadata().unwrap();
    assert_eq!(facts.permissions().mode() & 0o777, 0o400);
    let since = facts
        .modified()
        .unwrap()
        .duration_since(UNIX_EPOCH)
        .unwrap();
    assert_eq!(since, Duration::from_nanos(1_000_000_007));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    // The same files are in place: nothing is missing, and nothing is replaced.
    let (mut store, missing) = Store::open(folder.path(), &manifest(), false).unwrap();
    assert!(missing.is_empty());
    let mut all = [0; 10];
    store.read(0, &mut all).unwrap();
    assert_eq!(&all, b"helloworld");
    store.finish().unwrap();
    drop(store);
    fs::write(at("d/a"), "mine").unwrap();
    let refused = refusal(folder.path(), false);
    assert!(refused.contains("d/a is already there"), "{refused}");
    let (_, missing) = Store::open(folder.path(), &manifest(), true).unwrap();
    assert_eq!(missing.iter().collect::<Vec<_>>(), [(0, 4)]);
}

fn refusal(folder: &Path, overwrite: bool) -> String {
    let opened = Store::open(folder, &manifest(), overwrite);
    opened.err().unwrap().to_string()
}

fn fill(folder: &Path) -> Store {
    let (mut store, missing) = Store::open(folder, &manifest(), false).unwrap();
    for (from, len) in missing.iter() {
        let bytes = &b"helloworld"[from as usize..(from + len) as usize];
        store.keep(from, bytes).unwrap();
    }
    store.flush().unwrap();
    store
}

#[test]
fn a_file_created_meanwhile_is_kept_and_so_is_the_partial_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = fill(folder.path());
    fs::create_dir(folder.path().join("d")).unwrap();
    fs::write(folder.path().join("d/b"), "mine").unwrap();
    let refused = store.finish().unwrap_err().to_string();
    assert!(refused.contains("d/b is already there"), "{refused}");
    assert_eq!(fs::read(folder.path().join("d/b")).unwrap(), b"mine");
    drop(store);
    fs::remove_file(folder.path().join("d/b")).unwrap();
    let (mut store, missing) = Store::open(folder.path(), &manifest(), false).unwrap();
    assert!(
        missing.is_empty(),
        "what was whole travels again: {missing:?}"
    );
    store.finish().unwrap();
    assert_eq!(fs::read(folder.path().join("d/b")).unwrap(), b"oworld");
}

#[test]
fn an_attempt_killed_during_renames_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = fill(folder.path());
    store.save(&Ranges::none()).unwrap();
    let entry = store.manifest.entries()[1].clone();
    dress(
        &store.work.file(&part(&entry), false).unwrap(),
        &entry,
        0o777,
    )
    .unwrap();
    store
        .work
        .place(&part(&entry), &store.inbox, "d/a", false)
        .unwrap();
    drop(store);
    let (mut store, missing) = Store::open(folder.path(), &manifest(), false).unwrap();
    assert!(missing.is_empty(), "{missing:?}");
    store.finish().unwrap();
    assert_eq!(fs::read(folder.path().join("d/a")).unwrap(), b"hell");
    assert_eq!(fs::read(folder.path().join("d/b")).unwrap(), b"oworld");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Length of a file in place, or of its partial file; `None` if neither exists.
fn lengths(inbox: &Inbox, in_place: bool) -> Vec<Option<i64>> {
    let look = |entry: &Entry| {
        let path = match in_place {
            true => entry.path.clone(),
            false => format!("{WORK}/{}", part(entry)),
        };
        inbox.look(&path).unwrap().map(|facts| facts.st_size)
    };
    manifest().files().map(|(_, entry)| look(entry)).collect()
}

/// Syncs are counted by the files that they find: whole partial files, then the same in place.
#[test]
fn partial_files_are_synced_before_their_names_and_these_before_the_end() {
    thread_local! {
        static SYNCED: Cell<u32> = const { Cell::new(0) };
    }
    let folder = tempfile::tempdir().unwrap();
    let mut store = fill(folder.path());
    store.sync = |inbox| {
        let whole = vec![Some(4), Some(0), Some(6)];
        let nothing = vec![None; 3];
        let (parts, placed) = match SYNCED.get() {
            0 => (whole, nothing),
            _ => (nothing, whole),
        };
        assert_eq!(lengths(inbox, false), parts);
        assert_eq!(lengths(inbox, true), placed);
        SYNCED.set(SYNCED.get() + 1);
        Ok(())
    };
    store.finish().unwrap();
    assert_eq!(SYNCED.get(), 2);
}

/// Without a sync nothing is placed, or, once it is, nothing is done. The next attempt needs no byte again.
#[test]
fn a_job_that_cannot_be_synced_fails_and_resumes() {
    for fails in [
        (|_| Err(io::ErrorKind::StorageFull.into())) as fn(&Inbox) -> _,
        |inbox| match lengths(inbox, true).contains(&None) {
            true => Ok(()),
            false => Err(io::ErrorKind::StorageFull.into()),
        },
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut store = fill(folder.path());
        store.save(&Ranges::none()).unwrap();
        store.sync = fails;
        let refused = store.finish().unwrap_err().to_string();
        assert!(refused.contains("cannot sync"), "{refused}");
        drop(store);
        let (mut store, missing) = Store::open(folder.path(), &manifest(), false).unwrap();
        assert!(missing.is_empty(), "{missing:?}");
        store.finish().unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn one_changed_file_does_not_make_the_others_travel_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = fill(folder.path());
    store.save(&Ranges::none()).unwrap();
    drop(store);
    let mut entries = manifest().entries().to_vec();
    entries[1].modified_ns += 5_000_000_000;
    let changed = Manifest::new(entries).unwrap();
    let (mut store, missing) = Store::open(folder.path(), &changed, false).unwrap();
    assert_eq!(missing.iter().collect::<Vec<_>>(), [(0, 4)]);
    assert!(store.notes()[0].contains("1 unfinished files"));
    drop(store);
    // Back to the previous file: its partial file still exists.
    let (_, missing) = Store::open(folder.path(), &manifest(), false).unwrap();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn links_and_conflicts_in_the_folder_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("d")).unwrap();
    // The link takes the place of a directory in the list, which contains the list's files.
    assert!(refusal(folder.path(), true).contains("no folder"));
    fs::remove_file(folder.path().join("d")).unwrap();
    fs::create_dir_all(folder.path().join("d/a")).unwrap();
    assert!(refusal(folder.path(), true).contains("a folder"));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

/// A directory is made so that files can be created in it, and gets its mode at the end.
#[test]
fn a_folder_of_an_attempt_that_ended_half_way_gets_its_mode() {
    let folder = tempfile::tempdir().unwrap();
    let mut entries = manifest().entries().to_vec();
    entries[0].mode = 0o550;
    let list = Manifest::new(entries).unwrap();
    let (mut store, _) = Store::open(folder.path(), &list, false).unwrap();
    store.keep(0, b"helloworld").unwrap();
    store.sync = |inbox| {
        let last = manifest().entries()[3].clone();
        fs::remove_file(inbox.path().join(WORK).join(part(&last)))
    };
    assert!(store.finish().is_err());
    drop(store);
    let mode = || {
        let facts = folder.path().join("d").metadata().unwrap();
        facts.permissions().mode() & 0o777
    };
    assert_eq!(mode(), 0o750);
    let (mut store, missing) = Store::open(folder.path(), &list, false).unwrap();
    assert_eq!(missing.iter().collect::<Vec<_>>(), [(4, 6)]);
    store.keep(4, b"oworld").unwrap();
    store.finish().unwrap();
    assert_eq!(mode(), 0o550);
}

#[test]
fn a_folder_that_is_there_keeps_its_permissions() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("d")).unwrap();
    fs::set_permissions(folder.path().join("d"), Permissions::from_mode(0o711)).unwrap();
    fill(folder.path()).finish().unwrap();
    let facts = folder.path().join("d").metadata().unwrap();
    assert_eq!(facts.permissions().mode() & 0o777, 0o711);
}

/// No mode exceeds what the umask of this process allows.
#[test]
fn the_umask_applies() {
    let (folder, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(own.path().join("own")).unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let granted = mode(&own.path().join("own"));
    let entries = manifest().entries().to_vec().into_iter();
    let open = entries.map(|entry| Entry {
        mode: 0o777,
        ..entry
    });
    let manifest = Manifest::new(open.collect()).unwrap();
    let (mut store, _) = Store::open(folder.path(), &manifest, false).unwrap();
    store.keep(0, b"helloworld").unwrap();
    store.finish().unwrap();
    for path in ["d", "d/a"] {
        assert_eq!(mode(&folder.path().join(path)), granted, "{path}");
    }
}

#[test]
fn abandoned_parts_are_removed_after_a_week() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = fill(folder.path());
    store.save(&Ranges::none()).unwrap();
    drop(store);
    let other = Manifest::new(vec![Entry {
        path: "other".to_owned(),
        ..manifest().entries()[1].clone()
    }])
    .unwrap();
    let parts = || fs::read_dir(folder.path().join(WORK)).unwrap().count();
    let (mut store, _) = Store::open(folder.path(), &other, false).unwrap();
    assert!(store.notes()[0].contains("keeps 3 unfinished files of other jobs"));
    drop(store);
    let before = parts();
    for entry in manifest().entries()[1..].iter() {
        let part = File::options()
            .write(true)
            .open(folder.path().join(WORK).join(part(entry)))
            .unwrap();
        let then = SystemTime::now() - KEPT - Duration::from_secs(60);
        part.set_modified(then).unwrap();
    }
    let (mut store, _) = Store::open(folder.path(), &other, false).unwrap();
    let notes = store.notes();
    assert!(notes[0].contains("are removed"), "{notes:?}");
    assert_eq!(notes.len(), 1, "{notes:?}");
    // Each partial file comes with its missing ranges.
    assert_eq!(parts(), before - 6);
    drop(store);
    let (_, missing) = Store::open(folder.path(), &manifest(), false).unwrap();
    assert_eq!(missing, Ranges::all(10));
}

#[test]
fn an_inconsistent_resume_state_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(folder.path(), &manifest(), false).unwrap();
    drop(store);
    let path = folder.path().join(WORK);
    let list = digest(&manifest());
    let wrong = [
        format!(r#"{{"list":"{list}","missing":[[0,11]]}}"#),
        format!(r#"{{"list":"{list}","missing":[[3,0]]}}"#),
        r#"{"list":"of another","missing":[]}"#.to_owned(),
        "nonsense".to_owned(),
    ];
    for text in wrong {
        fs::write(path.join(MISSING), &text).unwrap();
        let (_, missing) = Store::open(folder.path(), &manifest(), false).unwrap();
        assert_eq!(missing, Ranges::all(10), "{text}");
    }
    let text = format!(r#"{{"list":"{list}","missing":[]}}"#);
    fs::write(path.join(MISSING), text).unwrap();
    fs::write(path.join(part(&manifest().entries()[3])), "short").unwrap();
    let (_, missing) = Store::open(folder.path(), &manifest(), false).unwrap();
    assert_eq!(missing.iter().collect::<Vec<_>>(), [(4, 6)]);
}

/// The number of cases: `few`, or what `make fuzz` asks for. Each needs a directory on the disk.
fn cases(few: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig::with_cases(asked.and_then(|n| n.parse().ok()).unwrap_or(few))
}

proptest! {
    #![proptest_config(cases(48))]

    /// The work directory may hold data of another version or of unknown origin: they are used only if valid.
    #[test]
    fn any_leftover_state_is_used_or_ignored(
        files in prop::collection::vec((prop_oneof![
            Just(LIST.to_owned()), Just(MISSING.to_owned()), "[a-f0-9]{32}(\\.missing)?",
        ], prop_oneof![
            prop::collection::vec(any::<u8>(), 0..60),
            Just(b"[[0,4]]".to_vec()),
            Just(br#"{"list":"","missing":[[0,18446744073709551615]]}"#.to_vec()),
        ]), 0..5),
    ) {
        let folder = tempfile::tempdir().unwrap();
        drop(Store::open(folder.path(), &manifest(), false).unwrap());
        for (name, bytes) in &files {
            fs::write(folder.path().join(WORK).join(name), bytes).unwrap();
        }
        let (store, missing) = Store::open(folder.path(), &manifest(), false).unwrap();
        prop_assert!(missing.check(10).is_ok());
        drop(store);
        let (_, again) = Store::open(folder.path(), &manifest(), false).unwrap();
        prop_assert_eq!(again, missing);
    }
}
