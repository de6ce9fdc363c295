//! `airlane import`: live files of what other tunnels were told.

use std::path::{Path, PathBuf};

use airlane_base::config::Document;
use airlane_live::config::LiveConfig;
use airlane_live::import::from_wireguard;
use airlane_live::security::{save_key, save_preshared};
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
    // What is written can be used, but for what the notes name.
    let name = args.output.as_deref().unwrap_or(Path::new("the file"));
    Document::parse(&import.text, &name.display().to_string())?.read::<LiveConfig>()?;
    for note in &import.notes {
        output::warn(note);
    }
    save_key(&key, &import.key)?;
    output::note(&format!("wrote the private key to {}", key.display()));
    for (file, secret) in &import.preshared {
        save_preshared(file, secret)?;
        output::note(&format!("wrote a pre-shared key to {}", file.display()));
    }
    output::write(&import.text, args.output.as_deref())
}

/// What the link is called: as the file, where that can name an interface.
fn stem(file: &Path) -> &str {
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    stem.filter(|stem| stem.len() < 16).unwrap_or("air0")
}
