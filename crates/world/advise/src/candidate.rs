//! The candidates: without Airlane, without repair, the default, the user's file, and trades of one application for
//! another.

use airlane_base::Duration;
use airlane_node::config::LiveConfig;
use serde::{Deserialize, Serialize};
use toml::value::Array;
use toml::{Table, Value};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table as EditedTable, TableLike};

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
    /// What a search found.
    Searched,
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
    /// Other keys of `[link]` to write into a file.
    pub keys: Table,
    /// What the search changed, each in a few words; empty for all others.
    pub changes: Vec<String>,
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
    let one = |kind, live, services| Candidate {
        kind,
        live,
        services,
        keys: Table::new(),
        changes: vec![],
    };
    let plain: Table = plain.parse().expect("a table as it stands above");
    let services = plain["services"].as_array().cloned();
    let mut all = vec![
        one(Kind::Without, None, None),
        one(Kind::NoRepair, Some(of_link(plain)), services),
        one(Kind::Default, Some(of_link(Table::new())), None),
    ];
    if let Some(file) = present {
        all.push(one(Kind::Yours, Some(simulated(file)?), None));
    }
    let base = base_link(present);
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

/// What a live file says of both ends, as in `nodes.NAME.live`.
///
/// # Errors
/// If the file describes no end of a link.
pub fn simulated(file: &Table) -> Result<Table, CandidateError> {
    let link = simulated_link(file);
    whole(&link)?;
    Ok(of_link(link))
}

/// The link that candidates are changes of: that of the user's file, or the default.
pub(crate) fn base_link(present: Option<&Table>) -> Table {
    present.map(simulated_link).unwrap_or_default()
}

pub(crate) fn of_link(link: Table) -> Table {
    Table::from_iter([("link".to_owned(), Value::Table(link))])
}

