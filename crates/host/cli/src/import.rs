//! `airlane import`: converts configurations of other tunnels to live files.

use std::path::{Path, PathBuf};

use airlane_base::config::{Document, RefusedFile};
use airlane_live::config::LiveConfig;
use airlane_live::import::{ImportedLink, from_wireguard};
use airlane_live::security::{read_key, read_preshared, save_key, save_preshared};
use anyhow::Context as _;

use crate::args::WireguardArgs;
use crate::fault::BadInput;
use crate::output;

/// Runs `airlane import wg`.
pub(crate) fn wireguard(args: &WireguardArgs) -> anyhow::Result<()> {
    let shown = args.file.display();
    let text = airlane_base::config::read_text(&args.file)
        .with_context(|| BadInput(format!("cannot read {shown}")))?;
    let beside = args
        .output
        .as_deref()
        .map(|output| output.with_extension("key"));
    let named = || PathBuf::from(stem(&args.file)).with_extension("key");
    let key = args.key.clone().or(beside).unwrap_or_else(named);
    let key = std::path::absolute(&key)?;
    let import = from_wireguard(&text, stem(&args.file), &key, args.rate)
        .map_err(|error| BadInput(format!("{shown}: {error}")))?;
    // The written file can be used, except for what the notes name.
    let name = args.output.as_deref().unwrap_or(Path::new("the file"));
    let made = Document::parse(&import.text, &name.display().to_string())?;
    if let Err(refused) = made.read::<LiveConfig>() {
        return Err(in_wireguard(&refused, &import, &shown.to_string()).into());
    }
    for note in &import.notes {
        output::warn(note);
    }
    let is_there = |file: &Path| output::note(&format!("{} has this key already", file.display()));
    match read_key(&key).is_ok_and(|there| there.public() == import.key.public()) {
        true => is_there(&key),
        false => {
            save_key(&key, &import.key)?;
            output::note(&format!("wrote the private key to {}", key.display()));
        }
    }
    for (file, secret) in &import.preshared {
        match read_preshared(file).is_ok_and(|there| *there.to_text() == *secret.to_text()) {
            true => is_there(file),
            false => {
                save_preshared(file, secret)?;
                output::note(&format!("wrote a pre-shared key to {}", file.display()));
            }
        }
    }
    output::write(&import.text, args.output.as_deref())
}

/// Reports what a link refuses where its owner can mend it: in the file that was read, since none
/// was written.
fn in_wireguard(refused: &RefusedFile, import: &ImportedLink, file: &str) -> BadInput {
    let problems = refused.problems().iter().map(|problem| {
        let line = import.line_of(&problem.path);
        let line = line.map_or(String::new(), |line| format!("line {line}: "));
        let help = match problem.help.is_empty() {
            true => String::new(),
            false => format!(" (help: {})", problem.help),
        };
        format!("{file}: {line}{}{help}", problem.message)
    });
    BadInput(problems.collect::<Vec<_>>().join("\n"))
}

/// The link's name: the file's stem, if an interface can have that name.
fn stem(file: &Path) -> &str {
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    stem.filter(|stem| stem.len() < 16).unwrap_or("air0")
}
