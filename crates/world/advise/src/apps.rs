//! The applications on the link: `file,pages,call*3`.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use toml::{Table, Value};

use crate::BadWord;

/// What an application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AppKind {
    /// An endless file from the first end to the second.
    File,
    /// An endless file from the second end to the first.
    Upload,
    /// Pages of 20 kB to the second end, one after the other.
    Pages,
    /// A call both ways.
    Call,
}

/// A number of applications of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct App {
    /// What each does.
    pub kind: AppKind,
    /// Whether the sender uses BBR in place of CUBIC.
    pub bbr: bool,
    /// How many there are.
    pub count: u32,
}

/// All applications, each kind once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apps(pub Vec<App>);

const WORDS: &str = "write some of file, upload, pages and call, with :bbr after a sender that uses it and *N for N of them: \
     file:bbr,pages,call*3";
/// Maximum number of applications of a kind.
const MOST: u32 = 100;

impl AppKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::File, Self::Upload, Self::Pages, Self::Call];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Upload => "upload",
            Self::Pages => "pages",
            Self::Call => "call",
        }
    }
}

impl App {
    /// Its name, which its flows have as well.
    pub fn name(&self) -> String {
        let name = self.kind.name();
        match self.bbr {
            true => format!("{name}-bbr"),
            false => name.to_owned(),
        }
    }

    /// Its flows between two nodes of a scenario.
    pub(crate) fn flows(&self, near: &str, far: &str, start: &str) -> Vec<Value> {
        let (to_far, to_near) = ([near, far], [far, near]);
        let mut flows = vec![];
        for number in 1..=self.count {
            let name = |way: &str| format!("{}{way}-{number}", self.name());
            match self.kind {
                AppKind::File => flows.push(self.tcp(name(""), to_far, start, BULK)),
                AppKind::Upload => flows.push(self.tcp(name(""), to_near, start, BULK)),
                AppKind::Pages => flows.push(self.tcp(name(""), to_near, start, PAGES)),
                AppKind::Call => {
                    flows.push(flow(name("-down"), to_far, start, UDP, CALL));
                    flows.push(flow(name("-up"), to_near, start, UDP, CALL));
                }
            }
        }
        flows
    }

    fn tcp(&self, name: String, ends: [&str; 2], start: &str, app: &str) -> Value {
        flow(name, ends, start, if self.bbr { BBR } else { CUBIC }, app)
    }
}

const BULK: &str = "kind = 'bulk'";
const PAGES: &str = "kind = 'pages'\nrequest = '100 B'\nreply = '20 kB'\npause = '100 ms'";
const CALL: &str =
    "kind = 'conferencing'\npacket = '160 B'\nrate = '64 kbit/s'\ntalk = '1000 s'\nsilence = '0 s'";
const UDP: &str = "kind = 'udp'";
const CUBIC: &str = "kind = 'tcp'\nprofile = 'modern'\npacing = false";
const BBR: &str = "kind = 'tcp'\nprofile = 'modern'\ncongestion = 'bbr'";

fn flow(name: String, ends: [&str; 2], start: &str, transport: &str, app: &str) -> Value {
    let table = |text: &str| Value::Table(text.parse().expect("a table as it stands above"));
    let mut flow = Table::new();
    flow.insert("name".to_owned(), name.into());
    flow.insert("ends".to_owned(), ends.map(Value::from).to_vec().into());
    flow.insert("start".to_owned(), start.into());
    flow.insert("transport".to_owned(), table(transport));
    flow.insert("app".to_owned(), table(app));
    flow.into()
}

impl Default for Apps {
    /// A file, pages and a call.
    fn default() -> Self {
        let one = |kind| App {
            kind,
            bbr: false,
            count: 1,
        };
        Self(
            [AppKind::File, AppKind::Pages, AppKind::Call]
                .map(one)
                .to_vec(),
        )
    }
}

impl Apps {
    /// The same applications with senders that use BBR.
    pub(crate) fn with_bbr(&self) -> Self {
        let apps = self.0.iter().map(|app| App {
            bbr: app.kind != AppKind::Call,
            ..*app
        });
        Self(apps.collect())
    }

    /// The same with another number of one kind.
    pub(crate) fn with(&self, kind: AppKind, count: u32) -> Self {
        let mut apps = self.0.clone();
        match apps.iter_mut().find(|app| app.kind == kind) {
            Some(app) => app.count = count,
            None => apps.push(App {
                kind,
                bbr: false,
                count,
            }),
        }
        Self(apps)
    }
}

impl FromStr for Apps {
    type Err = BadWord;
    fn from_str(text: &str) -> Result<Self, BadWord> {
        let mut apps: Vec<App> = vec![];
        for word in text.split(',').map(str::trim) {
            let (what, count) = match word.split_once('*') {
                Some((what, count)) => (what.trim(), count.trim().parse().ok()),
                None => (word, Some(1)),
            };
            let (name, bbr) = match what.split_once(':') {
                Some((name, "bbr")) => (name, true),
                Some((name, "cubic")) => (name, false),
                Some(_) => return Err(BadWord::new(word, WORDS)),
                None => (what, false),
            };
            let kind = AppKind::ALL.into_iter().find(|kind| kind.name() == name);
            let kind = kind.ok_or_else(|| BadWord::new(word, WORDS))?;
            let count = count.filter(|count| (1..=MOST).contains(count));
            let count =
                count.ok_or_else(|| BadWord::new(word, format!("1 to {MOST} of a kind")))?;
            if kind == AppKind::Call && bbr {
                return Err(BadWord::new(
                    word,
                    "a call's packets go over UDP, without BBR",
                ));
            }
            if apps.iter().any(|app| (app.kind, app.bbr) == (kind, bbr)) {
                return Err(BadWord::new(
                    word,
                    "it is listed twice; write *N for N of them",
                ));
            }
            apps.push(App { kind, bbr, count });
        }
        Ok(Self(apps))
    }
}

/// As it is read.
impl fmt::Display for Apps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, app) in self.0.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let sender = if app.bbr { ":bbr" } else { "" };
            write!(f, "{comma}{}{sender}", app.kind.name())?;
            if app.count > 1 {
                write!(f, "*{}", app.count)?;
            }
        }
        Ok(())
    }
}

impl Serialize for Apps {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written() {
        for text in [
            "file,pages,call",
            "file:bbr,call*3",
            "upload,file,file:bbr*2",
        ] {
            assert_eq!(text.parse::<Apps>().unwrap().to_string(), text);
        }
        assert_eq!(Apps::default().to_string(), "file,pages,call");
        for (text, part) in [
            ("files", "file, upload"),
            ("call:bbr", "UDP"),
            ("file,file", "twice"),
            ("call*0", "1 to 100"),
            ("file:reno", "file, upload"),
            ("", "file, upload"),
        ] {
            let said = text.parse::<Apps>().unwrap_err().to_string();
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
