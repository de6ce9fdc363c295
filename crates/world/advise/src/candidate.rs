//! The candidates: without Airlane, without repair, the default, the user's file, and trades of one application for
//! another.

use airlane_base::Duration;
use airlane_node::config::LiveConfig;
use serde::{Deserialize, Serialize};
use toml::value::Array;
use toml::{Table, Value};

use crate::apps::{AppKind, Apps};

/// Which candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Packets go onto the link as they are.
    Without,
    /// Airlane with one service that repairs nothing.
    NoRepair,
    /// The shortest file.
    Default,
    /// The user's file.
    Yours,
    /// Every frame of pages is copied.
    PagesCopied,
    /// The same, with copies that are sent later than most bursts last.
    PagesCopiedLate,
    /// Pages have three times their share while the link is contended.
    PagesFirst,
    /// Packets of calls are dropped at half the age.
    CallsYounger,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Which it is.
    pub kind: Kind,
    /// The live file of both ends, as in `nodes.NAME.live`; none without Airlane.
    pub live: Option<Table>,
    /// The services to write into a file, where they differ from the file's.
    pub services: Option<Array>,
}

/// Why a file cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CandidateError(String);

/// The services of a file that lists none: number, name, goal.
const USUAL: [(i64, &str, &str); 6] = [
    (1, "files", "bulk"),
    (2, "pages", "web"),
    (3, "calls", "voice"),
    (4, "interactive", "interactive"),
    (5, "video", "video"),
    (6, "paced", "paced"),
];

/// Keys of `link` that describe the place of this end, or that both ends must agree on.
const KEPT: [&str; 6] = [
    "underlay",
    "security",
    "outer",
    "keepalive",
    "fragment",
    "delay",
];

/// All candidates, each kind once. `present`: the user's file.
///
/// # Errors
/// If the user's file describes no end of a link.
pub fn candidates(apps: &Apps, present: Option<&Table>) -> Result<Vec<Candidate>, CandidateError> {
    let plain = "services = [{ number = 1, name = 'plain', rate = 1.0, scheme = { kind = 'default' } }]\n\
                 classes = [{ match = { protocol = 'tcp' }, service = 'plain' }, { match = { protocol = 'udp' }, service = 'plain' }]";
    let of_link = |link: Table| Table::from_iter([("link".to_owned(), Value::Table(link))]);
    let one = |kind, live, services| Candidate {
        kind,
        live,
        services,
    };
    let plain: Table = plain.parse().expect("a table as it stands above");
    let services = plain["services"].as_array().cloned();
    let mut all = vec![
        one(Kind::Without, None, None),
        one(Kind::NoRepair, Some(of_link(plain)), services),
        one(Kind::Default, Some(of_link(Table::new())), None),
    ];
    let base = match present {
        Some(file) => {
            let link = simulated(file);
            whole(&link)?;
            all.push(one(Kind::Yours, Some(of_link(link.clone())), None));
            link
        }
        None => Table::new(),
    };
    let has = |kind| apps.0.iter().any(|app| app.kind == kind);
    let mut trades = vec![];
    if has(AppKind::Pages) {
        trades.extend([Kind::PagesCopied, Kind::PagesCopiedLate, Kind::PagesFirst]);
    }
    if has(AppKind::Call) {
        trades.push(Kind::CallsYounger);
    }
    for kind in trades {
        if let Some(services) = traded(&base, kind)? {
            let mut link = base.clone();
            link.insert("services".to_owned(), services.clone().into());
            all.push(one(kind, Some(of_link(link)), Some(services)));
        }
    }
    Ok(all)
}

/// The part of a file's link that is simulated: all but its addresses and keys.
fn simulated(file: &Table) -> Table {
    let mut link = file
        .get("link")
        .and_then(Value::as_table)
        .cloned()
        .unwrap_or_default();
    link.remove("underlay");
    // Keys are drawn.
    if link.get("security").is_some_and(Value::is_table) {
        link.remove("security");
    }
    link
}

/// Reads the whole file with this link.
fn whole(link: &Table) -> Result<LiveConfig, CandidateError> {
    let mut link = link.clone();
    let place: Table = "underlay = { kind = 'udp', listen = '0.0.0.0:7007' }\nsecurity = 'none'"
        .parse()
        .expect("a table as it stands here");
    link.extend(place);
    let mut file = Table::new();
    file.insert("schema".to_owned(), 1.into());
    file.insert("tun".to_owned(), Table::new().into());
    file.insert("link".to_owned(), link.into());
    LiveConfig::deserialize(file).map_err(|error| CandidateError(error.message().to_owned()))
}

