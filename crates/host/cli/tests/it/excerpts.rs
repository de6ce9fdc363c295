//! README and documents show only what works: every TOML excerpt can be read, and every command of
//! the program and recipe of `make` in a shell excerpt exists. `python/tests/test_excerpts.py`
//! compiles the Python excerpts.
//!
//! An excerpt that is a part of a file says so in the line before it, which rendered pages do not
//! show: `<!-- in demo/left.toml -->`. It is then merged into that file: tables key by key, lists
//! of tables by name or, without names, by position.

use std::path::{Path, PathBuf};

use airlane_base::config::Document;
use airlane_cli::args::Cli;
use airlane_live::air::AirConfig;
use airlane_live::config::LiveConfig;
use airlane_sim::Scenario;
use airlane_study::StudyFile;
use clap::Parser as _;
use toml::{Table, Value};

/// A fenced block.
struct Excerpt {
    /// File and line.
    at: String,
    language: String,
    /// The file of which the excerpt is a part.
    part_of: Option<String>,
    text: String,
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The excerpts of README and documents in a language.
fn excerpts(language: &str) -> Vec<Excerpt> {
    let folders = ["docs", "docs/lab", "docs/reference"].map(|folder| sources().join(folder));
    let docs = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = docs
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect();
    files.push(sources().join("README.md"));
    files.sort();
    let all = files.iter().flat_map(|file| read(file));
    let found: Vec<Excerpt> = all.filter(|excerpt| excerpt.language == language).collect();
    assert!(
        found.len() > 5,
        "{language} excerpts are not found any more"
    );
    found
}

fn read(file: &Path) -> Vec<Excerpt> {
    let text = std::fs::read_to_string(file).unwrap();
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let mut found = vec![];
    let mut before = "";
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let inside = lines.by_ref().map(|(_, line)| line);
            let inside: Vec<&str> = inside.take_while(|line| *line != "```").collect();
            let mark = before
                .strip_prefix("<!-- in ")
                .and_then(|mark| mark.strip_suffix(" -->"));
            found.push(Excerpt {
                at: format!("{name}:{}", number + 1),
                language: language.to_owned(),
                part_of: mark.map(str::to_owned),
                text: inside.join("\n"),
            });
        }
        before = line;
    }
    found
}

fn merge(into: &mut Table, from: &Table) {
    for (key, new) in from {
        match (into.get_mut(key), new) {
            // A table of another kind has other keys.
            (Some(Value::Table(old)), Value::Table(new)) if old.get("kind") == new.get("kind") => {
                merge(old, new);
            }
            (Some(Value::Array(old)), Value::Array(new)) if new.iter().all(Value::is_table) => {
                for (i, item) in new.iter().enumerate() {
                    let name = item.get("name");
                    let place = old
                        .iter()
                        .position(|other| name.is_some() && other.get("name") == name);
                    let place = place.unwrap_or(if name.is_some() { old.len() } else { i });
                    match (old.get_mut(place), item) {
                        (Some(Value::Table(old)), Value::Table(item)) => merge(old, item),
                        _ => old.push(item.clone()),
                    }
                }
            }
            _ => _ = into.insert(key.clone(), new.clone()),
        }
    }
}

/// Reads a file of any kind; `whole` says whether the excerpt is a complete file.
fn check(text: &str, name: &str, whole: bool) -> Result<(), String> {
    let document = Document::parse(text, name).map_err(|e| e.to_string())?;
    let refused = if document.has("title") {
        toml::from_str::<StudyFile>(text)
            .err()
            .map(|e| e.to_string())
    } else if document.has("interfaces") {
        document.read::<AirConfig>().err().map(|e| e.to_string())
    } else if document.has("link") {
        match document.read::<LiveConfig>() {
            // Readers who copy a whole file must get what its services promise.
            Ok(file) if whole => file.link.unreached().first().map(ToString::to_string),
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        }
    } else {
        document.read::<Scenario>().err().map(|e| e.to_string())
    };
    refused.map_or(Ok(()), Err)
}

#[test]
fn every_toml_excerpt_is_read() {
    for excerpt in excerpts("toml") {
        let part: Table =
            toml::from_str(&excerpt.text).unwrap_or_else(|e| panic!("{}: {e}", excerpt.at));
        let text = match &excerpt.part_of {
            None => excerpt.text.clone(),
            Some(file) => {
                let whole = std::fs::read_to_string(sources().join(file)).unwrap();
                let mut whole: Table = toml::from_str(&whole).unwrap();
                merge(&mut whole, &part);
                toml::to_string(&whole).unwrap()
            }
        };
        let whole = excerpt.part_of.is_none();
        check(&text, &excerpt.at, whole).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// The commands of a line, each split into words.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![vec![]];
    let mut word = String::new();
    let mut quote = None;
    let mut quoted = false;
    let end_word = |word: &mut String, quoted: &mut bool, commands: &mut Vec<Vec<String>>| {
        if !word.is_empty() || *quoted {
            commands.last_mut().unwrap().push(std::mem::take(word));
        }
        *quoted = false;
    };
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, quoted) = (Some(c), true),
            (None, '#') if word.is_empty() => break,
            (None, '|' | '&' | ';' | '>') => {
                end_word(&mut word, &mut quoted, &mut commands);
                commands.push(vec![]);
            }
            (None, c) if c.is_whitespace() => end_word(&mut word, &mut quoted, &mut commands),
            (None, c) => word.push(c),
        }
    }
    end_word(&mut word, &mut quoted, &mut commands);
    commands
}

#[test]
fn every_command_in_a_shell_excerpt_exists() {
    let makefile = std::fs::read_to_string(sources().join("Makefile")).unwrap();
    let mut seen = 0;
    for excerpt in excerpts("sh") {
        for line in excerpt.text.replace("\\\n", " ").lines() {
            for words in commands(line) {
                let of = words
                    .iter()
                    .position(|word| word != "sudo" && !word.contains('='));
                let words = &words[of.unwrap_or(0)..];
                match words.first().map(String::as_str) {
                    Some("airlane") => {
                        seen += 1;
                        let parsed = Cli::try_parse_from(words);
                        parsed.unwrap_or_else(|e| panic!("{}: {line}\n{e}", excerpt.at));
                    }
                    Some("make") => {
                        for recipe in words[1..].iter().filter(|word| !word.contains('=')) {
                            let start = format!("\n{recipe}:");
                            assert!(makefile.contains(&start), "{}: {line}", excerpt.at);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(seen > 40, "only {seen} commands were found");
}
