//! What a search may change in a file: settings of the services that the applications use, how their packets share
//! frames, and the rate.
//!
//! Settings are those that a user may write. A value that only a test would want, such as a window too small for the
//! link, is not among them.

use airlane_base::{Duration, Rng};
use airlane_channel::LinkRate;
use toml::value::Array;
use toml::{Table, Value};

use crate::apps::{App, AppKind, Apps};
use crate::candidate::{Candidate, CandidateError, Kind, of_link, service_of, services_of, whole};
use crate::link::{Assumption, Link};

/// Most settings that are changed at once, so that a reader of the advice can see what each is for.
const MOST_CHANGES: usize = 4;

/// The table that a setting is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Link,
    /// Of the service at this index.
    Service(usize),
    /// Its scheme.
    Scheme(usize),
}

/// A setting: keys with their values, or without one where the key is removed.
#[derive(Clone, Debug)]
struct Setting {
    said: String,
    keys: Vec<(&'static str, Option<Value>)>,
}

/// Settings that exclude each other.
#[derive(Clone, Debug)]
struct Knob {
    place: Place,
    settings: Vec<Setting>,
}

/// Which setting of each knob is taken; 0 is what the file has.
pub(crate) type Draw = Vec<usize>;

/// All that a search may change in a file.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    link: Table,
    services: Array,
    schemes: Vec<Table>,
    knobs: Vec<Knob>,
}

impl Space {
    /// The settings that matter to these applications; `base` is the file's link.
    ///
    /// # Errors
    /// If the file describes no end of a link.
    pub(crate) fn of(apps: &Apps, base: &Table, radio: &Link) -> Result<Self, CandidateError> {
        let resolved = whole(base)?;
        let services = services_of(base);
        let of = |service: &Value, key: &str| {
            let number = service.get("number").and_then(Value::as_integer)?;
            let mut all = resolved.link.services.iter();
            let found = all.find(|other| i64::from(other.number) == number)?;
            Table::try_from(found).ok()?.get(key).cloned()
        };
        let schemes = services.iter().map(|service| {
            let scheme = of(service, "scheme");
            scheme
                .and_then(|scheme| scheme.as_table().cloned())
                .unwrap_or_default()
        });
        let mut space = Self {
            link: base.clone(),
            schemes: schemes.collect(),
            knobs: vec![],
            services: services.clone(),
        };
        space.rate(radio);
        let has = |wanted: &dyn Fn(&App) -> bool| apps.0.iter().any(wanted);
        let file = |app: &App| matches!(app.kind, AppKind::File | AppKind::Upload);
        let uses = [
            ("web", "pages", has(&|app| app.kind == AppKind::Pages)),
            ("voice", "calls", has(&|app| app.kind == AppKind::Call)),
            ("bulk", "files", has(&|app| file(app) && !app.bbr)),
            ("paced", "paced", has(&|app| file(app) && app.bbr)),
        ];
        for (goal, name, used) in uses {
            let at = service_of(&services, goal, name).filter(|_| used);
            let Some(at) = at else { continue };
            let own = services[at].get("name").and_then(Value::as_str);
            let name = own.unwrap_or(name).to_owned();
            let share = of(&services[at], "rate").and_then(|rate| rate.as_float());
            let budget = of(&services[at], "budget");
            let budget = budget.and_then(|budget| budget.as_str()?.parse().ok());
            space.service(at, goal, &name, share, budget);
        }
        Ok(space)
    }

    fn knob(&mut self, place: Place, settings: Vec<Setting>) {
        if !settings.is_empty() {
            self.knobs.push(Knob { place, settings });
        }
    }

    /// A rate in place of the one that the nodes find, where the recording shows one that both directions keep.
    fn rate(&mut self, radio: &Link) {
        let assumed = radio
            .assumed
            .iter()
            .any(|of| matches!(of, Assumption::Rate { .. }));
        let [LinkRate::Constant(out), LinkRate::Constant(back)] = &radio.rates else {
            return;
        };
        let alike = out.as_bps().abs_diff(back.as_bps()) * 20 <= out.as_bps();
        let given = self
            .link
            .get("rate")
            .is_some_and(|rate| rate.as_str() != Some("auto"));
        if assumed || !alike || given {
            return;
        }
        let least = *out.min(back);
        let part = |percent: u64| {
            // Whole kilobits per second: further digits were not measured.
            let text = format!("{} kbit/s", (least.as_bps() * percent / 100_000).max(1));
            Setting {
                said: format!("rate = {text:?}"),
                keys: vec![("rate", Some(text.into()))],
            }
        };
        self.knob(Place::Link, [90, 95, 98].map(part).to_vec());
    }

