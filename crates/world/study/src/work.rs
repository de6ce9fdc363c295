//! A work: a folder with one file for each figure or table, and what these share.
//!
//! | file | holds |
//! |---|---|
//! | `work.toml` | title, repetitions, seed, names for people, the work whose parts it has |
//! | `ids.txt` | the id of every claim that some study must judge, one a line |
//! | `parts/*.toml` | pieces of scenarios that studies put together |
//! | `alternatives.toml` | other choices where the work is silent |
//! | `notes.toml` | why a claim misses, by its id |
//! | every other `*.toml` | a study; its id is the file's name |

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;

use airlane_base::config::{self, Validate};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::claim::contradiction::contradictions;
use crate::error::StudyError;
use crate::shipped::{Files, STUDIES};
use crate::study::{Part, Study, StudyFile};
use crate::verdict::print::Print;

/// A work and all of its studies.
#[derive(Clone, Debug)]
pub struct Work {
    /// The folder's name.
    pub id: String,
    /// The title names the publication.
    pub title: String,
    /// Repetitions of each scenario.
    pub runs: u64,
    /// Seed of all random streams.
    pub seed: u64,
    /// In the order of their numbers.
    pub studies: Vec<Study>,
    /// Other choices where the work does not specify one, by name.
    pub alternatives: BTreeMap<String, Alternative>,
    /// Notes on claims that are near or missed, by claim id.
    pub notes: BTreeMap<String, Note>,
    /// The summary for the page over several works, in Markdown.
    pub front: Option<String>,
    /// The studies with the most telling pictures.
    pub pictures: Vec<String>,
    /// The id of every claim that a study must judge.
    pub ids: Vec<String>,
    /// The work in a sibling folder whose parts and labels it shares.
    pub parts_of: Option<String>,
}

/// Another choice where a work is silent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    /// What is different.
    pub title: String,
    /// Assignments that make it so, on top of every scenario.
    pub set: Vec<String>,
}

/// Why a claim is near or misses.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// Where it lies.
    pub cause: Cause,
    /// What is known of it, in Markdown; the first sentence stands on the page.
    pub text: String,
}

/// Where it lies that a claim does not come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A fault or a simplification here.
    Ours,
    /// The work does not say what decides it.
    Silent,
    /// Its own numbers, sentences or model say otherwise.
    Source,
    /// What is printed is one run, or drawn.
    Print,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ours, Self::Silent, Self::Source, Self::Print];

    /// The cause as a heading.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Ours => "Ours: a fault or a simplification here",
            Self::Silent => "Silent: the work does not say what decides it",
            Self::Source => "Source: its own numbers, sentences or model say otherwise",
            Self::Print => "Print: what is printed is one run, or drawn",
        }
    }
}

/// The file of a work.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct WorkFile {
    /// It names the publication.
    #[schemars(example = &"G. Xylomenos, Multi Service Link Layers, 1999")]
    title: String,
    /// How often each scenario is repeated.
    #[schemars(example = 30)]
    runs: u64,
    /// The page over several works says this, in Markdown: what was rebuilt, what comes out, what does not.
    #[serde(default)]
    front: Option<String>,
    /// The page over several works shows the pictures of these studies.
    #[serde(default)]
    pictures: Vec<String>,
    /// All random streams are seeded with this.
    #[serde(default = "one")]
    seed: u64,
    /// Assignments in every scenario of its studies, before their own.
    #[serde(default)]
    set: Vec<String>,
    /// Its results are printed as `numbers` or as `curves`, where a study or a claim does not say otherwise.
    #[serde(default)]
    print: Print,
    /// Of how many runs its printed numbers are, where a study or a claim does not say otherwise. Left out: as many as
    /// are simulated.
    of_runs: Option<NonZeroU32>,
    /// What people call axes, values and metrics, in all of its studies.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// This work, in a folder beside this one, lends its parts and labels.
    parts_of: Option<String>,
}

impl Validate for WorkFile {}

