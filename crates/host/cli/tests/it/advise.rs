//! `airlane advise` as users meet it: a simulated link is recorded at both ends, fitted and asked
//! about.

use std::path::Path;
use std::process::{Command, Output};

use airlane_base::Duration;
use airlane_channel::trace::{FrameId, Trace, TraceRecord};
use serde_json::Value;

#[path = "../../../../world/advise/tests/recorded.rs"]
mod recorded;

fn airlane(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_airlane"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("CLICOLOR_FORCE")
        .output()
        .expect("the program was built for this test")
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", err(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A link that loses one frame in twenty.
const LINK: &str = "rate = '3 Mbit/s'\ndelay = '20 ms'\nqueue = '60 kB'\nerrors = { kind = 'uniform', rate = 0.05 }";

/// A folder with a recording, `link.trace`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let trace = recorded::recorded(LINK, 30, 1);
    std::fs::write(folder.path().join("link.trace"), trace.to_bytes()).unwrap();
    folder
}

#[test]
fn a_recording_becomes_a_link_and_advice_for_it() {
    let folder = folder();
    let at = folder.path();
    let fit = out(&airlane(at, &["trace", "fit", "link.trace", "--json"]));
    let fit: Value = serde_json::from_str(&fit).unwrap();
    let number = |path: &str| fit.pointer(path).and_then(Value::as_f64).unwrap();
    assert!((0.035..0.065).contains(&number("/out/loss_ratio")), "{fit}");
    assert!(
        (2.8e6..3.1e6).contains(&number("/out/rate_mean_bps")),
        "{fit}"
    );
    assert!((0.038..0.05).contains(&number("/round_trip_s")), "{fit}");
    let text = out(&airlane(at, &["trace", "fit", "link.trace"]));
    assert!(
        text.contains("errors = ") && text.contains("\"uniform\""),
        "{text}"
    );

    let file = "schema = 1\ntun = { addresses = [\"10.7.0.1/24\"] }\n[link]\nunderlay = { kind = \"udp\", listen = \
                \"192.0.2.1:7007\", peer = \"192.0.2.2:7007\" }\nsecurity = \"none\"\n[[link.services]]\nnumber = 1\nname = \"plain\"\nrate = 1.0\n\
                scheme = { kind = \"default\" }\n";
    std::fs::write(at.join("hill.toml"), file).unwrap();
    let few = ["--runs", "3", "--for", "8s"];
    let ask = [
        "advise",
        "link.trace",
        "--file",
        "hill.toml",
        "--write",
        "new.toml",
    ];
    // What helps has a price for calls: the price is named, and paid only if the user asks for the
    // benefit.
    let priced = out(&airlane(at, &[&ask[..4], &few].concat()));
    assert!(
        priced.contains("The default is for you if this is worth its price: file"),
        "{priced}"
    );
    assert!(!priced.contains("no application gains"), "{priced}");
    let few_wanted = ["--runs", "3", "--for", "8s", "--want", "call-loss<=2%"];
    let text = out(&airlane(at, &[&ask[..], &few_wanted].concat()));
    for part in [
        "hill to farm",
        "without Airlane",
        "your file",
        "± 95 % interval",
        "Is it worth it?",
        "Senders with BBR",
        "Advice: take \"the default\"",
        "-scheme = { kind = \"default\" }",
        "reload new.toml --dry-run",
        "Again: airlane advise link.trace",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let new = std::fs::read_to_string(at.join("new.toml")).unwrap();
    assert!(
        new.contains("192.0.2.1:7007") && !new.contains("plain"),
        "{new}"
    );
    out(&airlane(at, &["explain", "new.toml"]));

    let ask = [
        "advise",
        "link.trace",
        "--apps",
        "pages,call",
        "--search=6",
        "--picture",
        "link.svg",
    ];
    let searched = out(&airlane(at, &[&ask[..], &few].concat()));
    assert!(searched.contains("pages, 95 % within"), "{searched}");
    let picture = std::fs::read_to_string(at.join("link.svg")).unwrap();
    for part in [
        "<svg",
        "the default",
        "calls younger",
        "call, lost",
        "hill and farm",
        "</svg>",
    ] {
        assert!(picture.contains(part), "{part} in\n{picture}");
    }
    assert!(
        !picture.contains("NaN") && !picture.contains("inf"),
        "{picture}"
    );

    let check = |goals: &str| {
        let ask = ["check", "link.trace", "--want", goals];
        airlane(at, &[&ask[..], &few].concat())
    };
    let met = check("file>=0.5Mbit/s,call-loss<=5%,pages-p95<=20s");
    assert_eq!(met.status.code(), Some(0), "{}", err(&met));
    assert!(out(&met).contains("met"));
    let missed = check("file>=20Mbit/s,call-loss<=5%");
    assert_eq!(missed.status.code(), Some(1));
    assert!(
        err(&missed).contains("missed: file>=20Mbit/s"),
        "{}",
        err(&missed)
    );
}

#[test]
fn recordings_without_advice_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let refused = |arguments: &[&str], part: &str| {
        let output = airlane(at, arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            err(&output)
        );
        assert!(
            err(&output).contains(part),
            "{arguments:?}: {}",
            err(&output)
        );
    };
    std::fs::write(at.join("no.trace"), b"airtrax\x01\x02").unwrap();
    refused(&["advise", "no.trace"], "this is no trace");
    refused(&["advise", "missing.trace"], "cannot read missing.trace");
    // One frame per half second, from the number of frames and their spacing.
    let received = |every_ms: u64, frames: u64| {
        let records =
            (0..frames)
                .filter(|number| number % 50 != 7)
                .map(|number| TraceRecord::Received {
                    at: Duration::from_millis(every_ms * number),
                    frame: FrameId { key: 1, number },
                    len: 1_000,
                });
        Trace {
            near: records.collect(),
            ..Trace::default()
        }
    };
    let save = |name: &str, trace: &Trace| std::fs::write(at.join(name), trace.to_bytes()).unwrap();
    save("idle.trace", &received(500, 2_000));
    refused(&["advise", "idle.trace"], "idle");
    refused(&["check", "idle.trace", "--want", "pages<=1s"], "idle");
    save("few.trace", &received(5, 300));
    refused(&["trace", "fit", "few.trace"], "at least 1000");
    save("short.trace", &received(5, 1_200));
    let text = out(&airlane(at, &["trace", "fit", "short.trace"]));
    for part in [
        "the recording is short",
        "one end was recorded",
        "--round-trip sets it",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    refused(
        &["advise", "short.trace", "--apps", "mail"],
        "file, upload, pages and call",
    );
    refused(
        &["advise", "short.trace", "--want", "pages>=1s"],
        "have a most",
    );
    refused(
        &["advise", "short.trace", "--want", "upload>=1Mbit/s"],
        "not simulated",
    );
    refused(&["advise", "short.trace", "--for", "1s"], "at least 5 s");
    refused(&["advise", "short.trace", "--search=0"], "1..=2000");
    #[cfg(feature = "live")]
    {
        std::fs::write(at.join("link.toml"), "schema = 1\n").unwrap();
        let goal = ["--want", "pages<=1s"];
        refused(&[&["check", "link.toml"], &goal[..]].concat(), "link.toml");
        refused(
            &[&["check", "link.toml", "short.trace"], &goal[..]].concat(),
            "recorded by itself",
        );
    }
    refused(
        &["trace", "fit", "short.trace", "--models", "gilbert"],
        "erased blocks",
    );
    std::fs::write(at.join("bad.toml"), "[link]\nservices = 3\n").unwrap();
    refused(&["advise", "short.trace", "--file", "bad.toml"], "the file");
}
