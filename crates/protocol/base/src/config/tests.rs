use std::fmt::Debug;

use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::*;
use crate::{BothWays, Duration, Rate};

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct World {
    schema: u32,
    #[serde(default)]
    links: BTreeMap<String, Link>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Link {
    rate: Rate,
    #[serde(default)]
    delay: BothWays<Duration>,
    #[serde(default)]
    services: Vec<Service>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Service {
    number: u8,
    name: String,
    scheme: Scheme,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum Scheme {
    Default,
    SrM2 { window: u32, timers: Option<Timers> },
    RlpOos { retries: u8 },
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum Timers {
    Fixed { ack: Duration, nak: Duration },
    Measured,
}

impl Validate for World {
    fn validate(&self, problems: &mut Problems) {
        for (name, link) in &self.links {
            problems.within(&format!("links.{}", key(name)), |problems| {
                for (i, service) in link.services.iter().enumerate() {
                    if service.number > 15 {
                        problems.add(
                            &format!("services[{i}].number"),
                            format!("service number {} is too large", service.number),
                            "write 0 to 15",
                        );
                    }
                }
            });
        }
    }

    fn entries() -> Option<(&'static str, &'static str)> {
        Some(("links", "rate"))
    }
}

const WORLD: &str = r#"schema = 1
[links.radio]
rate = "20 Mbit/s"
delay = "25 ms"
[[links.radio.services]]
number = 1
name = "tcp"
scheme = { kind = "sr-m2", window = 1024 }
[[links.radio.services]]
number = 2
name = "voice"
[links.radio.services.scheme]
kind = "rlp-oos"
retries = 2
"#;

/// The error for `WORLD` with `old` replaced by `new`.
fn refusal(old: &str, new: &str) -> String {
    assert!(WORLD.contains(old));
    let text = WORLD.replacen(old, new, 1);
    load::<World>(&text, "w.toml").unwrap_err().to_string()
}

#[test]
fn a_good_file_is_read() {
    let world: World = load(WORLD, "w.toml").unwrap();
    assert_eq!(
        world.links["radio"].services[1].scheme,
        Scheme::RlpOos { retries: 2 }
    );
}

#[test]
fn a_bad_unit_is_shown_with_its_place_and_what_would_be_right() {
    let expected = "\
w.toml:3:8: \"20 Mb\" has an unknown unit \"Mb\"
  3 | rate = \"20 Mb\"
    |        ^^^^^^^
  at links.radio.rate
  help: write a rate such as \"20 Mbit/s\" (units: bit/s, kbit/s, Mbit/s, Gbit/s)";
    assert_eq!(refusal("\"20 Mbit/s\"", "\"20 Mb\""), expected);
}

/// Each row: an edit of `WORLD`, the position, the problem and a part of the help.
#[test]
fn every_refusal_names_the_culprit() {
    let fixed = |rest: &str| format!("window = 9, timers = {{ kind = \"fixed\", {rest} }}");
    let window = "window = 1024";
    #[rustfmt::skip]
    let cases: [(&str, &str, &str, &str); 23] = [
        ("rate = \"20", "rtae = \"20", "3:1: unknown key `rtae`", "did you mean `rate`?"),
        ("\"20 Mbit/s\"", "20", "3:8: `rate` cannot be 20", "with its unit, such as \"20 Mbit/s\""),
        ("\"20 Mbit/s\"", "20 Mbit/s", "3:8: string values must be quoted", "quotes: \"20 Mbit/s\""),
        ("\"20 Mbit/s\"", "\"0 bit/s\"", "3:8: \"0 bit/s\" is out of range", "at least 1 bit/s"),
        ("\"25 ms\"", "25", "4:9: `delay` cannot be 25", "with its unit, such as \"25 ms\", or one for each of"),
        ("rate = \"20 Mbit/s\"", "", "2:1: `rate` is missing", "add `rate = \"20 Mbit/s\"` here"),
        ("number = 1", "number = 300", "6:10: `number` cannot be 300", "from 0 to 255"),
        ("number = 1", "number = 16", "6:10: service number 16 is too large", "write 0 to 15"),
        ("number = 2", "", "9:1: `number` is missing", "add `number = 0` here"),
        (window, "window = \"x\"", "8:37: `window` cannot be the text \"x\"", "a whole number"),
        (window, "window = 9, widow = 3", "8:40: unknown key `widow`", "did you mean `window`?"),
        (", window = 1024", "", "8:10: `window` is missing", "add `window = 0`"),
        ("sr-m2", "sr-m3", "8:19: `kind` cannot be \"sr-m3\"", "`sr-m2`? choices: default, sr-m2"),
        (window, &fixed("ack = \"3 ms\""), "8:49: `nak` is missing", "add `nak"),
        (window, &fixed("ack = \"3 ms\", nak = 3"), "8:87: `nak` cannot be 3", "\"100 ms\""),
        (window, &fixed("ack = \"3 ms\", nak = \"3\""), "8:87: \"3\" needs a unit", "\"100 ms\""),
        (window, "window = 9, timers = 9", "8:49: `timers` cannot be 9", "write a table such as { kind = \"fixed\", ack = \"100 ms\", nak = \"100 ms\" }; its kinds: fixed, measured"),
        (window, "window = 9, timers = { kind = \"x\" }", "8:58: `kind` cannot be \"x\"", "fixed, measured"),
        ("kind = \"rlp-oos\"", "", "12:1: `kind` is missing", "add `kind = \"rlp-oos\"`"),
        ("retries = 2", "retries = -2", "14:11: `retries` cannot be -2", "from 0 to 255"),
        ("schema = 1", "", "1:1: `schema` is missing", "add `schema = 0`"),
        ("[links.radio]", "[links.radio", "2:13: unclosed table", ""),
        ("schema = 1", "schema = 1\nschema = 2", "2:1: duplicate key", "once in its table, and this one stands at line 1: keep one of the two"),
    ];
    for (old, new, place, help) in cases {
        let error = refusal(old, new);
        let first = error.lines().next().unwrap();
        assert!(
            first.starts_with(&format!("w.toml:{place}")),
            "{new}: {error}"
        );
        let all_help = error.split_once("help: ").map_or("", |(_, help)| help);
        assert!(all_help.contains(help), "{new}: {error}");
        assert_eq!(
            error.matches("w.toml:").count(),
            1,
            "one problem each: {error}"
        );
    }
}

#[test]
fn advice_is_given_once_and_says_where_the_first_of_two_stands() {
    let text = "a = 1\n[t]\na = 1\n[u]\na = 2\n[t]\nb = 1\n";
    let error = load::<World>(text, "w.toml").unwrap_err().to_string();
    assert!(error.contains("w.toml:6:2: duplicate key"), "{error}");
    assert!(
        error.contains("header, and this one stands at line 2: put"),
        "{error}"
    );
    let text = "schema = 1\nnonsense = 1\nabsurd = 2\n";
    let error = load::<World>(text, "w.toml").unwrap_err().to_string();
    assert!(
        error.contains("`nonsense`") && error.contains("`absurd`"),
        "{error}"
    );
    assert_eq!(error.matches("keys that exist here").count(), 1, "{error}");
}

#[test]
fn all_missing_keys_of_a_table_are_reported_at_once_with_examples() {
    let text = "[links.radio]\ndelay = \"25 ms\"\nservices = [{ number = 1 }]\nwindow = 3\n";
    let error = load::<World>(text, "w.toml").unwrap_err().to_string();
    let expected = [
        "w.toml:1:1: `schema` is missing",
        "help: add `schema = 0` here, for example",
        "w.toml:1:1: `rate` is missing",
        "w.toml:3:13: `name` and `scheme` are missing",
        "help: add `name = \"...\"` and `scheme = { kind = \"default\" }` here, for example",
        "w.toml:4:1: unknown key `window`",
    ];
    for part in expected {
        assert_eq!(error.matches(part).count(), 1, "{part}\n{error}");
    }
}

#[test]
fn a_wrong_key_is_not_reported_as_missing_too() {
    let text = "schema = 1\n[links.radio]\nrate = 20\nservices = [{ nmae = \"a\", scheme = 9 }]\n";
    let error = load::<World>(text, "w.toml").unwrap_err().to_string();
    let expected = [
        "w.toml:3:8: `rate` cannot be 20",
        "w.toml:4:13: `number` is missing",
        "w.toml:4:15: unknown key `nmae`",
        "w.toml:4:36: `scheme` cannot be 9",
    ];
    let places = error.lines().filter(|line| line.starts_with("w.toml"));
    assert_eq!(places.collect::<Vec<_>>(), expected, "{error}");
}

/// The first line of each error in a file.
fn places<T: DeserializeOwned + JsonSchema + Validate + Debug>(text: &str) -> Vec<String> {
    let error = load::<T>(text, "h.toml").unwrap_err().to_string();
    let lines = error.lines().filter(|line| line.starts_with("h.toml"));
    Vec::from_iter(lines.map(str::to_owned))
}

/// Either key will do, so a bad value of one does not mean that the other is missing.
#[test]
fn a_bad_value_of_one_key_is_not_reported_as_the_lack_of_another() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, try_from = "Written")]
    #[schemars(!try_from, extend("anyOf" = [{ "required": ["scheme"] }, { "required": ["goal"] }]))]
    struct Service {
        #[schemars(example = 1)]
        scheme: Option<u32>,
        #[expect(dead_code, reason = "only its schema is read")]
        #[schemars(example = 1)]
        goal: Option<u32>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Written {
        scheme: Option<u32>,
        goal: Option<u32>,
    }
    impl TryFrom<Written> for Service {
        type Error = String;
        fn try_from(Written { scheme, goal }: Written) -> Result<Self, String> {
            scheme.or(goal).ok_or("missing field `scheme`")?;
            Ok(Self { scheme, goal })
        }
    }
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Holder {
        service: Service,
        other: u32,
    }
    impl Validate for Holder {
        fn validate(&self, _: &mut Problems) {
            assert_ne!(self.service.scheme, Some(self.other));
        }
    }
    let of = |line: &str| {
        let text = format!("other = \"y\"\n[service]\n{line}\n");
        places::<Holder>(&text)
    };
    let other = "h.toml:1:9: `other` cannot be the text \"y\"";
    let goal = "h.toml:3:8: `goal` cannot be the text \"x\"";
    assert_eq!(of("goal = \"x\""), [other, goal]);
    assert_eq!(of(""), [other, "h.toml:2:1: `scheme` is missing"]);
}

/// A table that lacks a key only because its value is bad gets one error.
#[test]
fn a_bad_value_is_not_reported_as_an_empty_table() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, try_from = "Written")]
    #[schemars(!try_from)]
    struct Match {
        port: Option<u16>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Written {
        port: Option<u16>,
    }
    impl TryFrom<Written> for Match {
        type Error = &'static str;
        fn try_from(Written { port }: Written) -> Result<Self, Self::Error> {
            port.map(|_| Self { port })
                .ok_or("this match asks for nothing")
        }
    }
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Holder {
        class: Match,
    }
    impl Validate for Holder {
        fn validate(&self, _: &mut Problems) {
            assert_ne!(self.class.port, Some(0));
        }
    }
    assert_eq!(
        places::<Holder>("class = { port = 80000 }"),
        ["h.toml:1:18: `port` cannot be 80000"]
    );
    assert_eq!(
        places::<Holder>("class = {}"),
        ["h.toml:1:9: this match asks for nothing"]
    );
}

