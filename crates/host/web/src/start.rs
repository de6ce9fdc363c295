//! Scenarios to start from: settings of `tc`, a live file, a recorded link.

use airlane_advise::{Apps, Link, scenario, simulated};
use airlane_base::config::Document;
use airlane_base::{Duration, Probability, Rate, Size};
use airlane_channel::trace::Trace;
use airlane_channel::{ErrorModelConfig, LinkRate};
use airlane_cli::recorded::remarks;
use airlane_fit::LinkFit;
use airlane_sim::import::{ImportedApp, NetemChoice, from_netem};
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::world::Fault;

/// Length of a run.
const LENGTH: Duration = Duration::from_secs(30);

/// A scenario, and what should be known of it.
#[derive(Serialize)]
pub(crate) struct Start {
    text: String,
    notes: Vec<String>,
}

/// A live file, and the link that it is tried on.
#[derive(Debug, Deserialize)]
pub(crate) struct LiveStart {
    text: String,
    /// Its name in errors.
    file: String,
    rate: Rate,
    delay: Duration,
    loss: Probability,
}

/// A recording whose bytes follow.
#[derive(Debug, Deserialize)]
pub(crate) struct Sent {
    name: String,
    bytes: usize,
}

/// What `tc` keeps of a link. Empty texts are left out.
#[derive(Debug, Deserialize)]
pub(crate) struct TcStart {
    text: String,
    device: String,
    /// The settings of the other direction, if they are another text.
    reverse: String,
    reverse_device: String,
}

/// As `airlane scenario from-netem` with all of its applications.
pub(crate) fn tc(tc: &TcStart) -> Result<Start, Fault> {
    fn given(text: &str) -> Option<&str> {
        Some(text.trim()).filter(|text| !text.is_empty())
    }
    let choice = NetemChoice {
        device: given(&tc.device),
        reverse_device: given(&tc.reverse_device),
        ..NetemChoice::default()
    };
    let apps = [ImportedApp::File, ImportedApp::Web, ImportedApp::Voice];
    let import = from_netem(&tc.text, given(&tc.reverse), &choice, &apps);
    let import = import.map_err(|error| error.to_string())?;
    Ok(Start {
        text: import.text,
        notes: import.notes,
    })
}

/// Both ends have the live file.
pub(crate) fn live(live: &LiveStart) -> Result<Start, Fault> {
    // For its places in errors of syntax.
    Document::parse(&live.text, &live.file)?;
    let file: Table = toml::from_str(&live.text).map_err(|error| error.to_string())?;
    let file = simulated(&file).map_err(|error| format!("{}: {error}", live.file))?;
    let rate = LinkRate::Constant(live.rate);
    let errors = ErrorModelConfig::Uniform { rate: live.loss };
    // What the link carries in a tenth of a second, and at least ten packets.
    let queue = Size::from_bytes((live.rate.as_bps() / 80).max(15_000));
    let link = Link {
        rates: [rate.clone(), rate],
        delay: live.delay,
        queues: [queue; 2],
        errors: [errors.clone(), errors],
        lengths: [None; 2],
        assumed: vec![],
    };
    written(&link, &file, &format!("{} at both ends", live.file), vec![])
}

/// The link of `airlane trace fit`, with the usual services on it.
pub(crate) fn recording(recordings: &[Sent], bytes: &[u8]) -> Result<Start, Fault> {
    let (mut rest, mut traces) = (bytes, vec![]);
    for Sent { name, bytes } in recordings {
        let (this, others) = rest
            .split_at_checked(*bytes)
            .ok_or_else(|| format!("{name}: it is cut off"))?;
        rest = others;
        traces.push(Trace::read(this).map_err(|error| format!("{name}: {error}"))?);
    }
    let mut traces = traces.into_iter();
    let trace = match (traces.next(), traces.next(), traces.next()) {
        (Some(near), Some(far), None) => {
            Trace::join(near, far).map_err(|error| error.to_string())?
        }
        (Some(one), None, None) => one,
        _ => return Err("choose one recording, or one of each end".to_owned().into()),
    };
    let fit = LinkFit::of(&trace).map_err(|error| error.to_string())?;
    let link = Link::of(&fit, None);
    let name = format!("the recorded link of {}", trace.header.name);
    written(&link, &Table::new(), &name, remarks(&fit, &link))
}

fn written(link: &Link, live: &Table, name: &str, notes: Vec<String>) -> Result<Start, Fault> {
    let mut scenario = scenario(link, &Apps::default(), Some(live), LENGTH)?;
    name.clone_into(&mut scenario.name);
    Ok(Start {
        text: scenario.to_toml(),
        notes,
    })
}
