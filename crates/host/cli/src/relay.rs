//! `airlane relay`.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::AsFd as _;
use std::time::Duration;

use airlane_live::privileges;
use airlane_live::relay::{Relay, RelayConfig, RelayError, Target};
use airlane_live::signals::{stop_on_signals, tell_on_signals};
use anyhow::Context as _;

use crate::args::RelayArgs;
use crate::fault::BadInput;
use crate::log::{self, Log};
use crate::output;

/// Runs `airlane relay`.
pub(crate) fn relay(args: &RelayArgs) -> anyhow::Result<()> {
    let mut log = None;
    let ran = run(args, &mut log);
    log::report(args.log_format, log, ran)
}

fn run(args: &RelayArgs, log: &mut Option<Log>) -> anyhow::Result<()> {
    let target = match &args.to {
        Some(to) => Target::Address(resolve(to)?),
        None => Target::Original {
            keep_source: args.keep_source,
        },
    };
    let config = RelayConfig {
        listen: args.listen,
        target,
        pool: args.pool,
        connections: args.connections,
        socket_buffer: args.socket_buffer,
        connect_timeout: Duration::from_nanos(args.connect_timeout.as_nanos()),
        idle_timeout: Duration::from_nanos(args.idle_timeout.as_nanos()),
        local_targets: args.local_targets,
    };
    *log = Some(log::start(args.log_format)?);
    let stop = stop_on_signals().context("cannot wait for signals")?;
    let tell = tell_on_signals().context("cannot wait for signals")?;
    let mut relay = Relay::open(config).map_err(|error| match error {
        RelayError::Loop { .. } | RelayError::Nothing(_) => BadInput(error.to_string()).into(),
        error => anyhow::Error::from(error),
    })?;
    if args.keep_source {
        privileges::keep_what_a_node_needs()?;
    } else {
        privileges::give_up_all();
    }
    let ended = relay.run(stop.as_fd(), tell.as_fd());
    // The counters are worth printing however the relay ended.
    let report = relay.report();
    output::print(&if args.json {
        serde_json::to_string(&report)? + "\n"
    } else {
        report.to_string()
    })?;
    Ok(ended?)
}

fn resolve(to: &str) -> anyhow::Result<SocketAddr> {
    let wrong = |why: String| BadInput(format!("--to {to}: {why}"));
    let found = to.to_socket_addrs().map_err(|error| {
        wrong(format!(
            "{error}; write a host and its port, such as server.example:80"
        ))
    })?;
    let first = found.into_iter().next();
    Ok(first.ok_or_else(|| wrong("the host has no address".to_owned()))?)
}
