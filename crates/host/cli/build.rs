//! Tells the program which commit it is built from, and embeds the page of `airlane lab`. A package
//! built without git names the commit in `AIRLANE_COMMIT`; otherwise the commit is unknown.

use std::path::{Path, PathBuf};
use std::process::Command;

const COMMIT: &str = "AIRLANE_COMMIT";

/// The files of the page. `make site` makes the last one, without which there is no page.
const SITE: [&str; 5] = [
    "index.html",
    "lab.css",
    "lab.js",
    "licences.txt",
    "simulator.js",
];

fn main() {
    println!("cargo::rerun-if-env-changed={COMMIT}");
    println!("cargo::rerun-if-changed=build.rs");
    put_site();
    name_commit();
}

/// The checkout. It is read at run time, since two checkouts may share what was built of this file.
fn root() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../..")
}

/// Writes a list of the page's files, empty if one is missing.
fn put_site() {
    let site = root().join("web/site");
    println!("cargo::rerun-if-changed={}", site.display());
    let mut list = String::from("const SITE: &[(&str, &[u8])] = &[\n");
    if SITE.iter().all(|name| site.join(name).is_file()) {
        for name in SITE {
            let path = site.join(name);
            list += &format!("    ({name:?}, include_bytes!({path:?})),\n");
        }
    }
    list += "];\n";
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    let written = std::fs::write(Path::new(&out).join("site.rs"), list);
    written.expect("cargo's folder can be written to");
}

fn name_commit() {
    if std::env::var_os(COMMIT).is_some() {
        return;
    }
    // A tarball that was unpacked inside another project's repository is not at that repository's
    // commit.
    let root = root();
    if !root.join(".git").exists() {
        return;
    }
    if let Some(commit) = git(&root, &["rev-parse", "--short=10", "HEAD"]) {
        println!("cargo::rustc-env={COMMIT}={commit}");
    }
    // A commit writes one of these files; packed references are in another one.
    let branch = git(&root, &["symbolic-ref", "-q", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let path = git(&root, &["rev-parse", "--git-path", name]);
        if let Some(path) = path
            .map(|path| root.join(path))
            .filter(|path| path.exists())
        {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
}

/// The output of git, if it is installed and succeeds.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let said = Command::new("git")
        .current_dir(root)
        .args(arguments)
        .output()
        .ok()?;
    let word = String::from_utf8(said.stdout).ok()?;
    Some(word.trim().to_owned()).filter(|word| said.status.success() && !word.is_empty())
}
