//! `airlane --help`: the verbs to begin with, in groups, and the names of the others.

use clap::builder::styling::Style;
use clap::{Command, CommandFactory as _};

use super::{Cli, STYLES};
use crate::output::line;

struct Group {
    title: &'static str,
    /// Shown with what each does.
    first: &'static [&'static str],
    /// Shown by name.
    others: &'static [&'static str],
}

const GROUPS: [Group; 4] = [
    Group {
        title: "Simulate",
        first: &["sim", "lab", "study"],
        others: &["scenario", "explain", "schema"],
    },
    Group {
        title: "Run a link",
        first: &["setup", "up", "doctor", "status"],
        others: &[
            "flows", "top", "reload", "set", "service", "pull", "keygen", "import",
        ],
    },
    Group {
        title: "Measure and decide",
        first: &["test", "record", "advise"],
        others: &["check", "trace", "journal", "air", "emulate"],
    },
    Group {
        title: "Without a tunnel",
        first: &["send", "relay"],
        others: &["recv"],
    },
];

/// About the program itself.
const ITSELF: [&str; 4] = ["completions", "help", "manual", "version"];

/// The whole command line.
pub fn grouped_command() -> Command {
    let command = Cli::command().mut_subcommands(with_examples);
    let template = template(&command);
    command.help_template(template)
}

/// A verb that only has verbs below it, with the first example of each of them.
fn with_examples(verb: Command) -> Command {
    let below = verb.get_subcommands().filter_map(|verb| {
        let help = verb.get_after_help()?.to_string();
        let example = help.lines().find(|line| line.starts_with("  "))?;
        Some(format!("\n{example}"))
    });
    let below: String = below.collect();
    match below.is_empty() {
        true => verb,
        false => verb.after_help(format!("Examples:{below}")),
    }
}

fn template(command: &Command) -> String {
    let mut text = String::from("{before-help}{about-with-newline}\n{usage-heading} {usage}\n");
    for Group {
        title,
        first,
        others,
    } in GROUPS
    {
        let shown: Vec<_> = first.iter().filter_map(|name| of(command, name)).collect();
        let others: Vec<_> = others
            .iter()
            .filter(|name| of(command, name).is_some())
            .collect();
        if shown.is_empty() && others.is_empty() {
            continue;
        }
        line(
            &mut text,
            format_args!("\n{}:", styled(STYLES.get_header(), title)),
        );
        for verb in shown {
            let about = verb.get_about().map(ToString::to_string);
            let (name, about) = (verb.get_name(), about.unwrap_or_default());
            let name = styled(STYLES.get_literal(), format_args!("{name:8}"));
            line(&mut text, format_args!("  {name} {about}"));
        }
        if !others.is_empty() {
            let names: Vec<_> = others
                .iter()
                .map(|name| styled(STYLES.get_literal(), name))
                .collect();
            line(&mut text, format_args!("  also: {}", names.join(", ")));
        }
    }
    let itself = ITSELF.map(|name| styled(STYLES.get_literal(), name));
    line(
        &mut text,
        format_args!(
            "\n{} {}\nairlane help VERB shows what a verb does, with examples.",
            styled(STYLES.get_header(), "The program itself:"),
            itself.join(", "),
        ),
    );
    let options = styled(STYLES.get_header(), "Options:");
    text + &format!("\n{options}\n{{options}}{{after-help}}")
}

fn of<'c>(command: &'c Command, name: &str) -> Option<&'c Command> {
    command
        .get_subcommands()
        .find(|verb| verb.get_name() == name)
}

fn styled(style: &Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_is_named_once_and_twelve_are_explained() {
        let explained: Vec<_> = GROUPS.iter().flat_map(|group| group.first).collect();
        assert!(explained.len() <= 12, "{explained:?}");
        let others = GROUPS.iter().flat_map(|group| group.others);
        let mut named: Vec<_> = explained
            .iter()
            .copied()
            .chain(others)
            .chain(&ITSELF)
            .collect();
        named.sort();
        // Clap adds `help` when it parses.
        let command = Cli::command();
        let mut verbs: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
        verbs.push("help");
        verbs.sort_unstable();
        let missing: Vec<_> = verbs.iter().filter(|verb| !named.contains(verb)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        named
            .windows(2)
            .for_each(|pair| assert_ne!(pair[0], pair[1]));
        #[cfg(all(feature = "emulate", feature = "screen"))]
        assert_eq!(named.into_iter().copied().collect::<Vec<_>>(), verbs);
    }

    #[test]
    fn a_verb_with_verbs_below_it_has_an_example_of_each() {
        for verb in grouped_command().get_subcommands() {
            let help = verb
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            for below in verb.get_subcommands() {
                let called = format!("  airlane {} {}", verb.get_name(), below.get_name());
                assert!(help.contains(&called), "{called}: {help}");
            }
        }
    }

    #[test]
    fn lines_fit_a_window() {
        let help = grouped_command().render_long_help().to_string();
        for line in help.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}
