//! Describes the link of a recording in words.

use std::fmt::Write as _;

use airlane_advise::{Assumption, Link, Way};
use airlane_fit::{Capacity, LinkFit, LossModel, Note};

use crate::quantity::{Estimate, Unit};
use crate::table::{Align, Table};

/// A table of the link's directions, followed by the remarks.
pub fn describe(name: &str, fit: &LinkFit, link: &Link) -> String {
    let heads = [
        "frames",
        "lost",
        "by a full queue",
        "loss of the link",
        "carries",
    ];
    let heads = heads.map(|head| (head, Align::Right));
    let mut table = Table::new([("", Align::Left)].into_iter().chain(heads));
    let name = match name {
        "" => "this end",
        name => name,
    };
    let (near, far) = name.split_once(" and ").unwrap_or((name, "the other end"));
    for (way, ends) in [(&fit.out, (near, far)), (&fit.into, (far, near))] {
        let Some(way) = way else { continue };
        let loss = Estimate {
            half_width: (way.loss_error > 0.0).then_some(2.0 * way.loss_error),
            ..Estimate::single(way.loss.mean())
        };
        let loss = match way.loss {
            LossModel::None => "none".to_owned(),
            _ => loss.show(Unit::Ratio).to_string(),
        };
        table.row([
            format!("{} to {}", ends.0, ends.1),
            way.frames.to_string(),
            way.lost.to_string(),
            way.lost_at_full_queue.to_string(),
            loss,
            carries(&way.capacity),
        ]);
    }
    let round_trip = fit.round_trip.map_or(String::new(), |time| {
        let time = Estimate::single(time.as_secs_f64()).show(Unit::Seconds);
        format!(", round trip {time}")
    });
    let seconds = fit.span.as_secs_f64();
    let mut text = format!("{name}: {seconds:.1} s{round_trip}\n\n{}\n", table.render());
    for remark in remarks(fit, link) {
        let _ = writeln!(text, "- {remark}");
    }
    text
}

fn carries(capacity: &Capacity) -> String {
    match capacity {
        Capacity::Constant(rate) => rate.to_string(),
        Capacity::AtLeast(rate) => format!("at least {rate}"),
        Capacity::Steps { rates, .. } => {
            let least = rates.iter().min().copied();
            let most = rates.iter().max().copied();
            match least.zip(most) {
                Some((least, most)) => format!("{least} to {most}"),
                None => "-".to_owned(),
            }
        }
    }
}

/// The remarks on a fit, a sentence each.
pub fn remarks(fit: &LinkFit, link: &Link) -> Vec<String> {
    let mut remarks = vec![];
    let both = fit.out.is_some() && fit.into.is_some();
    for (name, way) in [("out", &fit.out), ("in", &fit.into)] {
        let Some(way) = way else { continue };
        let whose = if both {
            format!("{name}: ")
        } else {
            String::new()
        };
        if let LossModel::TwoState {
            good,
            bad,
            loss_good,
            loss_bad,
        } = way.loss
        {
            let percent = |p: f64| Estimate::single(p).show(Unit::Ratio);
            remarks.push(format!(
                "{whose}losses come in bursts: {} of the frames for {} on average, and {} for {} between them",
                percent(loss_bad),
                Estimate::single(bad.as_secs_f64()).show(Unit::Seconds),
                percent(loss_good),
                Estimate::single(good.as_secs_f64()).show(Unit::Seconds),
            ));
        }
        if let Capacity::Steps { known, .. } = way.capacity {
            let known = known * 100.0;
            let rest = match known < 99.5 {
                true => format!(
                    "; it was seen for {known:.0} % of the time, and is taken to stay the same in between"
                ),
                false => String::new(),
            };
            remarks.push(format!("{whose}its rate changes{rest}"));
        }
        remarks.extend(
            way.notes
                .iter()
                .map(|note| format!("{whose}{}", said(note))),
        );
    }
    remarks.extend(link.assumed.iter().map(assumed));
    remarks
}

fn said(note: &Note) -> String {
    let percent = |p: &f64| Estimate::single(*p).show(Unit::Ratio).to_string();
    match note {
        Note::Short {
            events,
            bursts,
            needs,
        } => {
            let what = if *bursts { "bursts" } else { "lost frames" };
            format!(
                "the recording is short: {events} {what}; about {needs} of such a link would do"
            )
        }
        Note::Idle { covered } => format!(
            "frames sample {} of the time: bursts cannot be told from single losses, so the mean is used",
            percent(covered)
        ),
        Note::GrowsWithLoad { light, heavy } => format!(
            "loss grows with load, {} to {}: a policer or a shared medium, which is not simulated; a rate below it may be better than any repair",
            percent(light),
            percent(heavy)
        ),
        Note::Changed { first, second } => format!(
            "the link changed: {} of the frames were lost in the first half, {} in the second; advice is for their mean",
            percent(first),
            percent(second)
        ),
        Note::NeverFilled => {
            "no queue was seen: the link carries what it was given, and perhaps more".to_owned()
        }
    }
}

/// The direction that a remark is about, if it is not about both.
fn of_way(way: Option<Way>) -> &'static str {
    match way {
        None => "",
        Some(Way::Out) => "out: ",
        Some(Way::In) => "in: ",
    }
}

fn assumed(assumption: &Assumption) -> String {
    match assumption {
        Assumption::OtherDirection => {
            "one end was recorded: the other direction is assumed to be like this one; a recording of both ends shows both".to_owned()
        }
        Assumption::RoundTrip(time) => {
            format!("the round trip is assumed to be {time}; --round-trip sets it, and a recording of both ends shows it")
        }
        Assumption::Rate { way, rate } => {
            format!("{}the rate is assumed to be {rate}", of_way(*way))
        }
        Assumption::Queue { way, size } => format!(
            "{}no queue was seen full: it is assumed to hold {} kB",
            of_way(*way),
            size.as_bytes() / 1_000
        ),
    }
}