/// The services with a trade applied; none where they have it already, or lack the service in question.
fn traded(base: &Table, kind: Kind) -> Result<Option<Array>, CandidateError> {
    let resolved = whole(base)?.link.services;
    let mut services: Array = match base.get("services").and_then(Value::as_array) {
        Some(services) => services.clone(),
        None => USUAL.iter().map(|usual| usual_service(*usual)).collect(),
    };
    let (goal, name) = match kind {
        Kind::CallsYounger => ("voice", "calls"),
        _ => ("web", "pages"),
    };
    let is_meant = |service: &&mut Value| {
        let text = |key: &str| service.get(key).and_then(Value::as_str);
        text("goal") == Some(goal) || (text("goal").is_none() && text("name") == Some(name))
    };
    let Some(service) = services
        .iter_mut()
        .find(is_meant)
        .and_then(Value::as_table_mut)
    else {
        return Ok(None);
    };
    let number = service.get("number").and_then(Value::as_integer);
    let resolved = resolved
        .iter()
        .find(|other| Some(i64::from(other.number)) == number);
    let Some(resolved) = resolved.and_then(|resolved| Table::try_from(resolved).ok()) else {
        return Ok(None);
    };
    let before = service.clone();
    match kind {
        Kind::PagesFirst => {
            let rate = resolved
                .get("rate")
                .and_then(Value::as_float)
                .unwrap_or(0.1);
            service.insert("rate".to_owned(), Value::Float(rate * 3.0));
        }
        Kind::CallsYounger => {
            let budget = resolved.get("budget").and_then(Value::as_str);
            let Some(budget) = budget.and_then(|text| text.parse::<Duration>().ok()) else {
                return Ok(None);
            };
            service.insert("budget".to_owned(), (budget / 2).to_string().into());
        }
        _ => {
            let Some(scheme) = resolved.get("scheme").and_then(Value::as_table) else {
                return Ok(None);
            };
            let can = ["sr", "sr-m1", "sr-m2", "rlp", "rlp-oos"];
            let kind_of = scheme.get("kind").and_then(Value::as_str);
            if !kind_of.is_some_and(|kind| can.contains(&kind)) {
                return Ok(None);
            }
            let after = if kind == Kind::PagesCopied {
                "5 ms"
            } else {
                "30 ms"
            };
            let copies = Table::from_iter([
                ("number".to_owned(), Value::Integer(1)),
                ("after".to_owned(), after.into()),
                ("share".to_owned(), Value::Float(0.05)),
            ]);
            let mut scheme = scheme.clone();
            scheme.insert("copies".to_owned(), copies.into());
            service.insert("scheme".to_owned(), scheme.into());
        }
    }
    Ok((*service != before).then_some(services))
}

fn usual_service((number, name, goal): (i64, &str, &str)) -> Value {
    let mut service = Table::new();
    service.insert("number".to_owned(), number.into());
    service.insert("name".to_owned(), name.into());
    service.insert("goal".to_owned(), goal.into());
    service.into()
}

/// The text of a file, changed to a candidate. The rest of the text is kept as it is where possible.
///
/// # Errors
/// If the text is no live file, or the candidate has none.
pub fn rewritten(text: &str, candidate: &Candidate) -> Result<String, CandidateError> {
    let read = |text: &str| {
        let read = text.parse::<Table>();
        read.map_err(|error| CandidateError(error.message().to_owned()))
    };
    let mut file = read(text)?;
    if candidate.kind == Kind::Yours {
        return Ok(text.to_owned());
    }
    let Some(link) = file.get_mut("link").and_then(Value::as_table_mut) else {
        return Err(CandidateError("the file has no [link]".to_owned()));
    };
    let had = link.contains_key("services");
    match (&candidate.services, &candidate.live) {
        (Some(services), _) => {
            link.insert("services".to_owned(), services.clone().into());
        }
        // The default is a file without services.
        (None, Some(_)) => link.retain(|key, _| KEPT.contains(&key)),
        (None, None) => {
            return Err(CandidateError(
                "without Airlane there is no file".to_owned(),
            ));
        }
    }
    if let (Some(services), false) = (&candidate.services, had) {
        let mut longer = text.trim_end().to_owned() + "\n";
        for service in services {
            longer.push_str("\n[[link.services]]\n");
            longer.push_str(&inline(service));
        }
        if read(&longer).is_ok_and(|read| read == file) {
            return Ok(longer);
        }
    }
    toml::to_string(&file).map_err(|error| CandidateError(error.to_string()))
}

/// The keys of a service, a line each.
fn inline(service: &Value) -> String {
    let table = service.as_table().into_iter().flatten();
    table
        .map(|(key, value)| format!("{key} = {value}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_candidate_is_a_file_that_can_be_read() {
        let all = candidates(&Apps::default(), None).unwrap();
        let kinds: Vec<Kind> = all.iter().map(|candidate| candidate.kind).collect();
        assert_eq!(kinds.len(), 7, "{kinds:?}");
        for candidate in &all {
            let link = candidate
                .live
                .as_ref()
                .map(|live| live["link"].as_table().unwrap());
            if let Some(link) = link {
                whole(link).unwrap_or_else(|error| panic!("{:?}: {error}", candidate.kind));
            }
        }
        let calls = all.iter().find(|c| c.kind == Kind::CallsYounger).unwrap();
        let link = calls.live.as_ref().unwrap()["link"].as_table().unwrap();
        let services = whole(link).unwrap().link.services;
        let budget = services.iter().find(|s| s.name == "calls").unwrap().budget;
        assert_eq!(budget, Some(Duration::from_millis(150)));
    }

    #[test]
    fn a_candidate_keeps_the_settings_of_its_file() {
        let text = "schema = 1\ntun = { addresses = [\"10.7.0.1/24\"] }  # ours\n\n[link]\nunderlay = { kind = \"udp\", \
                    listen = \"0.0.0.0:7007\" }\nsecurity = \"none\"\nrate = \"5 Mbit/s\"\n";
        let file: Table = text.parse().unwrap();
        let all = candidates(&Apps::default(), Some(&file)).unwrap();
        for candidate in all.iter().filter(|c| c.live.is_some()) {
            let new = rewritten(text, candidate).unwrap();
            let read: Table = new.parse().unwrap();
            LiveConfig::deserialize(read.clone()).unwrap();
            match candidate.kind {
                Kind::Yours => assert_eq!(new, text),
                Kind::Default => assert!(!new.contains("rate"), "{new}"),
                _ => assert!(new.starts_with(text), "{new}"),
            }
        }
        let bad: Table = "[link]\nservices = 3".parse().unwrap();
        assert!(candidates(&Apps::default(), Some(&bad)).is_err());
    }
}
