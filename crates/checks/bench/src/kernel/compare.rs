//! Both halves of a point, and the report.

use std::fmt::Write as _;

use airlane_sim::Estimate;

use super::point::{
    Application, Congestion, DELAY_MS, FILE, PAGES, Point, QUEUE, RATE, REPLY, REQUEST,
};

/// The largest allowed difference of the means.
pub const fn limit(congestion: Congestion) -> f64 {
    match congestion {
        Congestion::Reno | Congestion::Cubic => 0.10,
        Congestion::Bbr => 0.15,
    }
}

/// Differences with a known cause.
const CAUSES: [(Application, Congestion, &str); 0] = [];

/// One point in the kernel and in the simulator, over the same seeds.
#[derive(Clone, Debug, serde::Serialize)]
pub struct BesideKernel {
    /// What was run.
    pub point: Point,
    /// By seed: bit/s of the file, or seconds of a page.
    pub kernel: Vec<f64>,
    /// Likewise, in the simulator; for pages over many more seeds.
    pub airlane: Vec<f64>,
}

impl BesideKernel {
    fn means(&self) -> (f64, f64) {
        let mean = |values: &[f64]| Estimate::of(values).map_or(f64::NAN, |estimate| estimate.mean);
        (mean(&self.kernel), mean(&self.airlane))
    }

    /// The simulator's mean against the kernel's: 0.01 is one percent more.
    pub fn gap(&self) -> f64 {
        let (kernel, airlane) = self.means();
        airlane / kernel - 1.0
    }

    /// Standard error of the gap: for files from the differences between runs with the same seed, for pages from the
    /// spread of both.
    pub fn error(&self) -> f64 {
        let error =
            |values: &[f64]| Estimate::of(values).map_or(f64::NAN, |e| e.sd / (e.n as f64).sqrt());
        let spread = match self.point.application {
            Application::File => {
                let pairs = self.kernel.iter().zip(&self.airlane);
                let differences: Vec<f64> =
                    pairs.map(|(kernel, airlane)| airlane - kernel).collect();
                error(&differences)
            }
            Application::Pages => {
                let (kernel, airlane) = (error(&self.kernel), error(&self.airlane));
                (kernel * kernel + airlane * airlane).sqrt()
            }
        };
        spread / self.means().0
    }

    /// The reason for a gap beyond the limit, if known.
    pub fn cause(&self) -> Option<&'static str> {
        let Point {
            application,
            congestion,
            ..
        } = self.point;
        let known = CAUSES
            .iter()
            .find(|(a, c, _)| (*a, *c) == (application, congestion));
        known.map(|(.., cause)| *cause)
    }

    /// Whether the means are close enough, or so uncertain that chance is the likelier reason.
    pub fn is_near(&self) -> bool {
        let limit = limit(self.point.congestion);
        self.gap().abs() <= limit.max(2.0 * self.error())
    }
}

/// The report, by kind of comparison; `missing` are congestion controls that this kernel lacks.
pub fn markdown(all: &[BesideKernel], missing: &[Congestion], kernel: &str) -> String {
    let mut text = format!(
        "# TCP of today: Airlane beside the Linux kernel\n\n\
         Written by `make validate-kernel` on Linux {kernel}: the kernel's endpoints in namespaces, over `airlane air`, \
         beside the profile `modern` over a link of the same name, so that a seed loses the same frames: {RATE}, \
         {DELAY_MS} ms each way, {QUEUE}. A file of {FILE} B; {PAGES} pages of {REPLY} B for requests of {REQUEST} B, a \
         connection each. Where `modern` differs, the simulator has the kernel's defaults: no pacing without BBR, no \
         ECN, sixteen segments acknowledged at once, then delayed by 40 ms, timeouts of 200 ms more than a round \
         trip.\n\n\
         Files are compared seed by seed. Of pages a rare lost SYN decides a run's mean by a second: the simulator's \
         are means of {} times as many runs. A point holds within 10 % for reno and cubic and 15 % for bbr, or within \
         two standard errors; where it does not at first, it has five times as many runs.\n\n",
        Application::Pages.simulated()
    );
    for congestion in missing {
        writeln!(
            text,
            "This kernel has no {}: it was left out.\n",
            congestion.name()
        )
        .expect("a string takes all");
    }
    text.push_str(
        "|application|control|loss|runs|kernel|Airlane|gap ± standard error| |cause|\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for one in all {
        let (kernel, airlane) = one.means();
        let (scale, unit) = match one.point.application {
            Application::File => (1e-6, "Mbit/s"),
            Application::Pages => (1e3, "ms"),
        };
        writeln!(
            text,
            "|{}|{}|{:.2} {unit}|{:.2} {unit}|{:+.1}±{:.1} %|{}|{}|",
            one.point.cells().join("|"),
            one.kernel.len(),
            kernel * scale,
            airlane * scale,
            one.gap() * 100.0,
            one.error() * 100.0,
            if one.is_near() { "holds" } else { "MISSES" },
            one.cause().filter(|_| !one.is_near()).unwrap_or_default(),
        )
        .expect("a string takes all");
    }
    text
}