fn one() -> u64 {
    1
}

impl Work {
    /// Reads the folder.
    ///
    /// # Errors
    /// If a file is missing or invalid.
    pub fn load(folder: &Path) -> Result<Self, StudyError> {
        Self::from(Files::Disk, folder)
    }

    fn from(files: Files, folder: &Path) -> Result<Self, StudyError> {
        let (file, parts) = shared(files, folder)?;
        let mut studies = vec![];
        for path in files.toml_files(folder)? {
            let id = stem(&path);
            if matches!(id.as_str(), "work" | "alternatives" | "notes") {
                continue;
            }
            let mut study: StudyFile = read(files, &path)?;
            study.set = [file.set.as_slice(), &study.set].concat();
            for claim in &mut study.claims {
                claim.print = claim.print.or(study.print).or(Some(file.print));
                claim.of_runs = claim.of_runs.or(study.of_runs).or(file.of_runs);
            }
            let study = Study::new(&id, study, &parts, &file.labels);
            studies.push(study.map_err(|problem| StudyError::file(&path, problem))?);
        }
        studies.sort_by_key(|study| number(&study.id));
        let work = Self {
            id: folder
                .file_name()
                .map_or_else(String::new, |n| n.to_string_lossy().into_owned()),
            title: file.title,
            runs: file.runs,
            seed: file.seed,
            studies,
            alternatives: optional(files, &folder.join("alternatives.toml"))?,
            notes: optional(files, &folder.join("notes.toml"))?,
            front: file.front,
            pictures: file.pictures,
            ids: list(files, &folder.join("ids.txt"))?,
            parts_of: file.parts_of,
        };
        work.check_ids(folder)?;
        Ok(work)
    }

    /// Reads every work in a folder, sorted by name.
    ///
    /// # Errors
    /// As for [`load`](Self::load), and if the folder has no work.
    pub fn load_all(folder: &Path) -> Result<Vec<Self>, StudyError> {
        if !folder.is_dir() {
            let problem = "there is no such folder here; leave --studies out for the works that came \
                           with the program";
            return Err(StudyError::file(folder, problem));
        }
        let folders = Files::Disk.works(folder)?;
        if folders.is_empty() {
            let problem = "no folder here has a work.toml; is this the folder of studies?";
            return Err(StudyError::file(folder, problem));
        }
        folders.iter().map(|folder| Self::load(folder)).collect()
    }

