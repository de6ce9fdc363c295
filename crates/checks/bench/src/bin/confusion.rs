//! Prints which service each kind of traffic gets with `classes = "behaviour"`, alone and all at once.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use airlane_bench::confusion::{Kind, Line, Verdict, alone, kinds, read, together};
use clap::Parser;

/// Print which service each kind of traffic gets, by models and captures, each alone and all at once.
#[derive(Parser)]
#[command(
    after_help = "Examples:\n  airlane-confusion\n  airlane-confusion --seed 2 crates/checks/bench/captures target/captures\n\nExit codes: 0 every kind is where it should be, but for 5 % of its bytes and 2 % of a call's packets; 1 one is not; 2 bad input."
)]
struct Arguments {
    /// Folders of captures, which are read as well.
    captures: Vec<PathBuf>,
    /// Seed of the models.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    airlane_bench::exit_code(run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let mut all = kinds(arguments.seed);
    for folder in &arguments.captures {
        all.extend(captures(folder)?);
    }
    let mut held = true;
    for (title, lines) in [("alone", alone(&all)), ("all at once", together(&all))] {
        held &= print(title, &all, &lines);
    }
    Ok(held)
}

fn captures(folder: &Path) -> Result<Vec<Kind>, String> {
    let shown = folder.display();
    let entries = fs::read_dir(folder).map_err(|error| format!("{shown}: {error}"))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "txt"));
    paths.sort();
    let read = |path: PathBuf| {
        let shown = path.display();
        let text = fs::read_to_string(&path).map_err(|error| format!("{shown}: {error}"))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        read(&name, &text).map_err(|error| format!("{shown}: {error}"))
    };
    paths.into_iter().map(read).collect()
}

/// Returns whether every line meets its bound.
fn print(title: &str, kinds: &[Kind], lines: &[Line]) -> bool {
    const SERVICES: [&str; 7] = [
        "calls",
        "interactive",
        "pages",
        "files",
        "paced",
        "video",
        "default",
    ];
    println!("\n{title}: percent of bytes by service");
    print!("{:36}{:>8}", "", "MB");
    SERVICES.iter().for_each(|service| print!("{service:>12}"));
    println!("{:>8}{:>10}", "wrong", "packets");
    for (kind, line) in kinds.iter().zip(lines) {
        print!("{:36}{:8.2}", kind.name, line.all.1 as f64 / 1e6);
        for service in SERVICES {
            let bytes = line.services.get(service).map_or(0, |(_, bytes)| *bytes);
            match bytes {
                0 => print!("{:>12}", "."),
                bytes => print!("{:12.1}", bytes as f64 * 100.0 / line.all.1.max(1) as f64),
            }
        }
        let (packets, bytes) = line.wrong_share();
        let mark = match line.verdict() {
            Verdict::Held => "",
            Verdict::Missed => "  missed",
        };
        println!("{:8.1}{:10.1}{mark}", bytes * 100.0, packets * 100.0);
    }
    let missed = lines
        .iter()
        .filter(|line| line.verdict() == Verdict::Missed);
    let missed = missed.count();
    println!("{} kinds, {missed} missed", lines.len());
    missed == 0
}
