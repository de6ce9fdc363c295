//! `airlane keygen`.

use airlane_live::security::{new_key, new_preshared, read_key};

use crate::args::KeygenArgs;
use crate::output;

/// Runs `airlane keygen`.
pub(crate) fn keygen(args: &KeygenArgs) -> anyhow::Result<()> {
    if args.preshared {
        return Ok(new_preshared(&args.file)?);
    }
    let public = if args.public {
        read_key(&args.file)?.public()
    } else {
        new_key(&args.file)?
    };
    output::print(&format!("{public}\n"))
}