    /// Reads every work in a folder, if it exists, then every shipped work whose name is not among
    /// them, each sorted by name.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn here_and_shipped(folder: &Path) -> Result<Vec<Self>, StudyError> {
        let mut all = match folder.is_dir() {
            true => Files::Disk.works(folder)?,
            false => vec![],
        }
        .iter()
        .map(|folder| Self::load(folder))
        .collect::<Result<Vec<_>, _>>()?;
        for shipped in Files::Shipped.works(Path::new(STUDIES))? {
            if all
                .iter()
                .all(|work| Some(work.id.as_ref()) != shipped.file_name())
            {
                all.push(Self::from(Files::Shipped, &shipped)?);
            }
        }
        Ok(all)
    }

    /// The ids of the shipped works, sorted.
    ///
    /// # Errors
    /// None on a machine that has the program.
    pub fn shipped_ids() -> Result<Vec<String>, StudyError> {
        let folders = Files::Shipped.works(Path::new(STUDIES))?;
        Ok(folders.iter().map(|folder| stem(folder)).collect())
    }

    /// A shipped work.
    ///
    /// # Errors
    /// If there is no such work.
    pub fn shipped(id: &str) -> Result<Self, StudyError> {
        let known = Self::shipped_ids()?;
        if !known.iter().any(|known| known == id) {
            return Err(StudyError::unknown(
                "work",
                id,
                known.iter().map(String::as_str),
            ));
        }
        Self::from(Files::Shipped, &Path::new(STUDIES).join(id))
    }

    /// Claims that other claims of this work exclude, whatever is measured, each with what excludes
    /// it.
    pub fn contradictions(&self) -> BTreeMap<String, Vec<String>> {
        contradictions(&self.studies)
    }

    /// Whether a study reads any number of its runs: what is drawn over time alone is simulated where
    /// it is recorded.
    pub(crate) fn reads(&self, study: &str) -> bool {
        self.study(study)
            .is_some_and(|study| !study.metrics.is_empty())
    }

    /// A study by its id.
    pub fn study(&self, id: &str) -> Option<&Study> {
        self.studies.iter().find(|study| study.id == id)
    }

    /// Checks that no claim is judged twice, and that notes refer to existing claims.
    fn check_ids(&self, folder: &Path) -> Result<(), StudyError> {
        let mut seen = BTreeSet::new();
        for study in &self.studies {
            for claim in &study.claims {
                if !seen.insert(claim.id.as_str()) {
                    let problem = format!("claim {} is judged a second time", claim.id);
                    let path = folder.join(format!("{}.toml", study.id));
                    return Err(StudyError::file(&path, problem));
                }
            }
        }
        if let Some(id) = self.pictures.iter().find(|id| self.study(id).is_none()) {
            let problem = format!("pictures: there is no study {id}");
            return Err(StudyError::file(&folder.join("work.toml"), problem));
        }
        let unknown = self.notes.keys().find(|id| !seen.contains(id.as_str()));
        unknown.map_or(Ok(()), |id| {
            let path = folder.join("notes.toml");
            Err(StudyError::file(
                &path,
                format!("no study has a claim {id}"),
            ))
        })
    }

    /// Ids of the list that no study judges.
    pub fn missing_ids(&self) -> Vec<&str> {
        let claims = self.studies.iter().flat_map(|study| &study.claims);
        let judged: BTreeSet<&str> = claims.map(|claim| claim.id.as_str()).collect();
        let ids = self.ids.iter().map(String::as_str);
        ids.filter(|id| !judged.contains(id)).collect()
    }
}

/// What the studies of a work share, including what it takes from another work; its own entries
/// take precedence.
fn shared(files: Files, folder: &Path) -> Result<(WorkFile, BTreeMap<String, Part>), StudyError> {
    let path = folder.join("work.toml");
    let mut file: WorkFile = read(files, &path)?;
    let mut parts = BTreeMap::new();
    if let Some(other) = &file.parts_of {
        let beside = folder.with_file_name(other);
        if !files.has(&beside.join("work.toml")) {
            let problem = format!("parts-of = \"{other}\": there is no such work beside this one");
            return Err(StudyError::file(&path, problem));
        }
        let theirs: WorkFile = read(files, &beside.join("work.toml"))?;
        if theirs.parts_of.is_some() {
            let problem = format!(
                "parts-of = \"{other}\": that work has the parts of another one itself; name one that \
                 has no parts-of"
            );
            return Err(StudyError::file(&path, problem));
        }
        parts = read_parts(files, &beside)?;
        let own = std::mem::replace(&mut file.labels, theirs.labels);
        file.labels.extend(own);
    }
    parts.extend(read_parts(files, folder)?);
    Ok((file, parts))
}

fn read_parts(files: Files, folder: &Path) -> Result<BTreeMap<String, Part>, StudyError> {
    let paths = files.toml_files(&folder.join("parts"))?.into_iter();
    let parts = paths.map(|path| Ok((stem(&path), read(files, &path)?)));
    parts.collect()
}

fn read<T: DeserializeOwned + Validate>(files: Files, path: &Path) -> Result<T, StudyError> {
    Ok(config::load(
        &files.read(path)?,
        &path.display().to_string(),
    )?)
}

fn optional<T: DeserializeOwned + Validate + Default>(
    files: Files,
    path: &Path,
) -> Result<T, StudyError> {
    if files.has(path) {
        read(files, path)
    } else {
        Ok(T::default())
    }
}

