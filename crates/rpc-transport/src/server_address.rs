use std::fmt;
use std::str::FromStr;

use crate::{Address, ParseAddressError};

/// Where a server or a proxy is reached, and by which kind of connection: `HOST:PORT` is TCP,
/// `ws://HOST[:PORT][/PATH]` is a WebSocket (feature `websocket`). Without a port it is 80, without a path
/// `/ws`, where a proxy has it. There is no TLS.
///
/// ```
/// use rpc_transport::ServerAddress;
///
/// let address: ServerAddress = "127.0.0.1:9090".parse()?;
/// assert_eq!(address.to_string(), "127.0.0.1:9090");
/// # #[cfg(feature = "websocket")]
/// assert_eq!("ws://farm.example".parse::<ServerAddress>()?.to_string(), "ws://farm.example:80/ws");
/// # Ok::<(), rpc_transport::ParseServerAddressError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerAddress {
    /// By TCP.
    Tcp(Address),
    /// By a WebSocket.
    #[cfg(feature = "websocket")]
    WebSocket(WebSocketAddress),
}

impl From<Address> for ServerAddress {
    fn from(address: Address) -> Self {
        Self::Tcp(address)
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            #[cfg(feature = "websocket")]
            Self::WebSocket(address) => address.fmt(f),
        }
    }
}

/// A text that is no [`ServerAddress`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not the address of a server: {problem}; expected HOST:PORT or ws://HOST:PORT/PATH, \
     for example 127.0.0.1:9090 or ws://127.0.0.1:8888/ws"
)]
pub struct ParseServerAddressError {
    text: String,
    problem: &'static str,
}

impl ParseServerAddressError {
    fn new(text: &str, problem: &'static str) -> Self {
        Self {
            text: text.to_owned(),
            problem,
        }
    }

    fn of_address(text: &str, error: &ParseAddressError) -> Self {
        Self::new(text, error.problem())
    }
}

impl FromStr for ServerAddress {
    type Err = ParseServerAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once("://") {
            None => match text.parse() {
                Ok(address) => Ok(Self::Tcp(address)),
                Err(error) => Err(ParseServerAddressError::of_address(text, &error)),
            },
            #[cfg(feature = "websocket")]
            Some(_) => text.parse().map(Self::WebSocket),
            #[cfg(not(feature = "websocket"))]
            Some(_) => Err(ParseServerAddressError::new(
                text,
                "this program was built without the feature \"websocket\" of rpc-transport",
            )),
        }
    }
}

#[cfg(feature = "websocket")]
pub use websocket::WebSocketAddress;

#[cfg(feature = "websocket")]
mod websocket {
    use super::{Address, FromStr, ParseServerAddressError, fmt};

    /// The address of a WebSocket: `ws://HOST[:PORT][/PATH]`.
    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    pub struct WebSocketAddress {
        address: Address,
        path: String,
    }

    impl WebSocketAddress {
        /// Host and port.
        #[must_use]
        pub fn address(&self) -> &Address {
            &self.address
        }

        /// The path on the host, which begins with `/`, with the query if there is one.
        #[must_use]
        pub fn path(&self) -> &str {
            &self.path
        }
    }

    impl fmt::Display for WebSocketAddress {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "ws://{}{}", self.address, self.path)
        }
    }

    impl FromStr for WebSocketAddress {
        type Err = ParseServerAddressError;

        fn from_str(text: &str) -> Result<Self, Self::Err> {
            const USUAL_PATH: &str = "/ws";
            const USUAL_PORT: u16 = 80;
            let error = |problem| ParseServerAddressError::new(text, problem);
            let rest = match text.split_once("://") {
                Some((scheme, rest)) if scheme.eq_ignore_ascii_case("ws") => rest,
                Some((scheme, _)) if scheme.eq_ignore_ascii_case("wss") => {
                    return Err(error("WebSockets over TLS are not supported"));
                }
                _ => return Err(error("it does not begin with ws://")),
            };
            let (host, path) = match rest.find(['/', '?']) {
                Some(end) => rest.split_at(end),
                None => (rest, USUAL_PATH),
            };
            if !path.starts_with('/') {
                return Err(error("a query has to follow a path"));
            }
            if path.contains('#') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(error("the path has a character that has to be escaped"));
            }
            if host.is_empty() {
                return Err(error("it has no host"));
            }
            if host.contains('@') {
                return Err(error("names of users are not supported"));
            }
            let has_port = host.rfind(':') > host.rfind(']');
            let address = if has_port {
                host.parse()
            } else {
                format!("{host}:{USUAL_PORT}").parse()
            };
            Ok(Self {
                address: address
                    .map_err(|error| ParseServerAddressError::of_address(text, &error))?,
                path: path.to_owned(),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        text.parse::<ServerAddress>().unwrap_err().to_string()
    }

    #[test]
    fn what_has_no_scheme_is_tcp() {
        for text in ["localhost:9090", "[::1]:1"] {
            let address: ServerAddress = text.parse().unwrap();
            assert_eq!(address, text.parse::<Address>().unwrap().into());
            assert_eq!(address.to_string(), text);
        }
        for (text, told) in [("localhost", "it has no port"), (":80", "it has no host")] {
            assert!(problem(text).contains(told), "{}", problem(text));
        }
    }

    #[cfg(feature = "websocket")]
    #[test]
    fn the_address_of_a_websocket_has_a_usual_port_and_path() {
        for (text, whole) in [
            ("ws://127.0.0.1:8888/ws", "ws://127.0.0.1:8888/ws"),
            ("WS://farm.example", "ws://farm.example:80/ws"),
            ("ws://[::1]", "ws://[::1]:80/ws"),
            ("ws://[::1]:8888", "ws://[::1]:8888/ws"),
            ("ws://farm.example/", "ws://farm.example:80/"),
            ("ws://h:1/a/b?c=:@/d", "ws://h:1/a/b?c=:@/d"),
        ] {
            let address: ServerAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), whole, "{text}");
            assert_eq!(whole.parse::<ServerAddress>().unwrap(), address);
            assert!(matches!(address, ServerAddress::WebSocket(_)));
        }
    }

    #[cfg(feature = "websocket")]
    #[test]
    fn other_addresses_are_refused_with_the_reason() {
        for (text, told) in [
            ("wss://farm.example/ws", "over TLS are not supported"),
            ("http://farm.example:80", "does not begin with ws://"),
            ("ws://", "it has no host"),
            ("ws://:80/ws", "it has no host"),
            ("ws:///ws", "it has no host"),
            ("ws://h:0/ws", "1 to 65535"),
            ("ws://::1/ws", "brackets"),
            ("ws://me@h/ws", "names of users"),
            ("ws://h?x", "follow a path"),
            ("ws://h/a b", "escaped"),
            ("ws://h/a#b", "escaped"),
            ("ws://h/\r\nX: y", "escaped"),
        ] {
            assert!(problem(text).contains(told), "{}", problem(text));
        }
    }

    #[cfg(not(feature = "websocket"))]
    #[test]
    fn without_the_feature_it_is_named() {
        let told = problem("ws://127.0.0.1:8888/ws");
        assert!(
            told.contains("the feature \"websocket\" of rpc-transport"),
            "{told}"
        );
    }
}
