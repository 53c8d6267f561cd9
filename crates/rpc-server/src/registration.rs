//! How a server stays registered at its tracker.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder};
use rpc_proto::tracker::{Port, ServerAddr, ServerInfo};
use rpc_tracker_client::asynchronous::TrackerConnection;
use rpc_tracker_client::{TrackerClientError, TrackerClientOptions};
use rpc_transport::{Address, Chain};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::{info, warn};

use crate::server::Shared;

/// Offers the device at the tracker, for ever: whatever fails is tried again, after pauses that grow.
pub(crate) async fn run(shared: &Shared, tracker: &Address, local_addr: SocketAddr) -> Infallible {
    if local_addr.ip().is_loopback()
        && !is_loopback(tracker)
        && shared.options.custom_addr.is_none()
    {
        warn!(
            %tracker, %local_addr,
            "clients on other machines will be sent here by the tracker, and this server listens to its own machine alone"
        );
    }
    let port = local_addr.port();
    loop {
        let mut pauses = pauses(shared.options.longest_pause);
        loop {
            let mut registered = false;
            let Err(error) = stay(shared, tracker, port, &mut registered).await;
            shared.offers().connection_lost();
            let pause = pauses.next().unwrap_or(shared.options.longest_pause);
            warn!(%tracker, error = Chain(&error).to_string(), "not registered; trying again in {pause:?}");
            sleep(pause).await;
            if registered {
                // The tracker was there, so that it may be back soon.
                break;
            }
        }
    }
}

fn is_loopback(address: &Address) -> bool {
    let ip = address.host().parse();
    address.host() == "localhost" || ip.is_ok_and(|ip: IpAddr| ip.to_canonical().is_loopback())
}

/// Pauses between tries: from a second, doubled up to the longest, and up to as much again.
pub(crate) fn pauses(longest: Duration) -> impl Iterator<Item = Duration> {
    const FIRST: Duration = Duration::from_secs(1);
    ExponentialBuilder::new()
        .with_min_delay(FIRST.min(longest))
        .with_max_delay(longest)
        .without_max_times()
        .with_jitter()
        .build()
}

/// Registers, and keeps the offers at the tracker up to date until that fails.
async fn stay(
    shared: &Shared,
    tracker: &Address,
    port: u16,
    registered: &mut bool,
) -> Result<Infallible, TrackerClientError> {
    let key = &shared.options.key;
    let custom_addr = shared.options.custom_addr.as_deref();
    let options = TrackerClientOptions::default();
    let mut connection = TrackerConnection::connect(tracker, &options).await?;
    let info = ServerInfo {
        key: format!("server:{key}"),
        addr: Some(ServerAddr {
            host: custom_addr.map(str::to_owned),
            port: Port::Number(port.into()),
        }),
    };
    connection.update_info(info).await?;
    info!(%tracker, "registered");
    let mut looks = interval(shared.options.poll_interval);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        // The lock is gone when the tracker is asked.
        let next = || shared.offers().next_to_announce(random);
        while let Some(match_key) = next() {
            connection.put(key, port, &match_key, custom_addr).await?;
            shared.offers().announced(&match_key);
        }
        tokio::select! {
            () = shared.offers_changed.notified() => {}
            _ = looks.tick() => {
                let pending = connection.pending_match_keys().await?;
                *registered = true;
                for match_key in shared.offers().pending(&pending, Instant::now()) {
                    warn!(match_key, "granted, but nobody came; the device is offered again");
                }
            }
        }
    }
}

/// A number from 0 up to 1 that nobody can guess.
fn random() -> f64 {
    /// Bits that a float holds exactly.
    const BITS: u32 = 53;
    let bits = getrandom::u64().expect("the system has random numbers") >> (u64::BITS - BITS);
    #[expect(clippy::cast_precision_loss, reason = "a float holds as many bits")]
    let number = bits as f64;
    number / 2_f64.powi(BITS.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_are_from_0_up_to_1_and_differ() {
        let numbers: Vec<_> = (0..1000).map(|_| random()).collect();
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
        assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn loopback_is_known() {
        let is_loopback = |host| super::is_loopback(&Address::new(host, 9190));
        for host in [
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "::ffff:127.0.0.1",
            "localhost",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["10.0.0.1", "0.0.0.0", "::2", "tracker.example"] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn pauses_grow_up_to_the_longest() {
        let longest = Duration::from_secs(4);
        let least = [1, 2, 4, 4, 4].map(Duration::from_secs);
        for (pause, least) in pauses(longest).zip(least) {
            assert!(least <= pause && pause <= 2 * least, "{pause:?} {least:?}");
        }
        assert!(pauses(Duration::from_millis(10)).next() < Some(Duration::from_millis(21)));
    }
}
