//! The qdiscs and classes of one interface, as `tc` keeps them: by handle, each below a class or a qdisc.

use std::collections::BTreeMap;

use super::shaper::{Shaper, Shares};
use crate::import::words::{ImportError, Word, Words};

/// A qdisc (`1:`) or a class (`1:10`): two numbers of 16 bits, hexadecimal.
pub(super) type Handle = [u16; 2];

/// Reads a handle.
pub(super) fn handle(word: &Word) -> Result<Handle, ImportError> {
    let (major, minor) = word.text.split_once(':').unwrap_or((&word.text, ""));
    let part = |text: &str| match text {
        "" => Some(0),
        text => u16::from_str_radix(text.trim_start_matches("0x"), 16).ok(),
    };
    let both = part(major).zip(part(minor)).filter(|_| word.text != ":");
    let (major, minor) =
        both.ok_or_else(|| word.unknown("a handle, such as \"1:\" or \"1:10\""))?;
    Ok([major, minor])
}

/// A handle as `tc` writes it.
pub(super) fn shown([major, minor]: Handle) -> String {
    match minor {
        0 => format!("{major:x}:"),
        _ => format!("{major:x}:{minor:x}"),
    }
}

/// The first handle that the kernel assigns itself.
const OWN_HANDLES: u16 = 0x8001;

/// A qdisc.
#[derive(Clone, Debug)]
pub(super) struct Qdisc {
    /// The word that named it.
    pub(super) word: Word,
    /// None for the root.
    parent: Option<Handle>,
    pub(super) shaper: Shaper,
}

/// A class.
#[derive(Clone, Debug)]
pub(super) struct Class {
    kind: String,
    parent: Handle,
    shares: Shares,
}

/// The qdiscs and classes of an interface.
#[derive(Clone, Debug, Default)]
pub(super) struct Device {
    qdiscs: BTreeMap<u16, Qdisc>,
    classes: BTreeMap<Handle, Class>,
    /// Classes that filters send all packets to.
    everything: Vec<Handle>,
    other_filters: bool,
}

/// The operations on a qdisc or class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Add,
    Replace,
    Change,
    /// It is listed as existing.
    Is,
}

/// A step of a path through the tree, from the top.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    Qdisc(&'a Qdisc),
    Class(&'a str, Shares),
}

/// A path through the tree, and the names that select it, the last one first.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf<'a> {
    pub(super) names: Vec<Handle>,
    pub(super) steps: Vec<Step<'a>>,
}

impl Leaf<'_> {
    pub(super) fn name(&self) -> String {
        // A qdisc below a class is named after the class.
        let class = self.names.iter().find(|[_, minor]| *minor > 0);
        class
            .or(self.names.first())
            .map_or_else(String::new, |name| shown(*name))
    }

    /// The word that named the qdisc at its top.
    pub(super) fn root(&self) -> Option<&Word> {
        self.steps.iter().find_map(|step| match step {
            Step::Qdisc(qdisc) => Some(&qdisc.word),
            Step::Class(..) => None,
        })
    }

    pub(super) fn shapes(&self) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Qdisc(qdisc) => qdisc.shaper.shapes(),
            Step::Class(_, shares) => shares.sure.or(shares.most).is_some(),
        })
    }
}

impl Device {
    fn at(&self, parent: Option<Handle>) -> Option<u16> {
        let found = self.qdiscs.iter().find(|(_, qdisc)| {
            let same = |own: Handle| {
                parent.is_some_and(|parent| {
                    parent[0] == own[0] && self.place(parent) == self.place(own)
                })
            };
            match qdisc.parent {
                None => parent.is_none(),
                Some(own) => same(own),
            }
        });
        found.map(|(major, _)| *major)
    }

    /// A classless qdisc has a single place for a child, whatever minor number is used.
    fn place(&self, [major, minor]: Handle) -> Handle {
        match self.qdiscs.get(&major).map(|qdisc| &qdisc.shaper) {
            Some(Shaper::Netem(_) | Shaper::Queue { .. }) => [major, 0],
            _ => [major, minor],
        }
    }

