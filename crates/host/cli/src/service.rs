//! `airlane service`.

use std::path::Path;

use airlane_base::config::Document;
use airlane_live::control::{self, AddServices, ServiceChange};
use anyhow::bail;

use crate::args::{LinkArgs, ServiceAddArgs, ServiceSetArgs, ServiceVerb};
use crate::fault::BadInput;
use crate::input;
use crate::live;

/// Runs `airlane service`.
pub(crate) fn service(verb: &ServiceVerb) -> anyhow::Result<()> {
    match verb {
        ServiceVerb::Add(args) => change(&args.link, ServiceChange::Add(added(args)?)),
        ServiceVerb::Remove(args) => {
            let name = args.name.clone();
            change(&args.link, ServiceChange::Remove { name })
        }
        ServiceVerb::Set(args) => {
            let (name, rate) = (args.name.clone(), rate(args)?);
            change(&args.link, ServiceChange::Set { name, rate })
        }
    }
}

fn change(link: &LinkArgs, change: ServiceChange) -> anyhow::Result<()> {
    let socket = live::socket(link.node.named())?;
    let changes = control::change_services(&socket, &change)?;
    live::print_changes(&changes, link.json)
}

/// The services to add, from a file or from the command line.
fn added(args: &ServiceAddArgs) -> anyhow::Result<AddServices> {
    let inline = args.service.trim_start().starts_with('{');
    if !inline {
        if !args.matches.is_empty() {
            bail!(BadInput(
                "--match goes with an inline service; a file has [[classes]]".to_owned()
            ));
        }
        return Ok(input::document(Path::new(&args.service), &[])?.read()?);
    }
    let services = format!("services = [{}]\n", args.service);
    let mut all: AddServices = Document::parse(&services, "SERVICE")?.read()?;
    let name = all.services.first().map(|s| s.name.clone());
    let name = toml::Value::String(name.unwrap_or_default());
    for condition in &args.matches {
        let class = format!("{services}classes = [{{ match = {condition}, service = {name} }}]\n");
        let more: AddServices = Document::parse(&class, "--match")?.read()?;
        all.classes.extend(more.classes);
    }
    Ok(all)
}

fn rate(args: &ServiceSetArgs) -> anyhow::Result<f64> {
    let value = args.value.strip_prefix("rate=").map(str::parse);
    match value {
        Some(Ok(rate)) => Ok(rate),
        _ => bail!(BadInput(format!(
            "\"{}\" sets nothing here; write rate=SHARE, such as rate=0.2 (`airlane reload` changes \
             anything else)",
            args.value
        ))),
    }
}
