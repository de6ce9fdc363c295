//! `airlane trace fit`.

use airlane_channel::blocks::Generator;
use airlane_fit::{Family, Fit, Options, Verdict, choose, fit};
use serde::Serialize;

use crate::args::{FitFamily, TraceFitArgs};
use crate::fault::BadInput;
use crate::output;
use crate::progress::ProgressLine;
use crate::table::{Align, Table};
use crate::trace::blocks;

/// Version of the JSON that is printed.
const SCHEMA: u32 = 1;
/// Number of deviations that are printed of a model, the largest first.
const WORST: usize = 3;

#[derive(Serialize)]
struct Fitted {
    schema: u32,
    blocks: u32,
    bursts: usize,
    duration_s: f64,
    erasure_rate: f64,
    models: Vec<Model>,
    /// The simplest model that fits well, as a scenario names it; absent if none does.
    chosen: Option<String>,
    summary: String,
}

#[derive(Serialize)]
struct Model {
    family: String,
    /// The model, as a scenario names it.
    model: String,
    verdict: &'static str,
    /// Length of a trace that could decide the fit, s.
    needs_s: Option<f64>,
    p_value: f64,
    log_likelihood: f64,
    bic: f64,
    /// Log-likelihood gain over a Bernoulli model on the second half, after a fit to the first
    /// half.
    held_out_gain_per_1000_blocks: Option<f64>,
    parameters: Vec<Parameter>,
    deviations: Vec<Deviation>,
}

#[derive(Serialize)]
struct Parameter {
    name: String,
    value: f64,
    low_95: Option<f64>,
    high_95: Option<f64>,
    at_bound: bool,
}

#[derive(Serialize)]
struct Deviation {
    of: String,
    trace: f64,
    model: f64,
    standard_deviations: f64,
}

impl Model {
    fn of(fit: &Fit) -> Self {
        let (verdict, needs_s) = match fit.verdict {
            Verdict::Good => ("good", None),
            Verdict::Poor => ("poor", None),
            Verdict::TooShort(needs) => ("too-short-to-tell", Some(needs.as_secs_f64())),
        };
        let parameters = fit.parameters.iter().map(|parameter| Parameter {
            name: parameter.name.clone(),
            value: parameter.value,
            low_95: parameter.interval.map(|[low, _]| low),
            high_95: parameter.interval.map(|[_, high]| high),
            at_bound: parameter.at_bound,
        });
        let deviations = fit
            .deviations
            .iter()
            .take(WORST)
            .map(|deviation| Deviation {
                of: deviation.of.clone(),
                trace: deviation.trace,
                model: deviation.model,
                standard_deviations: deviation.deviations,
            });
        Self {
            family: fit.family.to_string(),
            model: written(&fit.model),
            verdict,
            needs_s,
            p_value: fit.p_value,
            log_likelihood: fit.log_likelihood,
            bic: fit.bic,
            held_out_gain_per_1000_blocks: fit.held_out,
            parameters: parameters.collect(),
            deviations: deviations.collect(),
        }
    }
}

/// Runs `trace fit`.
pub(crate) fn run(args: &TraceFitArgs) -> anyhow::Result<()> {
    let file = args.file.display();
    let blocks = blocks::read(&args.file)?;
    let options = Options {
        samples: args.samples,
        seed: args.seed,
    };
    let all = [
        FitFamily::Bernoulli,
        FitFamily::Gilbert,
        FitFamily::GilbertElliott,
        FitFamily::Markov,
        FitFamily::OnOff,
    ];
    let families = if args.models.is_empty() {
        &all[..]
    } else {
        &args.models
    };
    let progress = ProgressLine::new("fitting", families.len() as u64);
    let mut fits = Vec::new();
    for (at, family) in families.iter().enumerate() {
        progress.at(at as u64, families.len() as u64);
        let family = match family {
            FitFamily::Bernoulli => Family::Bernoulli,
            FitFamily::Gilbert => Family::Gilbert,
            FitFamily::GilbertElliott => Family::GilbertElliott,
            FitFamily::Markov => Family::Hidden(args.states),
            FitFamily::OnOff => Family::OnOff,
        };
        let found = fit(&blocks, family, options);
        fits.push(found.map_err(|error| BadInput(format!("{file}: {error}")))?);
    }
    drop(progress);
    let fitted = Fitted {
        schema: SCHEMA,
        blocks: blocks.len(),
        bursts: blocks.bursts().len(),
        duration_s: blocks.duration().as_secs_f64(),
        erasure_rate: blocks.erasure_rate(),
        models: fits.iter().map(Model::of).collect(),
        chosen: choose(&fits).map(|fit| written(&fit.model)),
        summary: summary(&fits, &file.to_string()),
    };
    if args.json {
        return output::print(&format!("{}\n", serde_json::to_string_pretty(&fitted)?));
    }
    output::print(&render(&fitted))
}

