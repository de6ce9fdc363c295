//! What an operator meets in the first hour: start errors, permissions, files of other tunnels.

use std::fs;
use std::process::{Command, Output};

use airlane_testkit::netns::{Namespace, can_run};
use serde_json::Value;

const AIRLANE: &str = env!("CARGO_BIN_EXE_airlane");

fn airlane(arguments: &[&str]) -> Output {
    Command::new(AIRLANE).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The lines of a JSON log.
fn json(output: &Output) -> Vec<Value> {
    let text = said(output);
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}")))
        .collect()
}

#[test]
fn the_version_is_a_verb_as_well() {
    let version = airlane(&["version"]);
    assert_eq!(version.stdout, airlane(&["--version"]).stdout);
    let said = String::from_utf8(version.stdout).unwrap();
    let (_, commit) = said.split_once(", commit ").unwrap();
    let (commit, protocol) = commit.split_once(", protocol ").unwrap();
    let (protocol, features) = protocol.split_once(", features ").unwrap();
    assert!(protocol.parse::<u8>().is_ok(), "{said}");
    assert_eq!(features.trim(), "live lab screen emulate");
    // The program may have been built before the last commit.
    let git = |arguments: &[&str]| Command::new("git").args(arguments).output();
    let is_checkout = git(&["rev-parse", "HEAD"]).is_ok_and(|head| head.status.success());
    if is_checkout && commit != "unknown" {
        let found = git(&["rev-parse", "--verify", &format!("{commit}^{{commit}}")]).unwrap();
        assert!(found.status.success(), "{said}");
    }
}

const FILE: &str = "schema = 1\nname = \"left\"\ncontrol = { socket = \"FOLDER/left.sock\" }\n\
    tun = { name = \"wire\", addresses = [\"10.7.0.1/24\"] }\n[link]\nrate = \"20 Mbit/s\"\n\
    underlay = { kind = \"udp\", listen = \"127.0.0.1:7007\", peer = \"127.0.0.1:7008\" }\n\
    security = { private-key = \"FOLDER/no.key\", peer-key = \"TjgqYkZ2rXp0wKc5nB1hLmQ8sVdE3uJfGyA7iWoR9CM=\" }\n";