#[test]
fn a_misspelt_key_gets_a_suggestion() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, try_from = "Written")]
    #[schemars(!try_from)]
    struct Service {
        scheme: u32,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Written {
        scheme: Option<u32>,
        goal: Option<u32>,
    }
    impl TryFrom<Written> for Service {
        type Error = String;
        fn try_from(written: Written) -> Result<Self, String> {
            let scheme = written.scheme.or(written.goal);
            let scheme = scheme.ok_or("missing field `scheme`")?;
            Ok(Self { scheme })
        }
    }
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Holder {
        service: Service,
    }
    impl Validate for Holder {
        fn validate(&self, _: &mut Problems) {
            assert_ne!(self.service.scheme, 9);
        }
    }
    let problems = |line: &str| {
        let text = format!("[service]\n{line}\n");
        load::<Holder>(&text, "h.toml").unwrap_err().to_string()
    };
    let one = problems("gaol = 3");
    assert!(
        one.contains("2:1: unknown key `gaol`") && !one.contains("missing"),
        "{one}"
    );
    assert!(one.contains("did you mean `goal`?"), "{one}");
    // The value of a misspelt key is not judged.
    let one = problems("gaol = \"x\"");
    assert!(
        one.contains("unknown key `gaol`") && !one.contains("cannot be"),
        "{one}"
    );
    let none = problems("colour = 3");
    assert!(
        none.contains("unknown key `colour`") && none.contains("`scheme` is missing"),
        "{none}"
    );
}