/// The model as a person would write it: numbers have no more digits than a trace can support.
fn written(model: &Generator) -> String {
    let text = model.to_string();
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let mut short = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(is_number) {
        let (before, tail) = rest.split_at(at);
        let end = tail.find(|c| !is_number(c)).unwrap_or(tail.len());
        short.push_str(before);
        match tail[..end].parse::<f64>() {
            Ok(value) => short.push_str(&digits(value)),
            Err(_) => short.push_str(&tail[..end]),
        }
        rest = &tail[end..];
    }
    short + rest
}

/// Five significant digits, without an exponent.
fn digits(value: f64) -> String {
    let rounded: f64 = format!("{value:.4e}").parse().unwrap_or(value);
    rounded.to_string()
}

/// The conclusion, in a sentence or two.
fn summary(fits: &[Fit], file: &str) -> String {
    if let Some(fit) = choose(fits) {
        return format!(
            "The trace may well be of {}: of the model's own traces {:.0} % are further from it. Use it as\n  errors = {{ kind \
             = \"blocks\", model = \"{}\" }}",
            fit.family,
            fit.p_value * 100.0,
            written(&fit.model)
        );
    }
    let replay = format!("errors = {{ kind = \"blocks\", file = \"{file}\" }}");
    let needs = fits.iter().filter_map(|fit| match fit.verdict {
        Verdict::TooShort(needs) => Some(needs),
        _ => None,
    });
    match needs.min() {
        Some(needs) => format!(
            "The trace is too short to tell which model it is of: about {} of such a link would do. Until then replay it:\n  {replay}",
            airlane_base::Duration::from_secs(needs.as_secs_f64() as u64 + 1)
        ),
        None => format!("No model fits; replay the trace itself:\n  {replay}"),
    }
}

fn shown(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        tiny if tiny < 0.001 => format!("{value:.1e}"),
        large if large >= 1000.0 => format!("{value:.0}"),
        _ => format!("{value:.4}"),
    }
}

fn render(fitted: &Fitted) -> String {
    use std::fmt::Write as _;
    let heads = ["p", "BIC", "held out"].map(|head| (head, Align::Right));
    let mut table = Table::new(
        [("model", Align::Left)]
            .into_iter()
            .chain(heads)
            .chain([("verdict", Align::Left)]),
    );
    for model in &fitted.models {
        let held = model.held_out_gain_per_1000_blocks;
        table.row([
            model.family.clone(),
            format!("{:.2}", model.p_value),
            format!("{:.0}", model.bic),
            held.map_or("-".to_owned(), |gain| format!("{gain:+.2}")),
            model.verdict.replace('-', " "),
        ]);
    }
    let mut text = format!(
        "{} blocks in {:.0} s, {} bursts, {:.4} erased\n\n{}",
        fitted.blocks,
        fitted.duration_s,
        fitted.bursts,
        fitted.erasure_rate,
        table.render()
    );
    for model in &fitted.models {
        let _ = writeln!(text, "\n{}", model.family);
        for parameter in &model.parameters {
            let range = match (parameter.low_95, parameter.high_95) {
                (Some(low), Some(high)) => format!("{} to {}", shown(low), shown(high)),
                _ if parameter.at_bound => "at its bound".to_owned(),
                _ => "not fixed by this trace".to_owned(),
            };
            let _ = writeln!(
                text,
                "  {:<16} {:>10.4}   {range}",
                parameter.name, parameter.value
            );
        }
        if model.verdict == "poor" {
            let worst = model.deviations.iter().map(|of| {
                format!(
                    "{} is {:.4}, the model has {:.4}",
                    of.of, of.trace, of.model
                )
            });
            let worst: Vec<String> = worst.collect();
            let _ = writeln!(text, "  differs: {}", worst.join("; "));
        }
    }
    let _ = writeln!(text, "\n{}", fitted.summary);
    text
}
