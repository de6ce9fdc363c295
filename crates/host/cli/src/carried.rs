//! Names the services that carried a flow.

use airlane_sim::{FlowService, ServiceShare};

/// For each link, a row with its label and text such as `files 98 %, pages 2 % on radio`. The
/// reverse direction gets a row of its own where other services carried it.
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

/// Never prints 0 % or 100 %, because several services carried packets.
fn per_cent(ratio: f64) -> String {
    match 100.0 * ratio {
        less if less < 0.5 => "< 1 %".to_owned(),
        more if more >= 99.5 => "> 99 %".to_owned(),
        share => format!("{share:.0} %"),
    }
}
