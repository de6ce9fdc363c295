//! Gives the crate a fingerprint of the code that simulates, so that results of another version are
//! never mistaken for results of this one, and embeds the works and scenarios that the program
//! ships.

use std::path::{Path, PathBuf};

/// The folders whose files are embedded in the program.
const SHIPPED: [&str; 2] = ["scenarios", "studies"];

/// The crates whose code determines results.
const CRATES: [&str; 5] = [
    "protocol/base",
    "protocol/link",
    "protocol/transport",
    "world/channel",
    "world/sim",
];

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut files = vec![here.join("src/metrics.rs")];
    for path in CRATES {
        let source = here.join("../..").join(path).join("src");
        println!("cargo::rerun-if-changed={}", source.display());
        collect(&source, &["rs"], &mut files);
    }
    println!("cargo::rerun-if-changed=src/metrics.rs");
    files.sort();
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for file in files {
        // FNV-1a: it need not be secure, only show an edit.
        for byte in std::fs::read(&file).unwrap_or_default() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=AIRLANE_MODEL={hash:016x}");
    ship(&here.join("../../.."));
}

/// Writes a list of the shipped files with their paths in the repository.
fn ship(root: &Path) {
    let mut list = String::from("const SHIPPED: &[(&str, &str)] = &[\n");
    for folder in SHIPPED {
        let source = root.join(folder);
        println!("cargo::rerun-if-changed={}", source.display());
        let mut files = vec![];
        collect(&source, &["toml", "txt"], &mut files);
        assert!(!files.is_empty(), "{} has no files", source.display());
        files.sort();
        for file in files {
            let name = file.strip_prefix(root).expect("it was found there");
            list += &format!("    ({name:?}, include_str!({file:?})),\n");
        }
    }
    list += "];\n";
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    std::fs::write(out.join("shipped.rs"), list).expect("cargo's folder can be written to");
}

fn collect(folder: &Path, extensions: &[&str], files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, extensions, files);
        } else if path
            .extension()
            .is_some_and(|e| extensions.iter().any(|known| e == *known))
        {
            files.push(path);
        }
    }
}
