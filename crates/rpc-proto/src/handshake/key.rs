use std::fmt;
use std::time::Duration;

const ROLE: &str = "client:";
const TIMEOUT: &str = "-timeout=";

/// The key that a client names in its handshake: a match key, and options for the session.
///
/// Prints as it goes on the wire: `client:MATCHKEY`, or `client:MATCHKEY -timeout=60`.
///
/// ```
/// use std::time::Duration;
/// use rpc_proto::handshake::SessionKey;
///
/// let key = SessionKey::new("rasp4b:0.25")?.with_timeout(Duration::from_millis(2500));
/// assert_eq!(key.to_string(), "client:rasp4b:0.25 -timeout=2.5");
/// # Ok::<(), rpc_proto::handshake::KeyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionKey {
    match_key: String,
    timeout: Option<Duration>,
    /// Options that this crate does not know, as they came.
    unknown: Vec<String>,
}

/// A key or an option that a handshake cannot carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The match key has white space inside, which would start an option.
    #[error("match key {match_key:?} holds white space, where a handshake's options would start")]
    WhiteSpace {
        /// The match key.
        match_key: String,
    },
    /// The key does not start with `client:`, so it is nobody who asks for a session.
    #[error("expected a key that starts with `client:`, found {found:?}")]
    NotAClient {
        /// The first word of the key.
        found: String,
    },
    /// The session timeout is not a time.
    #[error(
        "session timeout: expected 0 (none) or a finite number of seconds from 1e-9, found {found}"
    )]
    Timeout {
        /// The timeout, as it came.
        found: String,
    },
}

impl SessionKey {
    /// A key without options. A server without a tracker takes its own key for the match key; that
    /// one may be empty.
    ///
    /// # Errors
    ///
    /// [`KeyError::WhiteSpace`].
    pub fn new(match_key: impl Into<String>) -> Result<Self, KeyError> {
        let match_key = match_key.into();
        if match_key.contains(separates) {
            return Err(KeyError::WhiteSpace { match_key });
        }
        Ok(Self {
            match_key,
            timeout: None,
            unknown: Vec::new(),
        })
    }

    /// Asks the server to end the session after this time; zero means never.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
        self
    }

    /// Reads the key of a client, as a server does: words split at white space, the first one names
    /// the match key, of the options the last `-timeout=` counts. Unknown ones are kept, and printed
    /// again, for who passes the key on.
    ///
    /// # Errors
    ///
    /// [`KeyError::NotAClient`] and [`KeyError::Timeout`].
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut words = text.split(separates).filter(|word| !word.is_empty());
        let first = words.next().unwrap_or_default();
        let match_key = first
            .strip_prefix(ROLE)
            .ok_or_else(|| KeyError::NotAClient {
                found: first.to_owned(),
            })?;
        let mut key = Self {
            match_key: match_key.to_owned(),
            timeout: None,
            unknown: Vec::new(),
        };
        for word in words {
            let Some(seconds) = word.strip_prefix(TIMEOUT) else {
                key.unknown.push(word.to_owned());
                continue;
            };
            let number = seconds.parse().map_err(|_| KeyError::Timeout {
                found: format!("{seconds:?}"),
            })?;
            key = key.with_timeout(session_timeout(number)?);
        }
        Ok(key)
    }

    /// The match key.
    #[must_use]
    pub fn match_key(&self) -> &str {
        &self.match_key
    }

    /// The time after which the server shall end the session.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ROLE}{}", self.match_key)?;
        for option in &self.unknown {
            write!(f, " {option}")?;
        }
        let Some(timeout) = self.timeout else {
            return Ok(());
        };
        // Some servers read digits only and others end at an exponent, so that whole seconds have no
        // point and nothing has an exponent.
        write!(f, " {TIMEOUT}{}", timeout.as_secs())?;
        match timeout.subsec_nanos() {
            0 => Ok(()),
            nanos => write!(f, ".{}", format!("{nanos:09}").trim_end_matches('0')),
        }
    }
}

/// A session timeout from a number of seconds; 0 is none. Parts of a nanosecond are rounded.
///
/// # Errors
///
/// [`KeyError::Timeout`] if the number is negative, not finite, too large for a [`Duration`], or so
/// small that it would round to "none".
pub fn session_timeout(seconds: f64) -> Result<Duration, KeyError> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|timeout| seconds == 0.0 || !timeout.is_zero())
        .ok_or_else(|| KeyError::Timeout {
            found: seconds.to_string(),
        })
}

