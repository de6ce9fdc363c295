//! Names the commit that the program is built of. A package that is built without git names it in
//! `AIRLANE_COMMIT`; otherwise it is unknown.

use std::path::Path;
use std::process::Command;

const COMMIT: &str = "AIRLANE_COMMIT";

fn main() {
    println!("cargo::rerun-if-env-changed={COMMIT}");
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os(COMMIT).is_some() {
        return;
    }
    // A tarball unpacked inside of another project's repository is not of that commit.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    if !root.join(".git").exists() {
        return;
    }
    if let Some(commit) = git(&root, &["rev-parse", "--short=10", "HEAD"]) {
        println!("cargo::rustc-env={COMMIT}={commit}");
    }
    // A commit writes one of these; names that have been packed are in another file.
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

/// What git says, if it is there and knows.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let said = Command::new("git")
        .current_dir(root)
        .args(arguments)
        .output()
        .ok()?;
    let word = String::from_utf8(said.stdout).ok()?;
    Some(word.trim().to_owned()).filter(|word| said.status.success() && !word.is_empty())
}