#[test]
fn a_missing_key_without_an_example_is_reported() {
    #[derive(Debug, Deserialize)]
    #[serde(transparent)]
    struct Anything(#[expect(dead_code, reason = "only read")] u32);
    crate::schema_of!(Anything, "Anything", { "description": "Whatever it is." });

    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only read")]
    struct Holder {
        size: u32,
        names: BTreeMap<String, u32>,
        what: Anything,
    }
    impl Validate for Holder {
        fn validate(&self, _: &mut Problems) {}
    }

    let error = load::<Holder>("", "h.toml").unwrap_err().to_string();
    let help = "add `size = 0` and `names = { NAME = 0 }` here, for example";
    assert!(
        error.contains("`size` and `names` are missing") && error.contains(help),
        "{error}"
    );
    assert!(error.contains("`what` is missing"), "{error}");
}

#[test]
fn several_problems_are_reported_at_once_in_the_order_of_their_lines() {
    let text = WORLD
        .replace("delay = ", "dealy = ")
        .replace("retries = 2", "retries = 2\ncolour = 3")
        .replace("schema = 1", "schema = 1\nname = 2");
    let error = load::<World>(&text, "w.toml").unwrap_err();
    let places: Vec<_> = error
        .problems()
        .iter()
        .map(|p| (p.line, p.path.as_str()))
        .collect();
    let colour = "links.radio.services[1].scheme.colour";
    assert_eq!(
        places,
        [(2, "name"), (5, "links.radio.dealy"), (16, colour)]
    );
}

#[test]
fn assignments_replace_values_by_path_index_and_name() {
    let mut document = Document::parse(WORLD, "w.toml").unwrap();
    for assignment in [
        "links.radio.rate=64 kbit/s",
        "links.radio.services[0].scheme.window = 7",
        "links.radio.services[voice].scheme = { kind = \"default\" }",
        "links.\"far away\".rate=\"1 Mbit/s\"",
    ] {
        document.set(assignment).unwrap();
    }
    let world: World = document.read().unwrap();
    let radio = &world.links["radio"];
    assert_eq!(radio.rate.as_bps(), 64_000);
    assert_eq!(radio.services[1].scheme, Scheme::Default);
    assert!(matches!(
        radio.services[0].scheme,
        Scheme::SrM2 { window: 7, .. }
    ));
    assert_eq!(world.links["far away"].rate.as_bps(), 1_000_000);
}

#[test]
fn an_assignment_may_reach_several_places() {
    let mut document = Document::parse(WORLD, "w.toml").unwrap();
    document
        .set("links.r*.services[*].scheme={ kind = \"default\" }")
        .unwrap();
    let world: World = document.read().unwrap();
    let services = &world.links["radio"].services;
    assert_eq!(services.len(), 2);
    assert!(
        services
            .iter()
            .all(|service| service.scheme == Scheme::Default)
    );
    let error = document.set("links.*.services[x*].number=1").unwrap_err();
    let shown = "nothing here fits `links.*.services[x*].number`";
    assert!(error.to_string().contains(shown), "{error}");
    let error = {
        document.set("links.radio.services[*].number=16").unwrap();
        document.read::<World>().unwrap_err()
    };
    assert_eq!(error.problems()[0].path, "links.radio.services[0].number");
}

#[test]
fn a_bad_assignment_is_shown_as_it_was_written() {
    let refusal = |assignment: &str| {
        let mut document = Document::parse(WORLD, "w.toml").unwrap();
        let error = document
            .set(assignment)
            .and_then(|()| document.read::<World>().map(|_| ()));
        error.unwrap_err().to_string()
    };
    let error = refusal("links.radio.rate=fast");
    assert!(
        error.starts_with("--set:1:18: \"fast\" is not a rate"),
        "{error}"
    );
    assert!(error.contains("at links.radio.rate"), "{error}");
    let error = refusal("links.radio.rtae = \"1 bit/s\"");
    assert!(
        error.starts_with("--set:1:1: unknown key `rtae`"),
        "{error}"
    );
    let error = refusal("links.radio");
    assert!(
        error.contains("no `=`") && error.contains("KEY=VALUE"),
        "{error}"
    );
    let error = refusal("links.radio.rate.x=1");
    assert!(error.contains("no key `x`: its type is string"), "{error}");
    let error = refusal("links.radio.services.web=1");
    assert!(
        error.contains("an entry is `links.radio.services[0]`"),
        "{error}"
    );
    let error = refusal("links.radio.services[web].number=1");
    assert!(
        error.contains("has 2 elements and none is `[web]`; there are: tcp, voice"),
        "{error}"
    );
    let error = refusal("links.radio.services[1].number=16");
    assert!(
        error.starts_with("--set:1:32: service number 16"),
        "{error}"
    );
}

#[test]
fn an_unknown_entry_in_an_assignment_is_reported_with_the_known_ones() {
    let read = |assignments: &[&str]| {
        let mut document = Document::parse(WORLD, "w.toml").unwrap();
        for assignment in assignments {
            document.set(assignment)?;
        }
        document.read::<World>()
    };
    let absent = "there is no `links.radoi`; there are: radio";
    for misspelt in [
        "links.radoi.delay=1 ms",
        "links.radoi.nonsense=1",
        "links.radoi.services[voice].scheme.retries=1",
    ] {
        let error = read(&[misspelt]).unwrap_err();
        let problem = &error.problems()[0];
        let place = (problem.file.as_str(), problem.line, problem.column);
        assert_eq!(place, ("--set", 1, 1), "{error}");
        assert!(problem.message.starts_with(absent), "{error}");
    }
    let error = read(&["links.radoi.delay=1 ms"]).unwrap_err().to_string();
    assert!(error.contains("at links.radoi.delay\n"), "{error}");
    assert!(error.contains("a new entry has `rate`, too"), "{error}");
    // In any order, and together with others.
    let made = ["links.b.delay=1 ms", "links.b.rate=1 bit/s"];
    assert_eq!(read(&made).unwrap().links.len(), 2);
    let error = read(&[&made[..], &["links.c.delay=1 ms"]].concat()).unwrap_err();
    assert_eq!(error.problems().len(), 1, "{error}");
    assert!(error.to_string().contains("there are: b, radio"), "{error}");
}

#[test]
fn a_document_tells_which_keys_it_has() {
    let document = Document::parse(WORLD, "w.toml").unwrap();
    assert!(document.has("links.radio.services[1].scheme.kind"));
    assert!(!document.has("tun") && !document.has("links.radio.services[2]"));
}

#[test]
fn problems_found_later_point_at_the_deepest_part_that_is_written() {
    let document = Document::parse(WORLD, "w.toml").unwrap();
    let error = document.refuse("links.radio.services[1].scheme.window", "too small", "");
    assert_eq!(error.problems()[0].line, 12);
}

#[test]
fn a_long_line_is_cut_around_the_culprit() {
    let text = WORLD.replace("\"tcp\"", &format!("\"{}\", x = 1", "tcp".repeat(90)));
    let error = load::<World>(&text, "w.toml").unwrap_err().to_string();
    assert!(
        error.lines().all(|line| line.chars().count() < 120),
        "{error}"
    );
    let caret = error
        .lines()
        .position(|l| l.trim_start().starts_with("| ") && l.contains('^'));
    assert!(caret.is_some(), "{error}");
}

/// For any input, the positions reported lie inside the text.
fn check(text: &str, assignment: &str) {
    let document = Document::parse(text, "t").and_then(|mut document| {
        document.set(assignment)?;
        document.read::<World>()
    });
    if let Err(error) = document {
        assert!(!error.problems().is_empty());
        for problem in error.problems() {
            let source = if problem.file == "t" {
                text
            } else {
                assignment
            };
            assert!(problem.line <= source.matches('\n').count() + 1);
            assert!(problem.column <= problem.source.chars().count() + 2);
            assert!(!problem.message.is_empty());
        }
        assert!(!error.to_string().is_empty());
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}", assignment in "\\PC{0,60}") {
        check(&text, &assignment);
    }

    #[test]
    fn any_damage_to_a_good_file_is_read_or_refused(
        at in 0..WORLD.len(), len in 0usize..30, new in "[a-z0-9=.\"\\[\\]{}, \nü\t-]{0,12}",
        key in "[a-z]{1,3}(\\.[a-z]{1,3}|\\[[0-9a-z]\\]){0,4}", value in "[a-z0-9=\"{}.]{0,6}",
    ) {
        let mut text = WORLD.to_owned();
        text.replace_range(at..(at + len).min(WORLD.len()), &new);
        check(&text, "schema=1");
        check(WORLD, &format!("{key}={value}"));
        check(WORLD, &format!("links.radio.{key}={value}"));
    }
}

