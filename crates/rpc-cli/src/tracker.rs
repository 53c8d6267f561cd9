//! Where the tracker is, and reaching it.

use std::time::Duration;

use anyhow::Result;
use rpc_tracker_client::blocking::TrackerClient;
use rpc_tracker_client::{ConnectRetry, TrackerClientError, TrackerClientOptions};
use rpc_transport::Address;

use crate::stdio;
use crate::usage::wrong_usage;

pub(crate) const HOST_VARIABLE: &str = "TVM_TRACKER_HOST";
pub(crate) const PORT_VARIABLE: &str = "TVM_TRACKER_PORT";
/// What the reference's tools assume.
pub(crate) const DEFAULT_HOST: &str = "127.0.0.1";
pub(crate) const DEFAULT_PORT: u16 = 9190;

/// From one attempt to reach a tracker to the next.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// What the environment says of the tracker. An empty variable counts as none.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    host: Option<String>,
    port: Option<String>,
}

impl Environment {
    pub(crate) fn read() -> Self {
        Self::new(|name| std::env::var_os(name)?.into_string().ok())
    }

    fn new(variable: impl Fn(&str) -> Option<String>) -> Self {
        let filled = |name| variable(name).filter(|value| !value.is_empty());
        Self {
            host: filled(HOST_VARIABLE),
            port: filled(PORT_VARIABLE),
        }
    }

    /// The address in these variables, if one of them is set; what is missing is the default.
    pub(crate) fn address(&self) -> Result<Option<Address>> {
        match (&self.host, &self.port) {
            (None, None) => Ok(None),
            _ => self.address_or(None, None).map(Some),
        }
    }

    /// The address of these options; what is missing is in the variables, or else the default.
    pub(crate) fn address_or(&self, host: Option<&str>, port: Option<u16>) -> Result<Address> {
        let host = host.or(self.host.as_deref()).unwrap_or(DEFAULT_HOST);
        let port = match (port, &self.port) {
            (Some(port), _) => port,
            (None, Some(text)) => port_of(text)?,
            (None, None) => DEFAULT_PORT,
        };
        Ok(Address::new(host, port))
    }
}

fn port_of(text: &str) -> Result<u16> {
    match text.parse() {
        Ok(0) | Err(_) => Err(wrong_usage(format!(
            "{PORT_VARIABLE}={text}: the port is not a number from 1 to 65535"
        ))),
        Ok(port) => Ok(port),
    }
}

/// A client of the tracker at `address`, which answers already. While it refuses connections, it is
/// tried again for as long as `patience`, and the user is told.
pub(crate) fn reach(
    address: &Address,
    patience: Duration,
) -> Result<TrackerClient, TrackerClientError> {
    let once = TrackerClientOptions::default().with_connect_retry(None);
    let client = TrackerClient::with_options(address.clone(), once.clone());
    match client.ping() {
        Err(TrackerClientError::Transport(error)) if error.is_refused() && !patience.is_zero() => {
            stdio::note(&format!(
                "the tracker at {address} refuses connections; trying for {patience:?}"
            ));
        }
        result => return result.map(|()| client),
    }
    let retry = ConnectRetry {
        interval: RETRY_INTERVAL,
        total: patience,
    };
    let client = TrackerClient::with_options(address.clone(), once.with_connect_retry(Some(retry)));
    client.ping().map(|()| client)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(host: &'static str, port: &'static str) -> Environment {
        Environment::new(|name| {
            let value = if name == HOST_VARIABLE { host } else { port };
            Some(value.to_owned())
        })
    }

    fn text(address: Result<Address>) -> String {
        address.unwrap().to_string()
    }

    #[test]
    fn options_count_more_than_the_environment_and_that_more_than_defaults() {
        let set = environment("farm", "9000");
        assert_eq!(text(set.address_or(Some("here"), Some(1))), "here:1");
        assert_eq!(text(set.address_or(None, Some(1))), "farm:1");
        assert_eq!(text(set.address_or(Some("here"), None)), "here:9000");
        let unset = environment("", "");
        assert_eq!(text(unset.address_or(None, None)), "127.0.0.1:9190");
    }

    #[test]
    fn one_variable_is_enough_for_an_address() {
        assert_eq!(environment("", "").address().unwrap(), None);
        let address = |host, port| environment(host, port).address().unwrap().unwrap();
        assert_eq!(address("farm", "").to_string(), "farm:9190");
        assert_eq!(address("", "9000").to_string(), "127.0.0.1:9000");
        assert_eq!(address("::1", "9000").to_string(), "[::1]:9000");
    }

    #[test]
    fn a_bad_port_is_named_with_its_variable() {
        for port in ["abc", "0", "70000", "-1", "9190 "] {
            let error = environment("", port).address().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("TVM_TRACKER_PORT={port}:")),
                "{error}"
            );
        }
    }
}
