//! Gives the crate a fingerprint of the code that simulates, so that results of another version
//! are never taken for results of this one.

use std::path::{Path, PathBuf};

/// The crates whose code decides a result.
const CRATES: [&str; 5] = ["base", "channel", "link", "transport", "sim"];

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut files = vec![here.join("src/metrics.rs")];
    for name in CRATES {
        let source = here.join(format!("../airlane-{name}/src"));
        println!("cargo::rerun-if-changed={}", source.display());
        collect(&source, &mut files);
    }
    println!("cargo::rerun-if-changed=src/metrics.rs");
    files.sort();
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for file in files {
        // FNV-1a: no security is wanted, only that an edit shows.
        for byte in std::fs::read(&file).unwrap_or_default() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=AIRLANE_MODEL={hash:016x}");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}
