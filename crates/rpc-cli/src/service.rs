//! Services: what they print, what they log, and how they end.

use std::future::Future;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use anyhow::{Context, Result};
use clap::Args;
use tokio::runtime::{Builder, Runtime};

use crate::stdio;

/// Where a service listens.
#[derive(Debug, Clone, Args)]
pub(crate) struct ListenArgs {
    /// The address to listen at; 0.0.0.0 or :: is all that the machine has
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// The last port to try [default: 9199, or PORT if that is higher]
    #[arg(long, value_name = "PORT")]
    port_end: Option<u16>,
    /// Log nothing but warnings
    #[arg(long)]
    pub(crate) silent: bool,
}

impl ListenArgs {
    /// The ports from `port` on, of which the first free one is taken; 0 lets the system choose.
    pub(crate) fn ports(&self, port: u16) -> RangeInclusive<u16> {
        ports(port, self.port_end)
    }
}

fn ports(port: u16, end: Option<u16>) -> RangeInclusive<u16> {
    /// As far as the reference's services look.
    const LAST: u16 = 9199;
    match (port, end) {
        (0, _) => 0..=0,
        (port, Some(end)) => port..=end,
        (port, None) => port..=port.max(LAST),
    }
}

/// The runtime that services run on.
pub(crate) fn runtime() -> Result<Runtime> {
    let built = Builder::new_multi_thread().enable_all().build();
    built.context("cannot start the runtime")
}

/// Says where a service listens (the one line that it prints), and runs it until it ends by itself, or
/// until somebody wants it to end.
pub(crate) async fn run(address: SocketAddr, service: impl Future<Output = ()>) -> Result<()> {
    // Whoever reads the line may end the service at once.
    let signal = signal().context("cannot wait for signals")?;
    stdio::print(&format!("listening on {address}\n"))?;
    tokio::select! {
        () = service => {}
        name = signal => tracing::info!("{name}: ending"),
    }
    Ok(())
}

/// Waits for what ends a service, and says what it was.
#[cfg(unix)]
fn signal() -> std::io::Result<impl Future<Output = &'static str>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => "interrupted",
            _ = terminate.recv() => "terminated",
        }
    })
}

/// Waits for what ends a service, and says what it was.
#[cfg(not(unix))]
fn signal() -> std::io::Result<impl Future<Output = &'static str>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
        "interrupted"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_of_ports_is_the_usual_one_if_nothing_else_is_said() {
        assert_eq!(ports(9190, None), 9190..=9199);
        assert_eq!(ports(9195, None), 9195..=9199);
        assert_eq!(ports(20000, None), 20000..=20000);
        assert_eq!(ports(9000, Some(10000)), 9000..=10000);
        assert_eq!(ports(0, Some(10000)), 0..=0);
    }
}
