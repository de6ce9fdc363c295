//! Which services carried a flow, in words.

use airlane_sim::{FlowService, ServiceShare};

/// `file on radio`, or `files 98 %, pages 2 %, back files on radio` where several carried it, or its answers went elsewhere.
pub(crate) fn text(used: &FlowService) -> String {
    let [there, back] = [&used.there, &used.back].map(|got| shares(got));
    let link = &used.link;
    match (there.is_empty(), back.is_empty()) {
        (false, false) if there != back => format!("{there}, back {back} on {link}"),
        (true, _) => format!("back {back} on {link}"),
        _ => format!("{there} on {link}"),
    }
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
