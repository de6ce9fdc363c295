//! Requests to the lab over TCP.

use std::io::Write as _;

use super::*;

/// A lab that runs until the test ends, and its port.
struct Served {
    port: u16,
    fragment: String,
}

impl Served {
    fn new(node: Option<&str>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let args = PageArgs {
            #[cfg(feature = "live")]
            node: node.map(str::to_owned),
            port,
        };
        let _ = node;
        let lab = Lab::new(&args, port).unwrap();
        let fragment = lab.fragment();
        std::thread::spawn(move || serve_on(&listener, lab));
        Self { port, fragment }
    }

    /// Sends a request and reads the answer.
    fn send(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// The status and the body of the answer.
    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (String, String) {
        let length = match (method, body) {
            ("GET", _) | (_, "") => String::new(),
            _ => format!("Content-Length: {}\r\n", body.len()),
        };
        let host = match headers.contains("Host:") {
            true => String::new(),
            false => format!("Host: 127.0.0.1:{}\r\n", self.port),
        };
        let answer = self.send(
            format!("{method} {path} HTTP/1.1\r\n{host}{headers}{length}\r\n{body}").as_bytes(),
        );
        let (head, said) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].to_owned(), said.to_owned())
    }

    fn get(&self, path: &str, host: &str) -> String {
        self.ask("GET", path, &format!("Host: {host}\r\n"), "").0
    }
}

/// The status of the page, which a build without `make site` lacks.
fn found() -> &'static str {
    if SITE.is_empty() { "404" } else { "200" }
}

#[test]
fn only_loopback_hosts_are_answered() {
    let lab = Served::new(None);
    let port = lab.port;
    for host in ["127.0.0.1", "localhost"] {
        assert_eq!(lab.get("/", &format!("{host}:{port}")), found());
        assert_eq!(lab.get("/lab.js?x=1", &format!("{host}:{port}")), found());
        assert_eq!(lab.get("/licences.txt", &format!("{host}:{port}")), found());
    }
    let others = ["127.0.0.1", "127.0.0.1:1", "evil.example", ""].map(str::to_owned);
    for host in others.into_iter().chain([format!("evil.example:{port}")]) {
        assert_eq!(lab.get("/", &host), "421", "{host}");
    }
    let twice = format!("Host: 127.0.0.1:{port}\r\nHost: evil.example\r\n");
    assert_eq!(lab.ask("GET", "/", &twice, "").0, "400");
    assert!(lab.send(b"GET / HTTP/1.1\r\n\r\n").contains(" 421 "));
}

#[test]
fn only_embedded_files_are_served() {
    let lab = Served::new(None);
    let host = format!("localhost:{}", lab.port);
    for path in [
        "/../Cargo.toml",
        "/etc/passwd",
        "//",
        "/%2e%2e/x",
        "/simulator.wasm",
        "/node/state",
    ] {
        assert_eq!(lab.get(path, &host), "404", "{path}");
    }
    assert_eq!(lab.ask("POST", "/", "", "").0, "405");
    assert_eq!(lab.fragment, "");
}

#[cfg(feature = "live")]
mod node {
    use proptest::prelude::*;

    use super::*;

    /// A lab for a node that does not run.
    fn away() -> (Served, String) {
        let lab = Served::new(Some("/nowhere/hill-top.sock"));
        let token = lab.fragment.strip_prefix("#watch=").unwrap();
        let header = format!("X-Airlane-Token: {token}\r\n");
        (lab, header)
    }

    fn from(lab: &Served, host: &str) -> String {
        format!("Origin: http://{host}:{}\r\n", lab.port)
    }

    #[test]
    fn a_wrong_token_is_refused_first_with_one_sentence() {
        let (lab, token) = away();
        let wrong = token.replace(": ", ": 0");
        for (method, path) in [
            ("GET", "state"),
            ("POST", "advice"),
            ("POST", "dry-run"),
            ("POST", "reload"),
            ("GET", "nothing"),
        ] {
            for headers in [String::new(), wrong.clone()] {
                let headers = headers + &from(&lab, "127.0.0.1");
                let (status, said) = lab.ask(method, &format!("/node/{path}"), &headers, "");
                assert_eq!(status, "403", "{path}");
                assert!(
                    said.starts_with("open the address that `airlane lab` printed"),
                    "{said}"
                );
                assert_eq!(said.trim_end().lines().count(), 1, "{said}");
            }
        }
        // A token in the query is ignored, because browsers and servers remember addresses.
        let secret = token.trim_start_matches("X-Airlane-Token: ").trim_end();
        assert_eq!(
            lab.ask("GET", &format!("/node/state?watch={secret}"), "", "")
                .0,
            "403"
        );
        let (_, page) = lab.ask("GET", "/", "", "");
        assert!(!page.contains(secret));
    }

