//! `airlane journal replay`.

use airlane_live::journal::{JournalError, replay as replay_bytes};
use anyhow::Context as _;

use crate::args::JournalReplayArgs;
use crate::fault::BadInput;
use crate::output;
use crate::quantity::{Estimate, Unit};

/// Runs the verb.
pub(crate) fn replay(args: &JournalReplayArgs) -> anyhow::Result<()> {
    let shown = args.file.display();
    let bytes = airlane_base::config::read_file(&args.file, airlane_base::config::LONGEST_DATA)
        .with_context(|| BadInput(format!("cannot read {shown}")))?;
    let replayed = replay_bytes(&bytes).map_err(|error| match error {
        JournalError::Diverged { .. } => anyhow::anyhow!("{shown}: {error}"),
        error => BadInput(format!("{shown}: {error}")).into(),
    })?;
    if args.json {
        return output::print(&(serde_json::to_string(&replayed)? + "\n"));
    }
    if let Some(cut) = replayed.cut_at_byte {
        output::warn(&output::cut_off(&args.file, cut));
    }
    let lasted = Estimate::single(replayed.duration_ns as f64 / 1e9).show(Unit::Seconds);
    output::print(&format!(
        "the same, bit for bit: {} packets and {} frames in, {} frames and {} packets out in {lasted}, \
         compared {} times\n",
        replayed.packets_in,
        replayed.frames_in,
        replayed.frames_out,
        replayed.packets_out,
        replayed.checks,
    ))
}
