//! What the client reports with `tracing`, as text.

use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

/// Collects what is reported on this thread while the guard lives: `name{field=value …}` for a span,
/// `field=value …` for an event.
pub(crate) fn collect() -> (DefaultGuard, Receiver<String>) {
    let (sender, receiver) = channel();
    let collector = Collector {
        sender,
        next_id: AtomicU64::new(1),
    };
    (tracing::subscriber::set_default(collector), receiver)
}

struct Collector {
    sender: Sender<String>,
    next_id: AtomicU64,
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("rpc_tracker_client")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut text = Text(String::new());
        span.record(&mut text);
        let _ = self.sender.send(format!(
            "{}{{{}}}",
            span.metadata().name(),
            text.0.trim_end()
        ));
        Id::from_u64(self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        let _ = self.sender.send(text.0.trim_end().to_owned());
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}