    /// Carries out `tc qdisc`; returns tc's error if it would refuse.
    pub(super) fn qdisc(
        &mut self,
        verb: Verb,
        parent: Option<Handle>,
        own: Option<u16>,
        word: &Word,
        options: Words<'_>,
    ) -> Result<Result<(), String>, ImportError> {
        let there = self.at(parent);
        let same_kind = there.is_some_and(|at| self.qdiscs[&at].word.text == word.text);
        let same_handle = own.is_none() || own == there;
        let changes = match verb {
            Verb::Add if there.is_some() => {
                return Ok(Err(
                    "there is a qdisc already, which add does not touch".to_owned()
                ));
            }
            Verb::Change if there.is_none() => {
                return Ok(Err("there is no qdisc to change".to_owned()));
            }
            Verb::Change if !same_kind || !same_handle => {
                return Ok(Err("the qdisc that is there is another one".to_owned()));
            }
            Verb::Change => true,
            Verb::Replace => same_kind && same_handle,
            Verb::Add | Verb::Is => false,
        };
        let before = there.filter(|_| changes).map(|at| &self.qdiscs[&at].shaper);
        let shaper = Shaper::new(word, options, before)?;
        let major = match there {
            Some(at) if changes => at,
            there => {
                if let Some(at) = there {
                    self.remove(at);
                }
                let free =
                    || (OWN_HANDLES..u16::MAX).find(|major| !self.qdiscs.contains_key(major));
                let Some(major) = own.filter(|major| *major > 0).or_else(free) else {
                    return Ok(Err("there are too many qdiscs".to_owned()));
                };
                major
            }
        };
        let parent = match there {
            Some(at) if changes => self.qdiscs[&at].parent,
            _ => parent,
        };
        let word = word.clone();
        self.qdiscs.insert(
            major,
            Qdisc {
                word,
                parent,
                shaper,
            },
        );
        Ok(Ok(()))
    }

    /// Carries out `tc class`.
    pub(super) fn class(
        &mut self,
        verb: Verb,
        parent: Handle,
        own: Handle,
        word: &Word,
        options: Words<'_>,
    ) -> Result<Result<(), String>, ImportError> {
        let before = self.classes.get(&own);
        match (verb, before) {
            (Verb::Add, Some(_)) => {
                return Ok(Err(format!("there is a class {} already", shown(own))));
            }
            (Verb::Change, None) => return Ok(Err(format!("there is no class {}", shown(own)))),
            _ => {}
        }
        let shares = Shares::new(word, options, before.map(|class| &class.shares))?;
        let parent = before.map_or(parent, |before| before.parent);
        let kind = word.text.clone();
        self.classes.insert(
            own,
            Class {
                kind,
                parent,
                shares,
            },
        );
        Ok(Ok(()))
    }

    /// Removes the qdisc at a place, with everything below it. Returns whether there was one.
    pub(super) fn delete(&mut self, parent: Option<Handle>, own: Option<u16>) -> bool {
        let at = match (parent, own) {
            (None, Some(own)) => Some(own).filter(|own| self.qdiscs.contains_key(own)),
            _ => self.at(parent),
        };
        at.inspect(|at| self.remove(*at)).is_some()
    }

    /// Removes a class and the qdisc below it. Returns whether there was one.
    pub(super) fn delete_class(&mut self, own: Handle) -> bool {
        if let Some(below) = self.at(Some(own)) {
            self.remove(below);
        }
        self.classes.remove(&own).is_some()
    }

    fn remove(&mut self, major: u16) {
        let mut gone = vec![major];
        while let Some(major) = gone.pop() {
            self.qdiscs.remove(&major);
            self.classes.retain(|own, _| own[0] != major);
            let below = self
                .qdiscs
                .iter()
                .filter(|(_, q)| q.parent.is_some_and(|p| p[0] == major));
            gone.extend(below.map(|(major, _)| *major));
            self.everything.retain(|class| class[0] != major);
        }
        if self.qdiscs.is_empty() {
            self.other_filters = false;
        }
    }