#[test]
fn rate_finds_a_node_by_link_name_as_status_does() {
    for (arguments, code, part) in [
        (
            &["rate=20Mbit/s", "/nowhere/a.sock"][..],
            1,
            "no node answers",
        ),
        (
            &["hill", "rate=20Mbit/s"],
            2,
            "\"hill\": only the rate of a link can be set: `airlane set rate=20Mbit/s`, or `airlane set \
             rate=20Mbit/s NODE`",
        ),
        (&["rate=20Mbit/s", "--link", "farm"], 2, "'--link'"),
        (&["rate=fast", "hill"], 2, "\"rate=fast\""),
    ] {
        let output = airlane(&[&["set"], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(said(&output).contains(part), "{part}: {}", said(&output));
    }
    let output = airlane(&["reload", "hill"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("\"hill\" is no file: a reload reads the file of the link"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_found_rate_is_explained_as_auto() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("left.toml");
    fs::write(&path, FILE.replace("rate = \"20 Mbit/s\"\n", "")).unwrap();
    let explain = |path: &std::path::Path| {
        let output = airlane(&["explain", path.to_str().unwrap()]);
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let text = explain(&path);
    assert!(
        text.contains("rate = \"auto\"") && text.contains("rate-limit = \"found\""),
        "{text}"
    );
    fs::write(&path, &text).unwrap();
    assert_eq!(explain(&path), text);
}

#[test]
fn file_errors_are_json_when_the_log_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("left.toml");
    let write = |rest: &str| {
        fs::write(
            &path,
            format!("schema = 1\nnaem = \"left\"\n{rest}rate = 20\n"),
        )
    };
    let file = path.to_str().unwrap();
    for (verb, rest) in [("air", ""), ("up", "[link]\n")] {
        write(rest).unwrap();
        let refused = airlane(&[verb, file, "--log-format", "json"]);
        assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
        let lines = json(&refused);
        let misspelt = lines.iter().find(|line| line["line"] == 2).unwrap();
        assert_eq!(misspelt["level"], "ERROR");
        assert!(
            misspelt["message"]
                .as_str()
                .unwrap()
                .contains("unknown key `naem`")
        );
    }
    // The same errors in the log for people.
    let refused = airlane(&["up", file]);
    assert!(said(&refused).contains("left.toml:2:1: unknown key `naem`"));
}

#[test]
fn all_obstacles_to_a_start_are_reported_at_once() {
    if !can_run("all_obstacles_to_a_start_are_reported_at_once") {
        return;
    }
    let host = Namespace::new("host").unwrap();
    let other = Namespace::new("other").unwrap();
    host.join("wire", &other, "wire").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("left.toml");
    let directory = folder.path().display().to_string();
    fs::write(&path, FILE.replace("FOLDER", &directory)).unwrap();
    let up = |arguments: &[&str]| {
        let mut command = host.command(AIRLANE);
        command
            .arg("up")
            .arg(&path)
            .args(arguments)
            .output()
            .unwrap()
    };
    // The interface is not a TUN device, and the key is missing.
    let refused = up(&[]);
    let text = said(&refused);
    assert_eq!(refused.status.code(), Some(1), "{text}");
    let errors: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("error: "))
        .collect();
    assert_eq!(errors.len(), 2, "{text}");
    assert!(
        text.contains("wire") && text.contains("airlane keygen"),
        "{text}"
    );
    let lines = json(&up(&["--log-format", "json"]));
    let errors = lines.iter().filter(|line| line["level"] == "ERROR");
    assert_eq!(errors.count(), 2, "{lines:?}");
}

#[test]
fn missing_permission_is_reported() {
    if !can_run("missing_permission_is_reported") {
        return;
    }
    // A folder for root alone, in a mount namespace that ends with the command.
    let script = "mount -t tmpfs tmpfs /run && mkdir -m 700 /run/airlane && \
                  exec setpriv --reuid 1234 --regid 1234 --clear-groups \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh", AIRLANE, "status"]);
    let refused = command.output().unwrap();
    let text = said(&refused);
    assert!(!refused.status.success());
    assert!(
        text.contains("cannot be read") && text.contains("group"),
        "{text}"
    );
    assert!(!text.contains("no link is running"), "{text}");
}

#[test]
fn a_file_of_wireguard_becomes_a_live_file_and_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let key = airlane(&["keygen", &path("old.key")]);
    assert!(key.status.success());
    let private = fs::read_to_string(path("old.key")).unwrap();
    let wg = format!(
        "[Interface]\nPrivateKey = {}\nAddress = 10.0.0.1/24\n[Peer]\n\
         PublicKey = TrMvSoP4jYQlY6RIzBgbssQqY3vxI2Pi+y71lOWWXX0=\nAllowedIPs = 10.0.0.2/32\n\
         Endpoint = 192.0.2.7:51820\nPersistentKeepalive = 25\n",
        private.trim()
    );
    fs::write(path("wg0.conf"), wg).unwrap();
    let (conf, toml) = (path("wg0.conf"), path("wg0.toml"));
    let import = [
        "import", "wg", &conf, "--rate", "20Mbit/s", "--output", &toml,
    ];
    let done = airlane(&import);
    assert!(done.status.success(), "{}", said(&done));
    let explained = airlane(&["explain", &toml]);
    assert!(explained.status.success(), "{}", said(&explained));
    let text = fs::read_to_string(&toml).unwrap();
    assert!(text.contains("keepalive = \"25 s\""), "{text}");
    assert!(!text.contains(private.trim()));
    let public = airlane(&["keygen", "--public", &path("wg0.key")]);
    assert_eq!(public.stdout, key.stdout);
    // A key file with the same key may exist.
    let again = airlane(&import);
    assert!(again.status.success(), "{}", said(&again));
    assert!(
        said(&again).contains("has this key already"),
        "{}",
        said(&again)
    );
    // A different key must not be replaced.
    fs::remove_file(path("wg0.key")).unwrap();
    assert!(airlane(&["keygen", &path("wg0.key")]).status.success());
    let again = airlane(&import);
    assert!(
        said(&again).contains("it stays as it is"),
        "{}",
        said(&again)
    );
    // What a link refuses is reported for the file that was read.
    let wg = fs::read_to_string(&conf).unwrap();
    let twice = wg
        .split_once("[Peer]")
        .unwrap()
        .1
        .replace("10.0.0.2", "10.0.0.3");
    fs::write(&conf, format!("{wg}[Peer]{twice}")).unwrap();
    let wrong = airlane(&import);
    assert_eq!(wrong.status.code(), Some(2));
    for part in [
        "wg0.conf: line 10: this key is that of the peer \"peer1\"",
        "wg0.conf: line 12: the address 192.0.2.7:51820",
    ] {
        assert!(said(&wrong).contains(part), "{part}: {}", said(&wrong));
    }
    assert!(!said(&wrong).contains("wg0.toml"), "{}", said(&wrong));
    fs::write(&conf, "[Interface]\nPrivatKey = x\n").unwrap();
    let wrong = airlane(&import);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        said(&wrong).contains("wg0.conf: line 2: PrivatKey"),
        "{}",
        said(&wrong)
    );
}
