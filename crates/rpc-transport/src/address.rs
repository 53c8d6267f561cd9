use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// A host and a TCP port. The host is a name or an IP address of either version; an IPv6 address may
/// have a zone (`fe80::1%eth0`).
///
/// ```
/// use rpc_transport::Address;
///
/// let address: Address = "[::1]:9190".parse()?;
/// assert_eq!((address.host(), address.port()), ("::1", 9190));
/// assert_eq!(address.to_string(), "[::1]:9190");
/// # Ok::<(), rpc_transport::ParseAddressError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// An address of its parts; an IPv6 address may stand in brackets.
    #[must_use]
    pub fn new(host: &str, port: u16) -> Self {
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        Self {
            host: bare.unwrap_or(host).to_owned(),
            port,
        }
    }

    /// The host, without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl From<SocketAddr> for Address {
    /// The zone of an IPv6 address becomes the number of its interface.
    fn from(address: SocketAddr) -> Self {
        let host = match address {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
            _ => address.ip().to_string(),
        };
        Self {
            host,
            port: address.port(),
        }
    }
}

/// A text that is no [`Address`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not an address: {problem}; expected HOST:PORT, for example 127.0.0.1:9190 or [::1]:9190"
)]
pub struct ParseAddressError {
    text: String,
    problem: &'static str,
}

impl ParseAddressError {
    /// What is wrong with it.
    pub(crate) fn problem(&self) -> &'static str {
        self.problem
    }
}

impl FromStr for Address {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |problem| ParseAddressError {
            text: text.to_owned(),
            problem,
        };
        let (host, port) = text
            .rsplit_once(':')
            .ok_or_else(|| error("it has no port"))?;
        let port = match port.parse() {
            Ok(0) | Err(_) => return Err(error("the port is not a number from 1 to 65535")),
            Ok(port) => port,
        };
        let bracketed = host.starts_with('[') && host.ends_with(']');
        match host {
            "" | "[]" => Err(error("it has no host")),
            _ if bracketed && !is_ipv6(&host[1..host.len() - 1]) => {
                Err(error("what stands in brackets is no IPv6 address"))
            }
            _ if !bracketed && host.contains([':', '[', ']']) => {
                Err(error("an IPv6 address has to stand in brackets"))
            }
            _ => Ok(Self::new(host, port)),
        }
    }
}

fn is_ipv6(text: &str) -> bool {
    let without_zone = text.split_once('%').map_or(text, |(address, _)| address);
    matches!(without_zone.parse(), Ok(IpAddr::V6(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        for text in [
            "localhost:9190",
            "127.0.0.1:1",
            "[::1]:65535",
            "[fe80::1%eth0]:80",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn takes_the_address_of_a_socket() {
        for text in ["127.0.0.1:1", "[::1]:65535", "[fe80::1%7]:80"] {
            let socket: SocketAddr = text.parse().unwrap();
            assert_eq!(Address::from(socket), text.parse().unwrap());
        }
    }

    #[test]
    fn refuses_with_the_reason() {
        for (text, problem) in [
            ("localhost", "no port"),
            ("localhost:", "1 to 65535"),
            ("localhost:0", "1 to 65535"),
            ("localhost:70000", "1 to 65535"),
            (":80", "no host"),
            ("[]:80", "no host"),
            ("::1:80", "brackets"),
            ("[localhost]:80", "no IPv6"),
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