/// The part of a file's link that is simulated: all but its addresses and keys.
fn simulated_link(file: &Table) -> Table {
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
pub(crate) fn whole(link: &Table) -> Result<LiveConfig, CandidateError> {
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

/// The services of a link, as its file has or could have them.
pub(crate) fn services_of(base: &Table) -> Array {
    match base.get("services").and_then(Value::as_array) {
        Some(services) => services.clone(),
        None => USUAL.iter().map(|usual| usual_service(*usual)).collect(),
    }
}

/// The index of the service with this goal, or with this name and no goal.
pub(crate) fn service_of(services: &Array, goal: &str, name: &str) -> Option<usize> {
    services.iter().position(|service| {
        let text = |key: &str| service.get(key).and_then(Value::as_str);
        text("goal") == Some(goal) || (text("goal").is_none() && text("name") == Some(name))
    })
}

/// The services with a trade applied; none where they have it already, or lack the service in question.
fn traded(base: &Table, kind: Kind) -> Result<Option<Array>, CandidateError> {
    let resolved = whole(base)?.link.services;
    let mut services = services_of(base);
    let (goal, name) = match kind {
        Kind::CallsYounger => ("voice", "calls"),
        _ => ("web", "pages"),
    };
    let at = service_of(&services, goal, name);
    let Some(service) = at.and_then(|at| services[at].as_table_mut()) else {
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

/// The text of a file, changed to a candidate: an edit, so that comments and the order of keys stay.
///
/// # Errors
/// If the text is no live file, or the candidate has none.
pub fn rewritten(text: &str, candidate: &Candidate) -> Result<String, CandidateError> {
    if candidate.kind == Kind::Yours {
        return Ok(text.to_owned());
    }
    let file = text.parse::<DocumentMut>();
    let mut file = file.map_err(|error| CandidateError(error.message().to_owned()))?;
    let Some(link) = file.get_mut("link").and_then(Item::as_table_like_mut) else {
        return Err(CandidateError("the file has no [link]".to_owned()));
    };
    if let Some(services) = &candidate.services {
        change_services(link, services);
    }
    for (key, value) in &candidate.keys {
        link.insert(key, edited(value));
    }
    match (candidate.kind, &candidate.live) {
        // The default is a file without services.
        (Kind::Default, Some(_)) => {
            let all: Vec<String> = link.iter().map(|(key, _)| key.to_owned()).collect();
            for key in all.iter().filter(|key| !KEPT.contains(&key.as_str())) {
                link.remove(key);
            }
        }
        (_, Some(_)) => {}
        (_, None) => {
            return Err(CandidateError(
                "without Airlane there is no file".to_owned(),
            ));
        }
    }
    Ok(file.to_string())
}

/// Changes what differs in the services; those that stay keep their comments.
fn change_services(link: &mut dyn TableLike, services: &Array) {
    match link.get_mut("services") {
        Some(Item::ArrayOfTables(written)) => {
            let number = |table: &EditedTable| table.get("number").and_then(Item::as_integer);
            let wanted = |service: &Value| service.get("number").and_then(Value::as_integer);
            written.retain(|table| services.iter().any(|other| wanted(other) == number(table)));
            for service in services.iter().filter_map(Value::as_table) {
                let meant = service.get("number").and_then(Value::as_integer);
                let at = written.iter().position(|table| number(table) == meant);
                match at.and_then(|at| written.get_mut(at)) {
                    Some(table) => change(table, service),
                    None => written.push(table_of(service)),
                }
            }
        }
        Some(written) => *written = edited(&Value::Array(services.clone())),
        None => {
            let mut tables = ArrayOfTables::new();
            tables.extend(services.iter().filter_map(Value::as_table).map(table_of));
            link.insert("services", Item::ArrayOfTables(tables));
        }
    }
}

fn change(table: &mut EditedTable, to: &Table) {
    table.retain(|key, _| to.contains_key(key));
    for (key, value) in to {
        let new = edited(value);
        let reads = |item: &Item| {
            let text = format!("x = {}", item.clone().into_value().unwrap_or(false.into()));
            text.parse::<Table>().is_ok_and(|read| read["x"] == *value)
        };
        if !table.get(key).is_some_and(reads) {
            table[key] = new;
        }
    }
}

fn table_of(service: &Table) -> EditedTable {
    let mut table = EditedTable::new();
    for (key, value) in service {
        table.insert(key, edited(value));
    }
    table
}

/// The same value on one line.
fn edited(value: &Value) -> Item {
    let value = value.to_string().parse::<toml_edit::Value>();
    Item::Value(value.expect("values have a TOML form"))
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
        // Services that are written out, with comments that stay.
        let text = text.to_owned()
            + "\n# what people wait for\n[[link.services]]\nnumber = 2\nname = \"pages\" # shops\ngoal = \"web\"\n\
               \n[[link.services]]\nnumber = 3\nname = \"calls\"\ngoal = \"voice\" # to the office\nrate = 0.2\n";
        let file: Table = text.parse().unwrap();
        let all = candidates(&Apps::default(), Some(&file)).unwrap();
        let calls = all.iter().find(|c| c.kind == Kind::CallsYounger).unwrap();
        let new = rewritten(&text, calls).unwrap();
        let [old, lines] = [text.as_str(), &new].map(|text| text.lines().collect::<Vec<_>>());
        let more: Vec<&&str> = lines.iter().filter(|line| !old.contains(line)).collect();
        assert_eq!(more, [&"budget = \"150 ms\""], "{new}");
        assert_eq!(lines.len(), old.len() + 1, "{new}");
        for candidate in all.iter().filter(|c| c.services.is_some()) {
            let read: Table = rewritten(&text, candidate).unwrap().parse().unwrap();
            let services = read["link"]["services"].as_array();
            assert_eq!(
                services,
                candidate.services.as_ref(),
                "{:?}",
                candidate.kind
            );
        }
        let bad: Table = "[link]\nservices = 3".parse().unwrap();
        assert!(candidates(&Apps::default(), Some(&bad)).is_err());
    }
}