    /// Records a filter that sends all packets, or some, to a class.
    pub(super) fn filter(&mut self, everything: Option<Handle>) {
        match everything {
            Some(class) => self.everything.push(class),
            None => self.other_filters = true,
        }
    }

    /// Whether it has qdiscs, none of which shapes anything.
    pub(super) fn is_idle(&self) -> bool {
        !self.qdiscs.is_empty() && self.leaves().is_empty()
    }

    /// Whether it has a qdisc of this handle.
    pub(super) fn has(&self, major: u16) -> bool {
        self.qdiscs.contains_key(&major)
    }

    /// All paths through the tree that shape something; only those that all packets take, if these are known.
    pub(super) fn leaves(&self) -> Vec<Leaf<'_>> {
        let mut leaves = vec![];
        for (major, qdisc) in &self.qdiscs {
            let known =
                |parent: Handle| parent[0] != *major && self.qdiscs.contains_key(&parent[0]);
            if !qdisc.parent.is_some_and(known) {
                self.below_qdisc(*major, Leaf::default(), &mut leaves);
            }
        }
        leaves.retain(Leaf::shapes);
        if let ([class], false) = (self.everything.as_slice(), self.other_filters)
            && leaves.iter().any(|leaf| leaf.names.contains(class))
        {
            leaves.retain(|leaf| leaf.names.contains(class));
        }
        leaves
    }

    fn below_qdisc<'a>(&'a self, major: u16, mut leaf: Leaf<'a>, leaves: &mut Vec<Leaf<'a>>) {
        let qdisc = &self.qdiscs[&major];
        // Stops at loops.
        if leaf.names.contains(&[major, 0]) || leaf.steps.len() > 64 {
            return;
        }
        leaf.names.insert(0, [major, 0]);
        leaf.steps.push(Step::Qdisc(qdisc));
        let before = leaves.len();
        for (own, class) in &self.classes {
            let above = class.parent;
            let top = above[1] == 0 || !self.classes.contains_key(&above) || above == *own;
            if own[0] == major && top {
                self.below_class(*own, leaf.clone(), leaves);
            }
        }
        // Children in bands, and the single child of a classless qdisc.
        for (below, child) in &self.qdiscs {
            let Some(parent) = child.parent.filter(|parent| parent[0] == major) else {
                continue;
            };
            if !self.classes.contains_key(&parent) && *below != major {
                let mut leaf = leaf.clone();
                if matches!(qdisc.shaper, Shaper::Shared | Shaper::Plain) {
                    leaf.names.insert(0, parent);
                }
                self.below_qdisc(*below, leaf, leaves);
            }
        }
        if leaves.len() == before {
            leaves.push(leaf);
        }
    }

    fn below_class<'a>(&'a self, own: Handle, mut leaf: Leaf<'a>, leaves: &mut Vec<Leaf<'a>>) {
        let class = &self.classes[&own];
        if leaf.names.contains(&own) || leaf.steps.len() > 64 {
            return;
        }
        leaf.names.insert(0, own);
        leaf.steps.push(Step::Class(&class.kind, class.shares));
        let below = self.classes.iter().filter(|(_, below)| below.parent == own);
        let mut is_leaf = true;
        for (below, _) in below.filter(|(below, _)| **below != own) {
            is_leaf = false;
            self.below_class(*below, leaf.clone(), leaves);
        }
        if is_leaf {
            match self.at(Some(own)) {
                Some(qdisc) => self.below_qdisc(qdisc, leaf, leaves),
                None => leaves.push(leaf),
            }
        }
    }

    /// Whether its root only spreads packets over identical queues.
    pub(super) fn is_spread(&self) -> bool {
        let root = self.at(None).map(|at| self.qdiscs[&at].word.text.as_str());
        matches!(root, Some("mq" | "mqprio" | "multiq"))
    }
}