fn list(files: Files, path: &Path) -> Result<Vec<String>, StudyError> {
    if !files.has(path) {
        return Ok(vec![]);
    }
    let text = files.read(path)?;
    let lines = text.lines().map(str::trim);
    let ids = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(ids.map(str::to_owned).collect())
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// A sort key that orders figures by number: F4.9 before F4.10.
fn number(id: &str) -> Vec<(u64, String)> {
    let mut key = vec![];
    let mut rest = id;
    while !rest.is_empty() {
        let words = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let digits = &rest[words..];
        let end = digits
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(digits.len());
        key.push((digits[..end].parse().unwrap_or(0), rest[..words].to_owned()));
        rest = &digits[end..];
    }
    // The words are compared before the numbers that follow them.
    key.into_iter()
        .flat_map(|(n, word)| [(0, word), (n, String::new())])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_come_in_the_order_of_their_numbers() {
        let mut ids = ["F4.10", "F4.9", "C4-one", "F4.9-WAN1", "F12.1"];
        ids.sort_by_key(|id| number(id));
        assert_eq!(ids, ["C4-one", "F4.9", "F4.9-WAN1", "F4.10", "F12.1"]);
    }

    #[test]
    fn the_binary_embeds_the_works_and_scenarios_of_the_sources() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let on_disk = Work::load_all(&sources.join("studies")).unwrap();
        let shipped = Work::here_and_shipped(Path::new("none")).unwrap();
        assert_eq!(format!("{shipped:?}"), format!("{on_disk:?}"));
        let scenarios = Files::Disk.toml_files(&sources.join("scenarios")).unwrap();
        let names: Vec<String> = scenarios.iter().map(|path| stem(path)).collect();
        let shipped: Vec<&str> = crate::shipped::scenarios().map(|(name, _)| name).collect();
        assert_eq!(shipped, names);
    }

    #[test]
    fn all_problems_of_a_study_are_reported_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).unwrap();
        };
        write("work.toml", "title = \"t\"\nruns = 1\n");
        write(
            "F1.toml",
            "titel = \"t\"\nset = 7\n\n[[claims]]\nid = \"C1\"\nkind = \"ordre\"\n\n[metrics]\ng = 1\n",
        );
        let Err(StudyError::Refused(error)) = Work::load(folder.path()) else {
            panic!("the study is wrong");
        };
        let at: Vec<_> = error
            .problems()
            .iter()
            .map(|p| (p.line, &*p.path))
            .collect();
        assert!(at.contains(&(1, "titel")), "{error}");
        assert!(at.contains(&(2, "set")), "{error}");
        assert!(at.contains(&(9, "metrics.g")), "{error}");
        assert!(
            error.to_string().contains("did you mean `title`"),
            "{error}"
        );
    }

    #[test]
    fn a_work_has_the_parts_of_the_one_that_it_names() {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../studies");
        let (_, parts) = shared(Files::Disk, &shipped.join("xylomenos-1999")).unwrap();
        let (file, borrowed) = shared(Files::Disk, &shipped.join("xylomenos-1999-beyond")).unwrap();
        assert!(parts.keys().all(|part| borrowed.contains_key(part)));
        assert_eq!(file.labels["sr-m2"], "SR/M2");

        let folder = tempfile::tempdir().unwrap();
        let refusal = |name: &str, parts_of: &str| {
            let folder = folder.path().join(name);
            std::fs::create_dir_all(&folder).unwrap();
            let text = format!("title = \"t\"\nruns = 1\nparts-of = \"{parts_of}\"\n");
            std::fs::write(folder.join("work.toml"), text).unwrap();
            Work::load(&folder).unwrap_err().to_string()
        };
        let error = refusal("one", "nobody");
        assert!(
            error.contains("parts-of = \"nobody\": there is no such work"),
            "{error}"
        );
        let error = refusal("two", "one");
        assert!(
            error.contains("parts-of = \"one\": that work has the parts of another one"),
            "{error}"
        );
    }
}
