//! From options to a session.

use std::time::Duration;

use anyhow::Result;
use rpc_session::SessionOptions;
use rpc_session::blocking::RemoteSession;
use rpc_tracker_client::blocking::TrackerClient;
use rpc_tracker_client::{Diagnosis, RequestOptions};
use rpc_transport::ServerAddress;

use crate::args::PeerArgs;
use crate::stdio;
use crate::tracker::{self, Environment};
use crate::usage::wrong_usage;

/// Opens a session: on the server that is named, else on a device that the tracker grants.
pub(crate) fn open(peer: &PeerArgs) -> Result<RemoteSession> {
    if let Some(server) = &peer.server {
        return connect(server, peer);
    }
    let address = match &peer.tracker {
        Some(address) => address.clone(),
        None => Environment::read().address()?.ok_or_else(|| {
            wrong_usage(
                "an address is needed: that of a tracker (--tracker HOST:PORT, or TVM_TRACKER_HOST \
                 and TVM_TRACKER_PORT) or of a server (--server HOST:PORT); \
                 `tvm-rpc demo` needs none",
            )
        })?,
    };
    if peer.key.is_empty() {
        return Err(wrong_usage(
            "a tracker has to be told which kind of device is wanted: --key KEY, or TVM_TRACKER_KEY",
        ));
    }
    let tracker = tracker::reach(&address, peer.patience.connect_timeout)?;
    request(&tracker, peer)
}

fn connect(server: &ServerAddress, peer: &PeerArgs) -> Result<RemoteSession> {
    let mut options = session_options(peer).with_session_timeout(peer.session_timeout);
    if let Some(wait) = peer.wait_timeout {
        // A server that is busy lets us wait for the handshake.
        options.connect.handshake_timeout = wait;
    }
    Ok(RemoteSession::connect_server(server, &peer.key, &options)?)
}

fn request(tracker: &TrackerClient, peer: &PeerArgs) -> Result<RemoteSession> {
    // Whatever else is the matter, the request tells.
    let diagnosis = tracker.check(&peer.key);
    if let Diagnosis::NoServer { .. } | Diagnosis::AllBusy { .. } = diagnosis {
        let until = match peer.wait_timeout {
            Some(limit) => format!("for {limit:?}"),
            None => "until one is free".to_owned(),
        };
        stdio::note(&format!("key {:?}: {diagnosis}; waiting {until}", peer.key));
    }
    let mut request = RequestOptions::new(&peer.key).with_session_timeout(peer.session_timeout);
    if let Some(priority) = peer.priority {
        request = request.with_priority(priority);
    }
    if let Some(limit) = peer.wait_timeout {
        request = request.with_wait_timeout(limit);
    }
    let options = session_options(peer);
    Ok(RemoteSession::request(tracker, &request, &options)?)
}

fn session_options(peer: &PeerArgs) -> SessionOptions {
    let options = SessionOptions::default();
    match limit(peer.reply_timeout) {
        Some(limit) if limit < options.init_timeout => options.with_init_timeout(limit),
        _ => options,
    }
    .with_reply_timeout(limit(peer.reply_timeout))
}

/// 0 is no limit.
fn limit(time: Duration) -> Option<Duration> {
    Some(time).filter(|time| !time.is_zero())
}
