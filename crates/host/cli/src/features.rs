//! Which parts of the program this build has: a router does not need the simulator, and a lab does
//! not need the daemon.

use crate::fault::BadInput;

/// A feature, whether it is built in, and the verbs that need it.
type Feature = (&'static str, bool, &'static [&'static str]);

const FEATURES: [Feature; 4] = [
    (
        "live",
        cfg!(feature = "live"),
        &[
            "up", "setup", "keygen", "air", "relay", "send", "recv", "doctor", "reload", "import",
            "set", "service", "status", "flows", "pull", "test", "record", "journal",
        ],
    ),
    (
        "lab",
        cfg!(feature = "lab"),
        &[
            "sim", "scenario", "lab", "study", "trace", "advise", "check",
        ],
    ),
    ("screen", cfg!(feature = "screen"), &["top"]),
    ("emulate", cfg!(feature = "emulate"), &["emulate"]),
];

/// The features of this build.
pub(crate) fn built() -> Vec<&'static str> {
    let built = FEATURES.iter().filter(|(_, built, _)| *built);
    built.map(|(name, ..)| *name).collect()
}

/// The error for a verb that this build lacks; `None` if it has the verb.
pub(crate) fn left_out(verb: &str) -> Option<BadInput> {
    let needs = |(_, built, verbs): &&Feature| !built && verbs.contains(&verb);
    let (feature, ..) = FEATURES.iter().find(needs)?;
    Some(missing(&format!("`airlane {verb}`"), feature))
}

/// The error for something that needs a feature this build lacks.
pub(crate) fn missing(what: &str, feature: &str) -> BadInput {
    BadInput(format!(
        "{what} needs the feature `{feature}`, which this build of airlane does not have; it has: {}",
        built().join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    /// Every build either has a verb or names the feature it needs.
    #[test]
    fn each_verb_is_built_or_names_its_feature() {
        let command = Cli::command();
        let built: BTreeSet<&str> = command
            .get_subcommands()
            .map(|verb| verb.get_name())
            .collect();
        let everywhere = ["explain", "schema", "manual", "version", "completions"];
        let mut expected = BTreeSet::from(everywhere);
        for (feature, has, verbs) in FEATURES {
            for verb in verbs {
                let error = left_out(verb).map(|error| error.to_string());
                assert_eq!(error.is_none(), has, "{verb}");
                assert!(
                    error.is_none_or(|e| e.contains(&format!("`{feature}`"))),
                    "{verb}"
                );
            }
            expected.extend(verbs.iter().filter(|_| has));
        }
        assert_eq!(built, expected);
        assert!(left_out("no-such-verb").is_none());
    }
}
