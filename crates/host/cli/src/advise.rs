//! `airlane advise` and `airlane check`.

mod asked;
mod check;
mod picture;
mod report;
mod words;

use std::path::{Path, PathBuf};

use airlane_advise::Advice;
use anyhow::Context as _;
use serde::Serialize;
use toml::Table;

use asked::{Asked, shown};
pub(crate) use check::check;

use crate::args::AdviseArgs;
use crate::fault::BadInput;
use crate::output;
use crate::progress::ProgressLine;
use crate::recorded::{describe, remarks};

/// Version of the JSON that is printed.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Printed<'a> {
    schema: u32,
    link: Table,
    remarks: Vec<String>,
    #[serde(flatten)]
    advice: &'a Advice,
    /// The advised file, if --file gave one.
    file: Option<&'a str>,
}

/// Advice in words, and the advised file if there is a change and a file to change.
pub(crate) struct Report {
    /// What `airlane advise` prints.
    pub(crate) text: String,
    /// The advised file.
    pub(crate) file: Option<String>,
}

fn asked(traces: Vec<airlane_channel::trace::Trace>, args: &AdviseArgs) -> anyhow::Result<Asked> {
    let goals = args.want.clone().unwrap_or_default();
    let mut asked = Asked::of(traces, &args.traces, &args.question, goals)?;
    asked.question.what_ifs = args.what_if.clone().unwrap_or_default();
    asked.question.search = args.search.map_or(0, usize::from);
    Ok(asked)
}

fn of(asked: &Asked, advice: &Advice, args: &AdviseArgs) -> anyhow::Result<Report> {
    let file = match &asked.text {
        Some(text) => report::advised_file(advice, text)?,
        None => None,
    };
    let goals = &asked.question.goals;
    let mut text = describe(&asked.name, &asked.fit, &asked.question.link);
    text.push('\n');
    text.push_str(&report::table(advice, goals));
    text.push_str(&report::sentences(advice, goals, asked.busy_bps));
    let before = asked.text.as_deref();
    text.push_str(&report::recommendation(
        advice,
        args,
        file.as_deref(),
        before,
    ));
    Ok(Report { text, file })
}

/// The report of `airlane advise` on traces that were read already.
#[cfg(feature = "live")]
pub(crate) fn report(
    traces: Vec<airlane_channel::trace::Trace>,
    args: &AdviseArgs,
    progress: impl Fn(u64, u64) + Sync,
) -> anyhow::Result<Report> {
    let asked = asked(traces, args)?;
    let advice = airlane_advise::advise(&asked.question, progress).map_err(shown)?;
    of(&asked, &advice, args)
}

fn folder(path: &Path) -> Option<PathBuf> {
    Some(std::path::absolute(path).ok()?.parent()?.to_owned())
}

/// A key of the file that is named by its place in the file's folder.
fn relative_key(table: &Table) -> Option<&str> {
    table.iter().find_map(|(name, value)| match value {
        toml::Value::String(path) if matches!(name.as_str(), "private-key" | "preshared-key") => {
            Some(path.as_str()).filter(|path| Path::new(path).is_relative())
        }
        toml::Value::Table(table) => relative_key(table),
        toml::Value::Array(all) => all
            .iter()
            .filter_map(|v| v.as_table())
            .find_map(relative_key),
        _ => None,
    })
}

/// Runs `advise`.
pub(crate) fn advise(args: &AdviseArgs) -> anyhow::Result<()> {
    let asked = asked(asked::read(&args.traces)?, args)?;
    let progress = ProgressLine::new("simulated", 1);
    let advice = airlane_advise::advise(&asked.question, |done, all| progress.at(done, all));
    drop(progress);
    let advice = advice.map_err(shown)?;
    let Report { text, file } = of(&asked, &advice, args)?;
    if let Some(path) = &args.write {
        let text = file
            .as_deref()
            .or(asked.text.as_deref())
            .unwrap_or_default();
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        if let Some(from) = &args.question.file
            && folder(from) != folder(path)
            && let Some(key) = relative_key(&text.parse().unwrap_or_default())
        {
            output::warn(&format!(
                "{} is not in the folder of {}: there, \"{key}\" leads to another key; write it beside that file",
                path.display(),
                from.display()
            ));
        }
    }
    if let Some(path) = &args.picture {
        let picture = picture::picture(&asked.name, &advice);
        std::fs::write(path, picture)
            .with_context(|| BadInput(format!("cannot write {}", path.display())))?;
    }
    if args.question.json {
        let printed = Printed {
            schema: SCHEMA,
            link: asked.question.link.table(),
            remarks: remarks(&asked.fit, &asked.question.link),
            advice: &advice,
            file: file.as_deref(),
        };
        return output::print(&format!("{}\n", serde_json::to_string_pretty(&printed)?));
    }
    output::print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_another_folder_lacks_are_found() {
        let text = |key: &str| {
            format!("[link]\nsecurity = {{ private-key = \"{key}\", peer-key = \"TjgqYkZ2\" }}\n")
        };
        let found = |text: &str| relative_key(&text.parse().unwrap()).map(str::to_owned);
        assert_eq!(found(&text("left.key")).as_deref(), Some("left.key"));
        assert_eq!(found(&text("/etc/airlane/left.key")), None);
        let peers = "[[link.peers]]\npreshared-key = \"pair.key\"\n";
        assert_eq!(found(peers).as_deref(), Some("pair.key"));
    }
}
