//! Describes a folder of results, so that it can be completed, merged and read again.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::StudyError;
use crate::plan::{Plan, RunRequest};
use crate::store::VERSION;

/// The contents of `manifest.json`, which do not depend on time, machine, threads or shards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this format.
    pub schema: u32,
    /// Version and fingerprint of the code that simulates.
    pub version: String,
    /// The arguments that determine the results, as typed.
    pub command: Vec<String>,
    /// The request that they make.
    pub request: RunRequest,
    /// The works and studies that they name; a work without studies stands for all of them.
    pub works: Vec<ManifestWork>,
}

/// What was requested of one work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ManifestWork {
    /// Id of the work.
    pub id: String,
    /// Ids of the requested studies; empty for all.
    pub asked: Vec<String>,
    /// Repetitions of every scenario.
    pub runs: u64,
    /// Repetitions of alternatives.
    pub alternative_runs: u64,
    /// Seed of all random streams.
    pub seed: u64,
    /// Distinct scenarios.
    pub scenarios: u64,
    /// Distinct simulations.
    pub simulations: u64,
    /// The committed choices and each alternative.
    pub variants: Vec<ManifestVariant>,
}

/// The studies under one set of choices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ManifestVariant {
    /// The alternative; `None` for the committed choices.
    pub alternative: Option<String>,
    /// Studies with the hashes of their scenarios; the last axis varies fastest.
    pub studies: Vec<(String, Vec<String>)>,
}

impl ManifestWork {
    /// Describes a plan.
    pub fn new(plan: &Plan, asked: &[String]) -> Self {
        let variants = plan.variants.iter().map(|variant| ManifestVariant {
            alternative: variant.alternative.clone(),
            studies: variant
                .studies
                .iter()
                .map(|study| {
                    let hashes = study
                        .worlds
                        .iter()
                        .map(|w| plan.worlds[*w].hash().to_owned());
                    (study.id.clone(), hashes.collect())
                })
                .collect(),
        });
        Self {
            id: plan.work.id.clone(),
            asked: asked.to_vec(),
            runs: plan.runs,
            seed: plan.seed,
            scenarios: plan.worlds.len() as u64,
            alternative_runs: plan.alternative_runs,
            simulations: plan.jobs(),
            variants: variants.collect(),
        }
    }
}

impl ManifestWork {
    /// The requested works and studies, as named on the command line.
    pub(crate) fn named(&self) -> Vec<String> {
        match self.asked.as_slice() {
            [] => vec![self.id.clone()],
            studies => studies
                .iter()
                .map(|study| format!("{}/{study}", self.id))
                .collect(),
        }
    }
}

impl Manifest {
    /// The manifest of a command.
    pub fn new(command: Vec<String>, request: RunRequest, works: Vec<ManifestWork>) -> Self {
        Self {
            schema: 1,
            version: VERSION.to_owned(),
            command,
            request,
            works,
        }
    }

    /// The arguments after the works and studies.
    pub fn options(&self) -> &[String] {
        let first = self.command.iter().position(|word| word.starts_with("--"));
        &self.command[first.unwrap_or(self.command.len())..]
    }

    /// Writes it into a folder.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), StudyError> {
        std::fs::create_dir_all(folder).map_err(StudyError::io(folder))?;
        let path = folder.join("manifest.json");
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|e| StudyError::Results(format!("the manifest cannot be written: {e}")))?;
        text.push('\n');
        std::fs::write(&path, text).map_err(StudyError::io(&path))
    }

    /// Reads it from a folder.
    ///
    /// # Errors
    /// If it is missing or not a manifest.
    pub fn read(folder: &Path) -> Result<Self, StudyError> {
        let path = folder.join("manifest.json");
        let text = airlane_base::config::read_text(&path).map_err(|error| {
            StudyError::file(
                &path,
                format!("{error}; `airlane study run --out` writes it"),
            )
        })?;
        serde_json::from_str(&text).map_err(|error| StudyError::file(&path, error))
    }
}