    fn service(
        &mut self,
        at: usize,
        goal: &str,
        name: &str,
        share: Option<f64>,
        budget: Option<Duration>,
    ) {
        let set = |key: &'static str, value: Value| Setting {
            said: format!("{name}: {key} = {value}"),
            keys: vec![(key, Some(value))],
        };
        let removed = |key: &'static str| Setting {
            said: format!("{name}: without {key}"),
            keys: vec![(key, None)],
        };
        let inline = |text: &str| text.parse::<Table>().map(Value::from).expect("a table");
        if let Some(share) = share {
            let rates = [0.5, 2.0, 4.0].map(|times| set("rate", Value::Float(share * times)));
            self.knob(Place::Service(at), rates.to_vec());
        }
        if let Some(budget) = budget {
            let budgets = [2, 4].map(|part| set("budget", (budget / part).to_string().into()));
            self.knob(Place::Service(at), budgets.to_vec());
        }
        let aggregate = |largest: &str, wait: &str| {
            set(
                "aggregate",
                inline(&format!("largest = {largest:?}\nwait = {wait:?}")),
            )
        };
        let mut packing = vec![set("aggregate", "off".into())];
        match goal {
            "voice" => packing.push(aggregate("256 B", "5 ms")),
            _ => packing.push(aggregate("700 B", "0 s")),
        }
        self.knob(Place::Service(at), packing);
        if matches!(goal, "bulk" | "paced") {
            let queue = |target: &str, interval: &str| {
                let text =
                    format!("kind = 'fq-codel'\ntarget = {target:?}\ninterval = {interval:?}");
                set("queue", inline(&text))
            };
            let queues = vec![queue("20 ms", "100 ms"), queue("50 ms", "250 ms")];
            self.knob(Place::Service(at), queues);
        }
        let scheme = self.schemes[at].clone();
        let kind = scheme.get("kind").and_then(Value::as_str).unwrap_or("");
        let repeats = matches!(kind, "sr" | "sr-m1" | "sr-m2");
        if !repeats && !matches!(kind, "rlp" | "rlp-oos") {
            return;
        }
        let copies = |number: i64, after: &str, share: f64| {
            let mut text = format!("number = {number}\nafter = {after:?}\nshare = {share:?}");
            // Copies of whole segments would take the room that the file itself could have.
            if matches!(goal, "bulk" | "paced") {
                text.push_str("\nlongest = '200 B'");
            }
            set("copies", inline(&text))
        };
        let mut all = match goal {
            "bulk" | "paced" => vec![copies(1, "20 ms", 0.05)],
            "voice" => vec![
                copies(1, "5 ms", 0.05),
                copies(1, "20 ms", 0.05),
                copies(2, "10 ms", 0.1),
            ],
            _ => vec![
                copies(1, "5 ms", 0.05),
                copies(1, "30 ms", 0.05),
                copies(2, "10 ms", 0.1),
            ],
        };
        if scheme.contains_key("copies") {
            all.push(removed("copies"));
        }
        self.knob(Place::Scheme(at), all);
        let scheme = |key: &'static str, values: &[Value]| {
            let new = values.iter().filter(|value| scheme.get(key) != Some(value));
            new.map(|value| set(key, value.clone())).collect::<Vec<_>>()
        };
        match repeats {
            true => {
                let dejitter = scheme("dejitter", &[true.into(), false.into()]);
                let order = scheme("order", &["all".into(), "flow".into()]);
                let keepalives = scheme("keepalives", &[2.into(), 16.into()]);
                for settings in [dejitter, order, keepalives] {
                    self.knob(Place::Scheme(at), settings);
                }
            }
            false => {
                let retries = scheme("retries", &[1.into(), 3.into(), 12.into()]);
                self.knob(Place::Scheme(at), retries);
            }
        }
    }

    /// Every setting by itself, and then settings together, drawn; at most `number`, all different, and none that the
    /// file could not have.
    pub(crate) fn draws(&self, number: usize, random: &mut Rng) -> Vec<Draw> {
        let none: Draw = vec![0; self.knobs.len()];
        let mut all: Vec<Draw> = vec![];
        for (at, knob) in self.knobs.iter().enumerate() {
            for setting in 1..=knob.settings.len() {
                let mut draw = none.clone();
                draw[at] = setting;
                all.push(draw);
            }
        }
        // Few knobs have fewer combinations than are asked for.
        for _ in 0..number * 20 {
            if self.knobs.len() < 2 || all.len() >= number {
                break;
            }
            let below = |most: usize, random: &mut Rng| (random.uniform() * most as f64) as usize;
            let changes = 2 + below(MOST_CHANGES.min(self.knobs.len()) - 1, random);
            let mut draw = none.clone();
            while draw.iter().filter(|setting| **setting > 0).count() < changes {
                let at = below(self.knobs.len(), random);
                draw[at] = 1 + below(self.knobs[at].settings.len(), random);
            }
            if !all.contains(&draw) {
                all.push(draw);
            }
        }
        all.retain(|draw| whole(&self.written(draw).0).is_ok());
        all.truncate(number);
        all
    }

    /// The link with these settings, and which keys of it were changed beside the services.
    fn written(&self, draw: &Draw) -> (Table, Table) {
        let (mut link, mut keys) = (self.link.clone(), Table::new());
        let mut services = self.services.clone();
        let change = |table: &mut Table, setting: &Setting| {
            for (key, value) in &setting.keys {
                match value {
                    Some(value) => table.insert((*key).to_owned(), value.clone()),
                    None => table.remove(*key),
                };
            }
        };
        for (knob, setting) in self.knobs.iter().zip(draw) {
            let Some(setting) = setting.checked_sub(1).map(|at| &knob.settings[at]) else {
                continue;
            };
            match knob.place {
                Place::Link => change(&mut keys, setting),
                Place::Service(at) | Place::Scheme(at) => {
                    let Some(service) = services[at].as_table_mut() else {
                        continue;
                    };
                    if knob.place == Place::Service(at) {
                        change(service, setting);
                        continue;
                    }
                    let usual = || Value::Table(self.schemes[at].clone());
                    let scheme = service.entry("scheme").or_insert_with(usual);
                    if let Some(scheme) = scheme.as_table_mut() {
                        change(scheme, setting);
                    }
                }
            }
        }
        link.extend(keys.clone());
        if services != self.services {
            link.insert("services".to_owned(), services.into());
        }
        (link, keys)
    }

    /// The candidate with these settings.
    pub(crate) fn candidate(&self, draw: &Draw) -> Candidate {
        let (link, keys) = self.written(draw);
        let services = link.get("services").and_then(Value::as_array).cloned();
        let said = self.knobs.iter().zip(draw).filter_map(|(knob, setting)| {
            let setting = &knob.settings[setting.checked_sub(1)?];
            Some(setting.said.clone())
        });
        Candidate {
            kind: Kind::Searched,
            services: services.filter(|services| *services != self.services),
            keys,
            changes: said.collect(),
            live: Some(of_link(link)),
        }
    }
}