/// A value that may be a name, or a table whose only key is a name.
#[test]
fn a_choice_is_refused_once_and_where_it_is_wrong() {
    #[derive(Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    enum Tries {
        Off,
        On,
        Limit(std::num::NonZeroU32),
    }
    #[derive(Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Station {
        tries: Tries,
        // Shares its name with a form of `Tries`.
        limit: Option<u8>,
    }
    #[derive(Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "kebab-case")]
    enum Medium {
        Wifi(Station),
    }
    #[derive(Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct File {
        a: Option<Station>,
        b: Option<Station>,
        c: Option<Medium>,
    }
    impl Validate for File {
        fn validate(&self, _: &mut Problems) {}
    }
    let choices = "choices: \"off\", \"on\", { limit = 1 }";
    for (tries, place, help) in [
        ("{ limit = 0 }", ".limit", "write a whole number, 1 or more"),
        (
            "{ limit = '16' }",
            ".limit",
            "write a whole number, 1 or more",
        ),
        (
            "{ limt = 16 }",
            ".limt",
            "did you mean `limit`? choices: off, on, limit",
        ),
        ("'of'", "", "did you mean `off`? choices: off, on, limit"),
        ("'limit'", "", choices),
        ("{}", "", choices),
        ("{ off = 1 }", "", choices),
        ("{ limit = 16, on = 1 }", "", choices),
        ("16", "", choices),
        ("[16]", "", choices),
    ] {
        for (table, kind) in [("a", ""), ("c", "kind = 'wifi'\n")] {
            let text =
                format!("[{table}]\n{kind}tries = {tries}\n[b]\ntries = 'on'\nlimit = 300\n");
            let error = load::<File>(&text, "radio.toml").unwrap_err();
            let shown = error.problems().iter();
            let shown: Vec<_> = shown.map(|p| (p.path.as_str(), p.help.as_str())).collect();
            let here = format!("{table}.tries{place}");
            // Problems elsewhere are reported, too.
            let there = ("b.limit", "write a whole number from 0 to 255");
            assert_eq!(shown, [(here.as_str(), help), there], "{error}");
        }
    }
}
