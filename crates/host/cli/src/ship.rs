//! `airlane send` and `airlane recv`.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::AsFd as _;

use airlane_live::control;
use airlane_live::ship::{
    self, PORT, ReceiveOptions, SendOptions, ShipError, ShipEvent, ShipProgress, Shipment, Skipped,
    Source, Ticket,
};
use airlane_live::signals::stop_on_signals;
use anyhow::Context as _;
use indicatif::{DecimalBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::{RecvArgs, SendArgs, TicketArgs};
use crate::fault::BadInput;
use crate::{live, output};

/// Time between two lines where no terminal shows a bar.
const EVERY: std::time::Duration = std::time::Duration::from_secs(10);

/// Runs `airlane send`.
pub(crate) fn send(args: &SendArgs) -> anyhow::Result<()> {
    let ticket = ticket(&args.ticket)?.ok_or_else(|| {
        BadInput("--ticket is missing: `airlane recv` prints one at the other end".to_owned())
    })?;
    let options = SendOptions {
        to: resolve(&args.host)?,
        ticket,
        most: args.most,
        timeout: args.timeout,
        link: args
            .link
            .as_deref()
            .map(|link| live::socket(Some(link)))
            .transpose()?,
    };
    // Before a receiver is waited for, who may be away.
    if let Some(link) = &options.link {
        control::status(link)?;
    }
    let source = Source::new(&args.files).map_err(fault)?;
    let skipped = source.skipped().to_vec();
    for Skipped { path, why } in &skipped {
        output::warn(&format!("{} is not sent: {why}", path.display()));
    }
    let stop = stop_on_signals().context("cannot wait for signals")?;
    let mut display = Display::new(args.json);
    let sent = ship::send(source, &options, stop.as_fd(), &mut |event| {
        display.show(event)
    });
    display.finish();
    report(&sent.map_err(fault)?, ["sent", "sent again"], args.json)?;
    // As with rsync, an incomplete copy is a failure.
    anyhow::ensure!(
        skipped.is_empty(),
        "not sent, as listed above: {}; everything else has arrived",
        match skipped.len() {
            1 => "1 file".to_owned(),
            files => format!("{files} files"),
        }
    );
    Ok(())
}

/// Runs `airlane recv`.
pub(crate) fn recv(args: &RecvArgs) -> anyhow::Result<()> {
    if !args.folder.is_dir() {
        let folder = args.folder.display();
        return Err(BadInput(format!(
            "{folder} is not a folder: make it, or name another"
        ))
        .into());
    }
    let given = ticket(&args.ticket)?;
    let is_new = given.is_none();
    let options = ReceiveOptions {
        listen: args.listen,
        folder: args.folder.clone(),
        ticket: given.map_or_else(Ticket::new, Ok)?,
        overwrite: args.overwrite,
        stay: args.stay,
        timeout: args.timeout,
    };
    let stop = stop_on_signals().context("cannot wait for signals")?;
    let mut display = Display::new(args.json);
    let mut failed = None;
    let received = ship::receive(&options, stop.as_fd(), &mut |event| match event {
        ShipEvent::Listening(at) => {
            let port = match at.port() {
                PORT => String::new(),
                other => format!(":{other}"),
            };
            output::note(&format!("listening at UDP {at}"));
            if is_new {
                let ticket = options.ticket.to_text();
                output::note(&format!(
                    "at the other end, with this host's name or address as HOST:\n  airlane send FILE HOST{port} --ticket '{}'",
                    *ticket
                ));
            }
        }
        ShipEvent::Done(shipment) => {
            display.finish();
            display = Display::new(args.json);
            failed = report(&shipment, ["received", "received twice"], args.json).err();
        }
        event => display.show(event),
    });
    display.finish();
    received.map_err(fault)?;
    failed.map_or(Ok(()), Err)
}

/// Wrong input has an exit code of its own.
fn fault(error: ShipError) -> anyhow::Error {
    match error {
        ShipError::Input(why) => BadInput(why).into(),
        error => error.into(),
    }
}

fn ticket(args: &TicketArgs) -> anyhow::Result<Option<Ticket>> {
    match (&args.ticket, &args.ticket_file) {
        (Some(text), _) => {
            let ticket = text.parse();
            let ticket = ticket.map_err(|error| {
                BadInput(format!(
                    "--ticket: {error}; copy the whole ticket, in quotes"
                ))
            })?;
            Ok(Some(ticket))
        }
        (None, Some(file)) => Ok(Some(
            Ticket::read(file).map_err(|error| BadInput(error.to_string()))?,
        )),
        (None, None) => Ok(None),
    }
}

/// `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`.
pub(crate) fn resolve(host: &str) -> Result<Vec<SocketAddr>, BadInput> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    // An IPv6 address contains colons, too.
    let is_whole = host
        .rsplit_once(':')
        .is_none_or(|(before, _)| before.contains(':') && !before.ends_with(']'));
    let found = match is_whole {
        true => (bare, PORT).to_socket_addrs(),
        false => host.to_socket_addrs(),
    };
    let found = found.map(Iterator::collect::<Vec<_>>);
    match found {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(BadInput(format!("{host}: the host has no address"))),
        Err(error) => Err(BadInput(format!(
            "{host}: {error}; write a host, or a host and its port, such as station.example:{PORT}"
        ))),
    }
}

