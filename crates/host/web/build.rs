//! The scenarios that come with the page, and the glossary's words.

use std::path::PathBuf;

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let scenarios = here.join("../../../scenarios");
    println!("cargo::rerun-if-changed={}", scenarios.display());
    let entries = std::fs::read_dir(&scenarios)
        .into_iter()
        .flatten()
        .flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "toml"));
    files.sort();
    assert!(!files.is_empty(), "{} has no files", scenarios.display());
    let mut list = String::from("const SCENARIOS: &[(&str, &str)] = &[\n");
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        list += &format!("    ({name:?}, include_str!({file:?})),\n");
    }
    list += "];\n";
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    std::fs::write(out.join("shipped.rs"), list).expect("cargo's folder can be written to");
}
