use tungstenite::handshake::client::{Response, generate_key};
use tungstenite::handshake::derive_accept_key;
use tungstenite::handshake::machine::TryParse;
use tungstenite::http::StatusCode;

use crate::{Address, WebSocketAddress};

/// Longest head of an answer.
const LONGEST_HEAD: usize = 16 << 10;

/// A peer that did not make a WebSocket of a connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpgradeError {
    /// The peer speaks something else.
    #[error("expected an answer of HTTP, found {begin:?}")]
    NotHttp {
        /// The first bytes of the answer, as text.
        begin: String,
    },
    /// The peer refused.
    #[error("expected the status 101 Switching Protocols, found {status}{}", Reason(*status))]
    Refused {
        /// The status of its answer.
        status: u16,
    },
    /// The peer agreed, but not to what we asked for.
    #[error("expected {expected:?} as {header} of the answer, found {found:?}")]
    Header {
        /// The name of the header.
        header: &'static str,
        /// What has to be there.
        expected: String,
        /// What is; nothing if it is missing.
        found: Option<String>,
    },
    /// The head of the answer has no end.
    #[error("expected an answer with a head of at most {LONGEST_HEAD} bytes, found a longer one")]
    TooLong,
}

/// The meaning of a status, with a blank before it.
struct Reason(u16);

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let status = StatusCode::from_u16(self.0).ok();
        match status.and_then(|status| status.canonical_reason()) {
            Some(reason) => write!(f, " {reason}"),
            None => Ok(()),
        }
    }
}

/// How a client makes a WebSocket of a connection.
#[derive(Debug)]
pub(crate) struct Upgrade {
    /// What proves that the peer read our key.
    accept: String,
    /// What came of the answer.
    answer: Vec<u8>,
}

impl Upgrade {
    /// Begins, with a request to send.
    pub(crate) fn new(to: &WebSocketAddress) -> (Self, String) {
        let key = generate_key();
        let request = format!(
            "GET {path} HTTP/1.1\r\n\
             Host: {host}\r\n\
             Connection: Upgrade\r\n\
             Upgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: {key}\r\n\r\n",
            path = to.path(),
            host = without_zone(to.address()),
        );
        let upgrade = Self {
            accept: derive_accept_key(key.as_bytes()),
            answer: Vec::new(),
        };
        (upgrade, request)
    }

    /// Takes what came. When the answer is complete and good, gives what came behind it.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, UpgradeError> {
        self.answer.extend_from_slice(bytes);
        match Response::try_parse(&self.answer) {
            Ok(Some((head, response))) => {
                self.check(&response)?;
                Ok(Some(self.answer.split_off(head)))
            }
            Ok(None) if self.answer.len() > LONGEST_HEAD => Err(UpgradeError::TooLong),
            Ok(None) => Ok(None),
            Err(_) => Err(self.not_http()),
        }
    }

    fn not_http(&self) -> UpgradeError {
        const ENOUGH: usize = 32;
        let begin = &self.answer[..self.answer.len().min(ENOUGH)];
        UpgradeError::NotHttp {
            begin: String::from_utf8_lossy(begin).into_owned(),
        }
    }

    fn check(&self, response: &Response) -> Result<(), UpgradeError> {
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let status = response.status().as_u16();
            return Err(UpgradeError::Refused { status });
        }
        for (header, expected) in [("Upgrade", "websocket"), ("Connection", "upgrade")] {
            let any = |value: &str| {
                let mut words = value.split(',').map(str::trim);
                words.any(|word| word.eq_ignore_ascii_case(expected))
            };
            check(response, header, expected, any)?;
        }
        let same = |value: &str| value == self.accept;
        check(response, "Sec-WebSocket-Accept", &self.accept, same)?;
        // We asked for none, so that we would not understand what comes.
        for header in ["Sec-WebSocket-Extensions", "Sec-WebSocket-Protocol"] {
            if let Some(found) = value(response, header).filter(|found| !found.is_empty()) {
                return Err(UpgradeError::Header {
                    header,
                    expected: String::new(),
                    found: Some(found),
                });
            }
        }
        Ok(())
    }
}

fn check(
    response: &Response,
    header: &'static str,
    expected: &str,
    is_good: impl Fn(&str) -> bool,
) -> Result<(), UpgradeError> {
    let found = value(response, header);
    if found.as_deref().is_some_and(is_good) {
        return Ok(());
    }
    Err(UpgradeError::Header {
        header,
        expected: expected.to_owned(),
        found,
    })
}