fn report(shipment: &Shipment, [verb, twice]: [&str; 2], json: bool) -> anyhow::Result<()> {
    if json {
        return output::print(&(serde_json::to_string(shipment)? + "\n"));
    }
    let Shipment {
        files,
        bytes,
        resumed_bytes,
        took_s,
        goodput_mbps,
        packets,
        again,
        link,
    } = shipment;
    let count = match files.len() {
        1 => "1 file".to_owned(),
        many => format!("{many} files"),
    };
    let before = match resumed_bytes {
        0 => String::new(),
        some => format!(", {} of them before", DecimalBytes(*some)),
    };
    let rate = match bytes == resumed_bytes && *bytes > 0 {
        true => String::new(),
        false => format!(": {goodput_mbps:.1} Mbit/s"),
    };
    let by = link
        .as_deref()
        .map_or_else(String::new, |link| format!("; paced by the link {link}"));
    output::print(&format!(
        "{verb} {count}, {}{before}, in {took_s:.1} s{rate}; {again} of {packets} packets {twice}{by}\n",
        DecimalBytes(*bytes),
    ))
}

/// A bar on a terminal, lines otherwise.
struct Display {
    bar: Option<ProgressBar>,
    next: std::time::Instant,
    quiet: bool,
}

impl Display {
    fn new(quiet: bool) -> Self {
        Self {
            bar: None,
            next: std::time::Instant::now() + EVERY,
            quiet,
        }
    }

    fn show(&mut self, event: ShipEvent) {
        match event {
            ShipEvent::Note(note) => match &self.bar {
                Some(bar) => bar.suspend(|| output::note(&note)),
                None => output::note(&note),
            },
            ShipEvent::Progress(progress) => self.progress(progress),
            _ => {}
        }
    }

    fn progress(&mut self, at: ShipProgress) {
        let ShipProgress { done, total, doing } = at;
        if output::is_watched() {
            let bar = self.bar.get_or_insert_with(|| {
                let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
                let form = "{msg} {bar:30} {decimal_bytes}/{decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left";
                if let Ok(style) = ProgressStyle::with_template(form) {
                    bar.set_style(style);
                }
                // What an earlier attempt transferred must not count towards this one's speed.
                bar.with_message(doing).with_position(done)
            });
            bar.set_length(total);
            bar.set_position(done);
            bar.set_message(doing);
        } else if !self.quiet && std::time::Instant::now() >= self.next {
            self.next += EVERY;
            output::note(&format!(
                "{doing}: {} of {}",
                DecimalBytes(done),
                DecimalBytes(total)
            ));
        }
    }

    fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_port_gets_the_default_port() {
        let at = |text| resolve(text).unwrap()[0].to_string();
        assert_eq!(at("192.0.2.7"), "192.0.2.7:7008");
        assert_eq!(at("192.0.2.7:9"), "192.0.2.7:9");
        assert_eq!(at("2001:db8::7"), "[2001:db8::7]:7008");
        assert_eq!(at("[2001:db8::7]"), "[2001:db8::7]:7008");
        assert_eq!(at("[2001:db8::7]:9"), "[2001:db8::7]:9");
        assert!(
            resolve("192.0.2.7:x")
                .unwrap_err()
                .0
                .contains("station.example:7008")
        );
    }
}
