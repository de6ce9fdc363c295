//! `airlane setup`: asks for what a link needs, and writes the files of all ends.

use std::io::BufRead as _;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::Path;

use airlane_live::config::HostPort;
use airlane_live::netlink::Cidr;
use airlane_live::setup::{LinkPlan, PlannedEnd, SetupError, write};
use anyhow::Context as _;

use crate::args::SetupArgs;
use crate::fault::BadInput;
use crate::output;

/// The answer for an end that cannot be reached.
const NOBODY: &str = "none";

/// Runs `airlane setup`.
pub(crate) fn setup(args: &SetupArgs) -> anyhow::Result<()> {
    let plan = plan(args)?;
    let refused = |error: SetupError| match error {
        SetupError::System { .. } => anyhow::Error::from(error),
        SetupError::File(refused) => refused.into(),
        wrong => BadInput(wrong.to_string()).into(),
    };
    let ends = plan.ends().map_err(refused)?;
    write(&args.folder, &ends, args.force).map_err(refused)?;
    output::print(&match args.json {
        true => serde_json::to_string(&json(args, &ends))? + "\n",
        false => text(&args.folder, &plan, &ends),
    })
}

/// Takes answers from the command line and asks for the others, each of which has a default.
fn plan(args: &SetupArgs) -> anyhow::Result<LinkPlan> {
    let (json, is_base) = (args.json, !args.station.is_empty());
    let here = ask(
        (args.here.as_deref(), "--here", json),
        match is_base {
            true => "At which address or host name do the stations reach this end?",
            false => "At which address or host name does the other end reach this one?",
        },
        NOBODY,
        |text| match is_base && text == NOBODY {
            true => Err("stations call their base, which has to be reached".to_owned()),
            false => place(text),
        },
    )?;
    let there = match is_base {
        true => NOBODY.to_owned(),
        false => ask(
            (args.there.as_deref(), "--there", json),
            "At which address or host name does this end reach the other?",
            NOBODY,
            place,
        )?,
    };
    let network = ask(
        (args.network.as_deref(), "--network", json),
        "Which network is inside? The ends have its first addresses.",
        "10.7.0.0/24",
        str::parse::<Cidr>,
    )?;
    let port = ask(
        (args.port.as_deref(), "--port", json),
        "Which UDP port do all use?",
        "7007",
        |text| {
            let port: Option<NonZeroU16> = text.parse().ok();
            port.ok_or_else(|| "a port is a number from 1 to 65535, such as 7007".to_owned())
        },
    )?;
    let port = port.get();
    let reached = |text: String| (text != NOBODY).then_some(text);
    Ok(LinkPlan {
        name: args.name.clone(),
        reached_at: [reached(here), reached(there)],
        stations: args.station.clone(),
        network,
        port,
        rate: args.rate,
        preshared: args.preshared,
    })
}

/// The value from the command line, or an answer; asks again after an invalid answer.
fn ask<T>(
    (given, option, json): (Option<&str>, &str, bool),
    question: &str,
    usual: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> anyhow::Result<T> {
    if let Some(given) = given {
        return Ok(read(given).map_err(BadInput)?);
    }
    if json {
        let text = format!("{option} is missing, and --json asks no questions");
        return Err(BadInput(text).into());
    }
    loop {
        let answer = answer(option, question, usual)?;
        let answer = if answer.is_empty() { usual } else { &answer };
        match read(answer) {
            Ok(read) => return Ok(read),
            Err(why) => output::warn(&why),
        }
    }
}

/// An address, a host name, or [`NOBODY`].
fn place(text: &str) -> Result<String, String> {
    let is_place =
        text.parse::<IpAddr>().is_ok() || format!("{text}:1").parse::<HostPort>().is_ok();
    match is_place || text == NOBODY {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "\"{text}\" is neither an address nor the name of a host, such as 192.0.2.7 or gate.example.org, nor \"{NOBODY}\""
        )),
    }
}

fn answer(option: &str, question: &str, usual: &str) -> anyhow::Result<String> {
    output::ask(&format!("{question} [{usual}] "));
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    match read.context("cannot read an answer")? {
        0 => anyhow::bail!(BadInput(format!(
            "standard input has ended: give {option} on the command line"
        ))),
        _ => Ok(line.trim().to_owned()),
    }
}

fn json(args: &SetupArgs, ends: &[PlannedEnd]) -> serde_json::Value {
    let end = |end: &PlannedEnd| {
        let files = end.files(&args.folder);
        serde_json::json!({
            "name": end.name,
            "public_key": end.public.to_string(),
            "address": end.inside.address.to_string(),
            "run": ["airlane", "up", files[0]],
            "files": files,
        })
    };
    let others: Vec<_> = ends[1..].iter().map(end).collect();
    match args.station.is_empty() {
        true => serde_json::json!({ "here": end(&ends[0]), "there": others[0] }),
        false => serde_json::json!({ "here": end(&ends[0]), "stations": others }),
    }
}

fn text(folder: &Path, plan: &LinkPlan, ends: &[PlannedEnd]) -> String {
    let list = |end: &PlannedEnd| {
        let files = end.files(folder);
        let files: Vec<_> = files.iter().map(|f| f.display().to_string()).collect();
        files.join(" ")
    };
    let width = ends[0].files(folder)[0].display().to_string().len();
    let width = width.max(ends[1].name.len().max("NAME".len()) + ".toml".len());
    let up = |file: &Path| format!("airlane up {:width$}", file.display());
    let [here, there] = ends else {
        let (here, stations) = (&ends[0], &ends[1..]);
        let lists: String = stations
            .iter()
            .map(|end| format!("{:15} {}\n", format!("{}:", end.name), list(end)))
            .collect();
        return format!(
            "This end:       {}\n{lists}\n\
             All are readable by you alone, and hold secret keys. Copy those of each station there over a private \n\
             channel, and run, as root,\n\n  \
             {}  here\n  \
             {}  at each station, in the folder of its files\n\n\
             Then each has its address: ping {}, or `airlane test`. Delete the stations' files here.\n",
            list(here),
            up(&here.files(folder)[0]),
            up(Path::new("NAME.toml")),
            stations[0].inside.address,
        );
    };
    let calls = plan.reached_at.iter().position(Option::is_none);
    let calls = calls.map_or(String::new(), |at| {
        let name = &[here, there][at].name;
        format!("\n{name} cannot be reached from the other end, so it calls.\n")
    });
    format!(
        "This end:       {}\n\
         The other end:  {}\n\n\
         Both are readable by you alone, and hold secret keys. Copy those of the other end there over a private \n\
         channel, and run, as root,\n\n  \
         {}  here\n  \
         {}  there, in the folder of its files\n\n\
         Then {} is the other end: ping it, or `airlane test`. Delete its files here.\n{calls}",
        list(here),
        list(there),
        up(&here.files(folder)[0]),
        up(Path::new(&format!("{}.toml", there.name))),
        there.inside.address,
    )
}
