//! `airlane scenario` and `airlane study scenario`: make scenario files from other descriptions.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use airlane_base::config::{LONGEST_DATA, LONGEST_TEXT, read_file, read_text};
use airlane_sim::import::{
    ImportError, ImportedApp, ImportedScenario, NetemChoice, from_mahimahi, from_netem,
};
use airlane_study::shipped;
use anyhow::Context as _;

use crate::args::{
    FromMahimahiArgs, FromNetemArgs, ScenarioApp, ScenarioVerb, StudyScenarioArgs, WrittenArgs,
};
use crate::fault::BadInput;
use crate::table::{Align, Table};
use crate::{explain, output, study, world};

/// Runs the verb.
pub(crate) fn scenario(verb: &ScenarioVerb) -> anyhow::Result<()> {
    match verb {
        ScenarioVerb::List => list(),
        ScenarioVerb::Show { name } => show(name),
        ScenarioVerb::FromNetem(args) => netem(args),
        ScenarioVerb::FromMahimahi(args) => mahimahi(args),
    }
}

fn list() -> anyhow::Result<()> {
    let mut table = Table::new([("scenario", Align::Left), ("what it is", Align::Left)]);
    for (name, text) in shipped::scenarios() {
        // A scenario's title says what sets it apart from its neighbours.
        let file: toml::Table = toml::from_str(text)?;
        let title = file.get("name").and_then(toml::Value::as_str);
        table.row([name, title.unwrap_or_default()]);
    }
    output::print(&table.render())
}

fn show(name: &str) -> anyhow::Result<()> {
    let found = shipped::scenarios().find(|(known, _)| *known == name);
    let (_, text) = found.ok_or_else(|| {
        let names: Vec<&str> = shipped::scenarios().map(|(name, _)| name).collect();
        BadInput(format!(
            "no scenario \"{name}\" comes with the program; there are: {}",
            names.join(", ")
        ))
    })?;
    output::print(text)
}

fn netem(args: &FromNetemArgs) -> anyhow::Result<()> {
    let (text, name) = input(&args.input)?;
    let reverse = args.reverse.as_deref().map(input).transpose()?;
    let reverse = reverse.as_ref().map(|(text, _)| text.as_str());
    let choice = NetemChoice {
        device: args.dev.as_deref(),
        class: args.class.as_deref(),
        reverse_device: args.reverse_dev.as_deref(),
        reverse_class: args.reverse_class.as_deref(),
        at: args.at,
        rates: args
            .written
            .output
            .as_deref()
            .and_then(|output| output.file_stem()?.to_str()),
    };
    let import = from_netem(&text, reverse, &choice, &apps(&args.written));
    finish(import, &name, &args.written)
}

fn mahimahi(args: &FromMahimahiArgs) -> anyhow::Result<()> {
    let (text, name) = input(&args.input)?;
    let read =
        |file: &str| read_file(Path::new(file), LONGEST_DATA).map_err(|error| error.to_string());
    let output = args.written.output.as_deref();
    let place = |file: &str| from(output, file).unwrap_or_else(|| file.to_owned());
    let import = from_mahimahi(&text, read, place, &apps(&args.written));
    finish(import, &name, &args.written)
}

/// The path of `file` relative to the scenario `output`; unchanged if the scenario goes to standard
/// output.
fn from(output: Option<&Path>, file: &str) -> Option<String> {
    let folder = output?.parent()?;
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let (folder, file) = (
        folder.canonicalize().ok()?,
        Path::new(file).canonicalize().ok()?,
    );
    let near: PathBuf = file
        .strip_prefix(&folder)
        .map_or(file.clone(), Path::to_owned);
    Some(near.to_str()?.to_owned())
}

/// Literal text, the contents of a file, or standard input; returned with a name for it.
fn input(text: &str) -> anyhow::Result<(String, String)> {
    let path = Path::new(text);
    let (read, name) = match text {
        "-" => {
            let mut all = String::new();
            let read = std::io::stdin()
                .take(LONGEST_TEXT)
                .read_to_string(&mut all)
                .map(|_| all);
            (read, "standard input".to_owned())
        }
        _ if path.is_file() => (read_text(path), text.to_owned()),
        _ => return Ok((text.to_owned(), "the command".to_owned())),
    };
    let read = read.with_context(|| BadInput(format!("cannot read {name}")))?;
    Ok((read, name))
}

fn apps(written: &WrittenArgs) -> Vec<ImportedApp> {
    let app = |app: &ScenarioApp| match app {
        ScenarioApp::File => ImportedApp::File,
        ScenarioApp::Web => ImportedApp::Web,
        ScenarioApp::Voice => ImportedApp::Voice,
    };
    let mut apps: Vec<ImportedApp> = vec![];
    for app in written.app.iter().map(app) {
        if !apps.contains(&app) {
            apps.push(app);
        }
    }
    apps
}

fn finish(
    import: Result<ImportedScenario, ImportError>,
    name: &str,
    written: &WrittenArgs,
) -> anyhow::Result<()> {
    let import = import.map_err(|error| BadInput(format!("{name}: {error}")))?;
    for note in &import.notes {
        output::warn(note);
    }
    if let Some(output) = &written.output {
        for (name, text) in &import.beside {
            let file = output.with_file_name(name);
            output::write(text, Some(&file))?;
            output::note(&format!("wrote the rates to {}", file.display()));
        }
    }
    output::write(&import.text, written.output.as_deref())
}

/// Runs `study scenario`.
pub(crate) fn of_study(args: &StudyScenarioArgs) -> anyhow::Result<()> {
    let works = world::works(&args.studies)?;
    let asked = study::select(works, std::slice::from_ref(&args.id))?;
    let [(work, ids)] = asked.as_slice() else {
        return Err(BadInput(format!("{} is not a single study", args.id)).into());
    };
    let [id] = ids.as_slice() else {
        let ids: Vec<&str> = work.studies.iter().map(|study| study.id.as_str()).collect();
        let ids = ids.join(", ");
        return Err(BadInput(format!(
            "{} is a whole work; name a study of it: {ids}",
            args.id
        ))
        .into());
    };
    let alternative = args.alternative.as_deref();
    let scenario = work.scenario(id, &args.point, alternative, &args.set)?;
    let of = format!("{}/{id} {}", work.id, args.point.join(" "));
    let text = format!("# {}\n{}", of.trim(), explain::to_toml(&scenario)?);
    output::write(&text, args.output.as_deref())
}
