//! Admits requests about a node only from the page that this program serves, opened at the address that it printed.
//!
//! The token is in the fragment of that address, which browsers never send. The page sends it in a custom header, which
//! other sites cannot set without permission. A request that may change the node must also carry its origin.

use std::fmt::Write as _;
use std::io;

use subtle::ConstantTimeEq as _;

use super::http::{Answer, Head, TOKEN};

/// The secret of the printed address.
#[derive(Clone)]
pub(super) struct Token(String);

impl Token {
    /// Draws 256 random bits.
    pub(super) fn draw() -> io::Result<Self> {
        let bytes = airlane_live::security::random()?;
        Ok(Self(bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })))
    }

    /// The fragment of the page's address.
    pub(super) fn fragment(&self) -> String {
        format!("#watch={}", self.0)
    }

    /// Whether the request comes from the page, opened with this token. `head` has the host that it was sent to.
    pub(super) fn admits(&self, head: &Head) -> Result<(), Answer> {
        let refused = |why| Err(Answer::refused("403 Forbidden", why));
        let ours = [b"http://", head.header("host").unwrap_or_default()].concat();
        match head.header("origin") {
            Some(origin) if origin != ours => {
                return refused("this request comes from another site than the lab's page");
            }
            // Browsers omit it if a page reads from its own site.
            None if head.method != "GET" => {
                return refused("this request does not say which site it comes from");
            }
            _ => {}
        }
        let same = head
            .header(TOKEN)
            .is_some_and(|token| bool::from(token.ct_eq(self.0.as_bytes())));
        match same {
            true => Ok(()),
            false => refused(
                "open the address that `airlane lab` printed when it started: its end is not the one that is needed",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(token: &Token, method: &str, headers: &str) -> &'static str {
        let request = format!("{method} / HTTP/1.1\r\nHost: localhost:8470\r\n{headers}\r\n\r\n");
        let head = Head::read(request.as_bytes()).unwrap().unwrap();
        match token.admits(&head) {
            Ok(()) => "may",
            Err(answer) => &answer.status[..3],
        }
    }

    #[test]
    fn only_the_page_with_its_token_may_ask() {
        let token = Token::draw().unwrap();
        assert_eq!(token.0.len(), 64);
        assert_ne!(token.0, Token::draw().unwrap().0);
        let right = format!("{TOKEN}: {}", token.0);
        let from = |site: &str| format!("{right}\r\nOrigin: {site}");
        let here = "http://localhost:8470";
        assert_eq!(status(&token, "GET", &right), "may");
        assert_eq!(status(&token, "GET", &from(here)), "may");
        assert_eq!(status(&token, "POST", &from(here)), "may");
        assert_eq!(status(&token, "POST", &right), "403");
        for site in [
            "http://evil.example",
            "http://127.0.0.1:8470",
            "https://localhost:8470",
            "null",
            "",
        ] {
            assert_eq!(status(&token, "POST", &from(site)), "403", "{site}");
            assert_eq!(status(&token, "GET", &from(site)), "403", "{site}");
        }
        let mut other = token.0.clone();
        let last = if other.ends_with('0') { "1" } else { "0" };
        other.replace_range(63.., last);
        for wrong in ["", &other, &token.0[..63], &format!("{}0", token.0)] {
            assert_eq!(
                status(&token, "GET", &format!("{TOKEN}: {wrong}")),
                "403",
                "{wrong}"
            );
        }
        assert_eq!(
            status(&token, "GET", &format!("Authorization: {}", token.0)),
            "403"
        );
    }
}