fn value(response: &Response, header: &str) -> Option<String> {
    let value = response.headers().get(header)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// A zone means something on this machine only.
fn without_zone(address: &Address) -> Address {
    let host = address.host();
    let bare = host.split_once('%').map_or(host, |(bare, _)| bare);
    Address::new(bare, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key and the proof of RFC 6455, section 1.3.
    const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

    fn upgrade() -> Upgrade {
        assert_eq!(derive_accept_key(b"dGhlIHNhbXBsZSBub25jZQ=="), ACCEPT);
        Upgrade {
            accept: ACCEPT.to_owned(),
            answer: Vec::new(),
        }
    }

    fn answer(headers: &str) -> String {
        format!("HTTP/1.1 101 Any Words\r\n{headers}\r\n")
    }

    fn good() -> String {
        answer(&format!(
            "upgrade: WebSocket\r\nCONNECTION: keep-alive, Upgrade\r\nSec-WebSocket-Accept: {ACCEPT}\r\n"
        ))
    }

    #[test]
    fn the_request_is_what_the_standard_asks_for() {
        let to = "ws://[fe80::1%eth0]:8080/rpc?x=1".parse().unwrap();
        let (upgrade, request) = Upgrade::new(&to);
        let key = request.split("Sec-WebSocket-Key: ").nth(1).unwrap().trim();
        assert_eq!(upgrade.accept, derive_accept_key(key.as_bytes()));
        let rest = request.replace(key, "KEY");
        assert_eq!(
            rest,
            "GET /rpc?x=1 HTTP/1.1\r\nHost: [fe80::1]:8080\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: KEY\r\n\r\n"
        );
        let parsed = tungstenite::handshake::server::Request::try_parse(request.as_bytes());
        let (_, parsed) = parsed.unwrap().unwrap();
        tungstenite::handshake::server::create_response(&parsed).unwrap();
    }

    #[test]
    fn an_answer_may_come_in_any_two_pieces_and_what_is_behind_it_is_kept() {
        let good = good();
        let whole = [good.as_bytes(), b"behind"].concat();
        for cut in 0..=whole.len() {
            let mut upgrade = upgrade();
            let (first, second) = whole.split_at(cut);
            match upgrade.receive(first).unwrap() {
                None => {
                    assert!(cut < good.len());
                    assert_eq!(upgrade.receive(second).unwrap().unwrap(), b"behind");
                }
                Some(behind) => assert_eq!([&behind, second].concat(), b"behind"),
            }
        }
    }

    #[test]
    fn other_answers_are_refused_with_the_reason() {
        let both = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
        let proof = format!("Sec-WebSocket-Accept: {ACCEPT}\r\n");
        for (answer, reason) in [
            (
                "HTTP/1.1 404 Gone Fishing\r\n\r\n".to_owned(),
                "found 404 Not Found",
            ),
            ("HTTP/1.1 200 OK\r\n\r\n".to_owned(), "found 200 OK"),
            ("HTTP/1.1 799 Strange\r\n\r\n".to_owned(), "found 799"),
            (
                answer(""),
                r#"expected "websocket" as Upgrade of the answer, found None"#,
            ),
            (
                answer("Upgrade: h2c\r\n"),
                r#"expected "websocket" as Upgrade of the answer, found Some("h2c")"#,
            ),
            (
                answer("Upgrade: websocket\r\n"),
                r#""upgrade" as Connection"#,
            ),
            (
                answer(both),
                "as Sec-WebSocket-Accept of the answer, found None",
            ),
            (
                answer(&format!(
                    "{both}Sec-WebSocket-Accept: {}\r\n",
                    "x".repeat(28)
                )),
                "as Sec-WebSocket-Accept of the answer, found Some(",
            ),
            (
                answer(&format!(
                    "{both}{proof}Sec-WebSocket-Extensions: permessage-deflate\r\n"
                )),
                "found Some(\"permessage-deflate\")",
            ),
            (
                answer(&format!("{both}{proof}Sec-WebSocket-Protocol: chat\r\n")),
                "as Sec-WebSocket-Protocol of the answer, found Some(\"chat\")",
            ),
            (
                "SSH-2.0-OpenSSH\r\n".to_owned(),
                "expected an answer of HTTP, found \"SSH-2.0",
            ),
            (
                "HTTP/1.0 101 Old\r\n\r\n".to_owned(),
                "expected an answer of HTTP",
            ),
        ] {
            let error = upgrade()
                .receive(answer.as_bytes())
                .unwrap_err()
                .to_string();
            assert!(error.contains(reason), "{answer:?}: {error}");
        }
    }

    #[test]
    fn a_head_without_an_end_is_given_up() {
        let mut upgrade = upgrade();
        let endless = format!("HTTP/1.1 101 Any Words\r\nX: {}", "x".repeat(LONGEST_HEAD));
        let error = upgrade.receive(endless.as_bytes()).unwrap_err();
        assert!(matches!(error, UpgradeError::TooLong), "{error}");
    }
}