    #[test]
    fn other_sites_are_refused_even_with_the_token() {
        let (lab, token) = away();
        let ask = |method, path, site: &str| lab.ask(method, path, &format!("{token}{site}"), "").0;
        let here = from(&lab, "127.0.0.1");
        assert_eq!(ask("GET", "/node/state", ""), "200");
        assert_eq!(ask("GET", "/node/state", &here), "200");
        assert_eq!(ask("POST", "/node/dry-run", &here), "409");
        assert_eq!(ask("POST", "/node/dry-run", ""), "403");
        for site in [
            "Origin: http://evil.example\r\n",
            "Origin: null\r\n",
            &from(&lab, "localhost"),
        ] {
            assert_eq!(ask("GET", "/node/state", site), "403", "{site}");
            assert_eq!(ask("POST", "/node/reload", site), "403", "{site}");
        }
        // The preflight of another site is not granted.
        let preflight = "OPTIONS /node/reload HTTP/1.1\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n";
        let answer =
            lab.send(format!("{preflight}Host: 127.0.0.1:{}\r\n\r\n", lab.port).as_bytes());
        assert!(
            answer.contains(" 403 ") && !answer.contains("Access-Control"),
            "{answer}"
        );
        let host = format!("Host: evil.example:{}\r\n{token}{here}", lab.port);
        assert_eq!(lab.ask("GET", "/node/state", &host, "").0, "421");
    }

    #[test]
    fn methods_paths_and_lengths_are_checked() {
        let (lab, token) = away();
        let token = token + &from(&lab, "127.0.0.1");
        let ask = |method, path, body: &str| lab.ask(method, path, &token, body);
        for (method, path) in [
            ("POST", "/node/state"),
            ("HEAD", "/node/state"),
            ("GET", "/node/reload"),
            ("GET", "/node/advice"),
            ("PUT", "/node/dry-run"),
        ] {
            assert_eq!(ask(method, path, "").0, "405", "{method} {path}");
        }
        for path in ["/node/", "/node/stat", "/node/state/", "/node/../state"] {
            assert_eq!(ask("GET", path, "").0, "404", "{path}");
        }
        assert_eq!(ask("POST", "/node/dry-run", "x").0, "413");
        let chunked = format!("{token}Transfer-Encoding: chunked\r\n");
        assert_eq!(lab.ask("POST", "/node/reload", &chunked, "").0, "501");
        // The client gets the refusal of a body that is too long to be read.
        let (status, said) = ask("POST", "/node/reload", &"x".repeat(500_000));
        assert_eq!(status, "413", "{said}");
        let (status, said) = ask(
            "POST",
            "/node/reload",
            "{\"changes\":[],\"file\":\"/etc/passwd\"}",
        );
        assert_eq!(
            (&*status, said.contains("unknown field")),
            ("409", true),
            "{said}"
        );
        let (status, said) = ask("POST", "/node/reload", "{\"changes\":[]}");
        assert_eq!(
            (&*status, said.contains("no change is advised")),
            ("409", true),
            "{said}"
        );
        let (status, said) = ask("POST", "/node/advice", "nonsense");
        assert_eq!(
            (&*status, said.contains("first line is missing")),
            ("409", true),
            "{said}"
        );
    }

    #[test]
    fn a_node_that_is_away_is_reported() {
        let (lab, token) = away();
        let deadline = Instant::now() + Duration::from_secs(30);
        let state = loop {
            let (_, said) = lab.ask("GET", "/node/state", &token, "");
            let state: serde_json::Value = serde_json::from_str(&said).unwrap();
            if !state["away"].is_null() || Instant::now() > deadline {
                break state;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let why = state["away"]["why"].as_str().unwrap();
        assert!(why.contains("no node answers there"), "{state}");
        assert!(
            state["status"].is_null() && state["read_only"].is_null(),
            "{state}"
        );
        assert!(
            state["happened"][0]["what"]
                .as_str()
                .unwrap()
                .contains("does not answer")
        );
    }

    #[test]
    fn only_a_page_with_a_node_is_marked() {
        if SITE.is_empty() {
            return;
        }
        let page = |lab: &Served| lab.ask("GET", "/", "", "").1;
        let [plain, marked] = [Served::new(None), away().0].map(|lab| page(&lab));
        let [from, to] = MARK;
        assert_eq!(plain.replace(from, to), marked);
        assert_ne!(plain, marked);
    }

    /// One lab for all cases, since its thread does not end.
    static WATCH: std::sync::OnceLock<Watch> = std::sync::OnceLock::new();

    proptest! {
        /// Any request with the token gets an answer with one of these numbers, and no panic.
        #[test]
        fn no_request_with_the_token_causes_a_panic(
            method in "GET|POST",
            path in "state|advice|dry-run|reload|[a-z]{0,3}",
            query in "(\\?(peer=)?[!-~]{0,9})?",
            body in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..200),
                "\\{\"changes\": ?\\[(\"[a-z]{0,3}\",?){0,3}\\]\\}".prop_map(String::into_bytes),
            ],
        ) {
            let watch = WATCH.get_or_init(|| Watch::begin("/nowhere/hill-top.sock").unwrap());
            let token = watch.fragment().replace("#watch=", "X-Airlane-Token: ");
            let length = if method == "GET" { 0 } else { body.len() };
            let request = format!(
                "{method} /node/{path}{query} HTTP/1.1\r\nHost: localhost:1\r\nOrigin: http://localhost:1\r\n{token}\r\n\
                 Content-Length: {length}\r\n\r\n"
            );
            let head = Head::read(request.as_bytes()).unwrap();
            let answer = head.and_then(|head| watch.call(&head)).map(|(call, length)| watch.answer(call, &body[..length]));
            let status = answer.unwrap_or_else(|refused| refused).status;
            prop_assert!(["200", "400", "404", "405", "409", "413"].contains(&&status[..3]), "{status}");
        }
    }
}