#[cfg(test)]
mod tests {
    use airlane_base::Streams;

    use super::*;

    fn radio() -> Link {
        let rate = LinkRate::Constant("20 Mbit/s".parse().unwrap());
        Link {
            rates: [rate.clone(), rate],
            delay: Duration::from_millis(25),
            queues: [airlane_base::Size::from_bytes(100_000); 2],
            errors: [(); 2].map(|()| airlane_channel::ErrorModelConfig::None),
            lengths: [None; 2],
            assumed: vec![],
        }
    }

    #[test]
    fn draws_differ_are_files_and_say_what_they_change() {
        let space = Space::of(&Apps::default(), &Table::new(), &radio()).unwrap();
        let draws = |seed| space.draws(200, &mut Streams::new(seed, 0).stream("search"));
        let all = draws(1);
        assert_eq!(all.len(), 200);
        assert_eq!(all, draws(1));
        assert_ne!(all, draws(2));
        for draw in &all {
            let candidate = space.candidate(draw);
            let changed = draw.iter().filter(|setting| **setting > 0).count();
            assert!((1..=MOST_CHANGES).contains(&changed));
            assert_eq!(candidate.changes.len(), changed);
            assert!(candidate.services.is_some() || !candidate.keys.is_empty());
            let link = candidate.live.unwrap()["link"].as_table().cloned().unwrap();
            whole(&link).unwrap();
            assert_ne!(link, Table::new());
        }
        let set: std::collections::BTreeSet<_> = all.into_iter().collect();
        assert_eq!(set.len(), 200, "two draws are the same");
    }

    #[test]
    fn a_rate_is_tried_only_where_one_was_seen() {
        let rates = |radio: &Link, base: &str| {
            let base: Table = base.parse().unwrap();
            let space = Space::of(&"file".parse().unwrap(), &base, radio).unwrap();
            let of_link = space.knobs.iter().filter(|knob| knob.place == Place::Link);
            of_link.count()
        };
        assert_eq!(rates(&radio(), ""), 1);
        assert_eq!(rates(&radio(), "rate = '5 Mbit/s'"), 0);
        let assumed = Link {
            assumed: vec![Assumption::Rate {
                way: None,
                rate: "20 Mbit/s".parse().unwrap(),
            }],
            ..radio()
        };
        assert_eq!(rates(&assumed, ""), 0);
    }
}
