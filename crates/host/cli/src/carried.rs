//! Which services carried a flow, in words.

use airlane_sim::{FlowService, ServiceShare};

/// A row for each link and way that a service carried: what it is called, and `files 98 %, pages 2 % on radio`. Packets
/// against the main direction have one of their own where they went elsewhere.
pub(crate) fn rows(services: &[FlowService]) -> impl Iterator<Item = (&'static str, String)> {
    services.iter().flat_map(|used| {
        let [there, back] = [&used.there, &used.back].map(|got| shares(got));
        let back = Some(back).filter(|back| *back != there);
        let rows = [("service", Some(there)), ("service back", back)];
        rows.into_iter().filter_map(|(words, shares)| {
            let shares = shares.filter(|shares| !shares.is_empty())?;
            Some((words, format!("{shares} on {}", used.link)))
        })
    })
}

fn shares(got: &[ServiceShare]) -> String {
    match got {
        [only] => only.service.clone(),
        several => {
            let parts = several
                .iter()
                .map(|share| format!("{} {}", share.service, per_cent(share.ratio)));
            parts.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Neither all nor nothing, where something went elsewhere.
fn per_cent(ratio: f64) -> String {
    match 100.0 * ratio {
        less if less < 0.5 => "< 1 %".to_owned(),
        more if more >= 99.5 => "> 99 %".to_owned(),
        share => format!("{share:.0} %"),
    }
}