/// Where the reference server splits a key: Python counts the separators 1C to 1F as white space.
fn separates(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn printed(seconds: f64) -> String {
        SessionKey::new("x1")
            .unwrap()
            .with_timeout(session_timeout(seconds).unwrap())
            .to_string()
    }

    #[test]
    fn whole_seconds_have_no_point_and_nothing_has_an_exponent() {
        assert_eq!(printed(0.0), "client:x1");
        assert_eq!(printed(-0.0), "client:x1");
        assert_eq!(printed(60.0), "client:x1 -timeout=60");
        assert_eq!(printed(7.25), "client:x1 -timeout=7.25");
        assert_eq!(printed(0.1), "client:x1 -timeout=0.1");
        assert_eq!(printed(0.00001), "client:x1 -timeout=0.00001");
        assert_eq!(printed(1e10), "client:x1 -timeout=10000000000");
    }

    #[test]
    fn nonsense_for_a_timeout_is_refused() {
        for seconds in [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            -1.0,
            1e30,
            1e-12,
        ] {
            let error = session_timeout(seconds).unwrap_err();
            assert!(matches!(error, KeyError::Timeout { .. }), "{seconds}");
        }
        for text in ["abc", "", "inf", "nan", "-1", "1s", "1e400"] {
            let error = SessionKey::parse(&format!("client:x1 -timeout={text}")).unwrap_err();
            assert!(matches!(error, KeyError::Timeout { .. }), "{text}");
        }
        assert_eq!(
            SessionKey::parse("client:x1 -timeout=abc")
                .unwrap_err()
                .to_string(),
            "session timeout: expected 0 (none) or a finite number of seconds from 1e-9, found \"abc\"",
        );
    }

    #[test]
    fn a_server_reads_what_clients_write() {
        let read = |text| {
            let key = SessionKey::parse(text).unwrap();
            (key.match_key().to_owned(), key.timeout())
        };
        let seconds = |seconds| Some(Duration::from_secs_f64(seconds));
        assert_eq!(read("client:x1"), ("x1".into(), None));
        assert_eq!(read("client:"), (String::new(), None));
        assert_eq!(
            read(" client:127.0.0.1:5555:0.5 "),
            ("127.0.0.1:5555:0.5".into(), None)
        );
        assert_eq!(read("client:x1 -timeout=60"), ("x1".into(), seconds(60.0)));
        assert_eq!(
            read("client:x1\t-foo=1 -timeout=10.0"),
            ("x1".into(), seconds(10.0))
        );
        assert_eq!(
            read("client:x1 -timeout=1e-05"),
            ("x1".into(), seconds(0.00001))
        );
        assert_eq!(
            read("client:x1 -timeout=1 -timeout=1e3"),
            ("x1".into(), seconds(1000.0))
        );
        assert_eq!(read("client:x1 -timeout=0"), ("x1".into(), None));
    }

    #[test]
    fn unknown_options_are_kept() {
        let key = SessionKey::parse("client:x1 -color=red  -timeout=60\t-deep").unwrap();
        assert_eq!(key.timeout(), Some(Duration::from_secs(60)));
        assert_eq!(key.to_string(), "client:x1 -color=red -deep -timeout=60");
        assert_eq!(SessionKey::parse(&key.to_string()), Ok(key));
    }

    #[test]
    fn only_clients_ask_for_sessions() {
        for (text, first) in [
            ("server:x1", "server:x1"),
            ("x1", "x1"),
            ("", ""),
            ("  ", ""),
        ] {
            let found = first.to_owned();
            assert_eq!(
                SessionKey::parse(text),
                Err(KeyError::NotAClient { found }),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_match_key_has_no_white_space() {
        for match_key in ["a b", "a\n", "\u{1f}", "a\u{a0}b"] {
            let expected = KeyError::WhiteSpace {
                match_key: match_key.to_owned(),
            };
            assert_eq!(SessionKey::new(match_key), Err(expected));
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again(key in "[^\\s\u{1c}-\u{1f}\u{85}]*", quarters in 0..1u64 << 50) {
            let key = SessionKey::new(key)?.with_timeout(Duration::from_millis(250 * quarters));
            prop_assert_eq!(SessionKey::parse(&key.to_string())?, key);
        }

        #[test]
        fn no_text_is_fatal(text in any::<String>()) {
            let _ = SessionKey::parse(&text);
            let _ = SessionKey::parse(&format!("client:{text} -timeout={text}"));
        }
    }
}
