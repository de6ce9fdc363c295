//! Compiles our programs for ns-3, if Debian's libns3-dev is installed, and runs them.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Output};

use super::setting::{Reception, Setting};
use crate::mesh::{ROUTES, SIDE, SPACING, flows};

/// The program of each kind of world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Mesh,
    OneHop,
}

impl Program {
    const fn source(self) -> &'static str {
        match self {
            Self::Mesh => include_str!("../../ns3/mesh.cc"),
            Self::OneHop => include_str!("../../ns3/one_hop.cc"),
        }
    }
}

/// What they share.
const COMMON: &str = include_str!("../../ns3/common.h");

/// The parts of ns-3 that the programs use.
const MODULES: [&str; 6] = [
    "ns3-wifi",
    "ns3-internet",
    "ns3-applications",
    "ns3-mobility",
    "ns3-propagation",
    "ns3-traffic-control",
];

/// Why ns-3 gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Ns3Error {
    /// There is no ns-3 on this machine.
    #[error(
        "ns-3 is not installed; as root: apt-get install libns3-dev libgsl-dev libsqlite3-dev pkg-config g++"
    )]
    Missing,
    /// It is installed, but could not be run.
    #[error("ns-3 could not be run: {0}")]
    Io(#[from] io::Error),
    /// A program printed something other than results.
    #[error("{program}: {said}")]
    Said {
        /// The program.
        program: &'static str,
        /// The output.
        said: String,
    },
}

/// One of our programs for ns-3, compiled.
#[derive(Debug)]
pub struct Ns3 {
    program: PathBuf,
    /// Holds the program; removed when this value is dropped.
    _directory: tempfile::TempDir,
}

impl Ns3 {
    /// Compiles the program of the saturated grid against the ns-3 of this machine.
    ///
    /// # Errors
    /// [`Ns3Error::Missing`] if there is none.
    pub fn mesh() -> Result<Self, Ns3Error> {
        Self::compile(Program::Mesh)
    }

    /// Compiles the program of stations that send to one receiver against the ns-3 of this machine.
    ///
    /// # Errors
    /// [`Ns3Error::Missing`] if there is none.
    pub fn one_hop() -> Result<Self, Ns3Error> {
        Self::compile(Program::OneHop)
    }

    fn compile(which: Program) -> Result<Self, Ns3Error> {
        let asked = Command::new("pkg-config")
            .args(["--cflags", "--libs"])
            .args(MODULES)
            .output();
        let flags = match asked {
            Ok(output) if output.status.success() => {
                String::from_utf8_lossy(&output.stdout).into_owned()
            }
            _ => return Err(Ns3Error::Missing),
        };
        let directory = tempfile::tempdir()?;
        let [source, program] = ["world.cc", "world"].map(|name| directory.path().join(name));
        std::fs::write(&source, which.source())?;
        std::fs::write(directory.path().join("common.h"), COMMON)?;
        let mut compiler = Command::new("g++");
        compiler
            .args(["-O2", "-std=c++17", "-o"])
            .arg(&program)
            .arg(source);
        succeeded("g++", compiler.args(flags.split_whitespace()).output()?)?;
        Ok(Self {
            program,
            _directory: directory,
        })
    }

    /// The throughput of each flow of the saturated grid, bit/s.
    ///
    /// # Errors
    /// If ns-3 fails.
    pub fn run_mesh(&self, seconds: u32, seed: u64, run: u64) -> Result<Vec<f64>, Ns3Error> {
        let routes = ROUTES.map(|route| {
            let nodes: Vec<String> = route.iter().map(ToString::to_string).collect();
            nodes.join("-")
        });
        let arguments = [
            format!("spacing={SPACING}"),
            format!("columns={SIDE}"),
            format!("nodes={}", SIDE * SIDE),
            format!("routes={}", routes.join(",")),
            format!("seconds={seconds}"),
            format!("seed={seed}"),
            format!("run={run}"),
        ];
        self.run(&arguments, |text| flows(text, seconds))
    }

    /// The packets of each station that arrived, from these arguments of `one_hop.cc`.
    ///
    /// # Errors
    /// If ns-3 fails.
    pub(super) fn run_one_hop(
        &self,
        setting: &Setting,
        reception: Reception,
        [seed, run]: [u64; 2],
    ) -> Result<Vec<f64>, Ns3Error> {
        let mut arguments = setting.arguments();
        arguments.extend([
            format!("reception={}", reception.argument()),
            format!("seed={seed}"),
            format!("run={run}"),
        ]);
        self.run(&arguments, |text| setting.read(text))
    }

    fn run<T>(
        &self,
        arguments: &[String],
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Ns3Error> {
        let output = Command::new(&self.program).args(arguments).output()?;
        let text = succeeded("ns-3", output)?;
        read(&text).ok_or(Ns3Error::Said {
            program: "ns-3",
            said: text,
        })
    }
}

/// The output of a program that has succeeded.
fn succeeded(program: &'static str, output: Output) -> Result<String, Ns3Error> {
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(Ns3Error::Said {
            program,
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
        }),
    }
}
