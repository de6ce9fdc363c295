//! Requests and answers of HTTP/1.1, as far as the lab needs them: one of each for a connection.

use std::borrow::Cow;
use std::io::{self, Write};

/// Maximum length of a request before its body, bytes, and number of its headers.
pub(super) const LONGEST: usize = 16 << 10;
const HEADERS: usize = 100;

/// The header that carries the token of `airlane lab NODE`.
pub(super) const TOKEN: &str = "x-airlane-token";
/// Headers that affect a decision. A request with two of the same name is ambiguous and refused.
const ONCE: [&str; 5] = [
    "host",
    "origin",
    TOKEN,
    "content-length",
    "transfer-encoding",
];

/// The page loads everything from here and sends nothing elsewhere. The simulator is WebAssembly in workers that the page
/// creates from blobs.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src blob:; style-src 'self' \
     'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

/// A request without its body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) method: String,
    pub(super) path: String,
    /// The text after `?`, or nothing.
    pub(super) query: String,
    headers: Vec<(String, Vec<u8>)>,
    /// The length of the head in bytes; the body follows.
    pub(super) length: usize,
}

impl Head {
    /// Parses a request; `None` while it is incomplete.
    pub(super) fn read(bytes: &[u8]) -> Option<Result<Self, Answer>> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let length = match request.parse(bytes) {
            Ok(httparse::Status::Complete(length)) if length <= LONGEST => length,
            Ok(httparse::Status::Partial) if bytes.len() < LONGEST => return None,
            Ok(_) => {
                let too_long = format!("a request has at most {LONGEST} bytes of headers");
                return Some(Err(Answer::refused(
                    "431 Request Header Fields Too Large",
                    too_long,
                )));
            }
            Err(error) => return Some(Err(Answer::refused("400 Bad Request", error.to_string()))),
        };
        let headers = request.headers.iter();
        let headers: Vec<_> = headers
            .map(|header| (header.name.to_ascii_lowercase(), header.value.to_vec()))
            .collect();
        for name in ONCE {
            if headers.iter().filter(|(known, _)| known == name).count() > 1 {
                let twice = format!("there are two headers {name}");
                return Some(Err(Answer::refused("400 Bad Request", twice)));
            }
        }
        let target = request.path.unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Some(Ok(Self {
            method: request.method.unwrap_or_default().to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers,
            length,
        }))
    }

    /// The value of a header; those of [`ONCE`] occur at most once.
    pub(super) fn header(&self, name: &str) -> Option<&[u8]> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_slice())
    }

    /// The length of the body in bytes, at most `most`.
    #[cfg(any(feature = "live", test))]
    pub(super) fn body(&self, most: usize) -> Result<usize, Answer> {
        if self.header("transfer-encoding").is_some() {
            let chunked = "the length of a body has to be said: there is no Transfer-Encoding here";
            return Err(Answer::refused("501 Not Implemented", chunked));
        }
        let Some(said) = self.header("content-length") else {
            return Ok(0);
        };
        let digits = !said.is_empty() && said.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(said).ok().filter(|_| digits);
        let length = length
            .ok_or_else(|| Answer::refused("400 Bad Request", "Content-Length is no number"))?;
        // A number that overflows is too large as well.
        match length.parse() {
            Ok(length) if length <= most => Ok(length),
            _ => Err(Answer::refused(
                "413 Content Too Large",
                format!("this takes at most {most} bytes, and {length} were announced"),
            )),
        }
    }
}

/// An answer to a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: &'static str,
    kind: &'static str,
    /// The value of `Cache-Control`.
    cache: &'static str,
    pub(super) body: Cow<'static, [u8]>,
}

impl Answer {
    /// A file of the page.
    pub(super) fn file(kind: &'static str, body: Cow<'static, [u8]>) -> Self {
        Self {
            status: "200 OK",
            kind,
            cache: "no-cache",
            body,
        }
    }

    /// A node's data, as JSON.
    #[cfg(feature = "live")]
    pub(super) fn json(said: &impl serde::Serialize) -> Self {
        match serde_json::to_vec(said) {
            Ok(body) => Self {
                status: "200 OK",
                kind: "application/json",
                cache: "no-store",
                body: body.into(),
            },
            Err(error) => Self::refused("500 Internal Server Error", error.to_string()),
        }
    }

    /// A refusal, with its reason in one sentence.
    pub(super) fn refused(status: &'static str, why: impl Into<String>) -> Self {
        Self {
            status,
            kind: "text/plain",
            cache: "no-store",
            body: (why.into() + "\n").into_bytes().into(),
        }
    }

    /// Writes the answer; `head_only` leaves its body out.
    pub(super) fn write(&self, head_only: bool, out: &mut impl Write) -> io::Result<()> {
        let Self {
            status,
            kind,
            cache,
            body,
        } = self;
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\n\
             Content-Security-Policy: {POLICY}\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: {cache}\r\nConnection: close\r\n\r\n"
        );
        out.write_all(head.as_bytes())?;
        match head_only {
            true => Ok(()),
            false => out.write_all(body),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refusal(request: &str) -> &'static str {
        Head::read(request.as_bytes()).unwrap().unwrap_err().status
    }

    #[test]
    fn requests_are_waited_for_and_bounded() {
        assert_eq!(Head::read(b"GET / HTTP/1.1\r\nHost: loc"), None);
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(LONGEST));
        assert!(refusal(&long).starts_with("431"));
        assert!(refusal(&(long + "\r\n")).starts_with("431"));
        assert!(refusal("\0\0\r\n\r\n").starts_with("400"));
    }

    #[test]
    fn a_header_that_decides_is_there_once() {
        for name in ONCE {
            let request = format!(
                "GET / HTTP/1.1\r\n{name}: 1\r\n{}: 2\r\n\r\n",
                name.to_uppercase()
            );
            assert!(refusal(&request).starts_with("400"), "{name}");
        }
    }

    #[test]
    fn a_body_says_its_length_and_has_a_limit() {
        let body = |header: &str| {
            let request = format!("POST / HTTP/1.1\r\n{header}\r\n\r\n");
            let head = Head::read(request.as_bytes()).unwrap().unwrap();
            head.body(10).map_err(|answer| &answer.status[..3])
        };
        assert_eq!(body("Host: x"), Ok(0));
        assert_eq!(body("Content-Length: 10"), Ok(10));
        for (header, status) in [
            ("Content-Length: 11", "413"),
            ("Content-Length: 99999999999999999999999", "413"),
            ("Content-Length: +1", "400"),
            ("Content-Length:", "400"),
            ("Content-Length: 1, 1", "400"),
            ("Transfer-Encoding: chunked", "501"),
        ] {
            assert_eq!(body(header), Err(status), "{header}");
        }
    }

    #[test]
    fn every_answer_has_the_security_headers() {
        for answer in [
            Answer::file("text/html", b"<p>".as_slice().into()),
            Answer::refused("403 Forbidden", "no"),
        ] {
            let mut bytes = Vec::new();
            answer.write(true, &mut bytes).unwrap();
            let head = String::from_utf8(bytes).unwrap();
            for part in [
                "frame-ancestors 'none'",
                "default-src 'none'",
                "X-Content-Type-Options: nosniff",
                "Referrer-Policy: no-referrer",
                "\r\nConnection: close\r\n\r\n",
            ] {
                assert!(head.contains(part), "{part}: {head}");
            }
            assert!(!head.to_lowercase().contains("access-control"), "{head}");
        }
    }

    proptest! {
        /// Any bytes, in any pieces, give the same request or the same refusal, and no panic.
        #[test]
        fn pieces_are_parsed_like_the_whole(
            bytes in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..400),
                "(GET|POST|X) /[a-z/?=]{0,20} HTTP/1.[01]\r\n((Host|Origin|Content-Length|X-Airlane-Token): ?[ -~]{0,12}\r\n){0,4}(\r\n)?[ -~]{0,20}"
                    .prop_map(String::into_bytes),
            ],
            most in 0..1_000_usize,
        ) {
            let whole = Head::read(&bytes);
            let first = (0..=bytes.len()).find_map(|end| Head::read(&bytes[..end]));
            match (whole, first) {
                (Some(Ok(whole)), Some(Ok(first))) => {
                    prop_assert!(whole.length <= bytes.len());
                    prop_assert!(whole.body(most).map_or(true, |length| length <= most));
                    prop_assert_eq!(whole, first);
                }
                (whole, first) => prop_assert_eq!(whole.map(|w| w.is_ok()), first.map(|f| f.is_ok())),
            }
        }
    }
}
