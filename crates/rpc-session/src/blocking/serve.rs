//! Serving one connection on the caller's own thread, and who may end it.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rpc_transport::blocking::Stream;
use rpc_transport::{Deadline, Step, TransportError};

use super::dual::serve::constructor::Constructors;
use super::dual::serve::endpoint::Serving;
use super::wire::Wire;
use crate::{ServeError, ServeOptions, session_expired};

/// When the time is up, an answer may take so long, then the last words, and then the client to hear them.
const MOMENT: Duration = Duration::from_millis(500);

/// Ends a session that is being served when its time is up, from another thread than the one that
/// serves it. A clone is the same.
///
/// The function that the session is running goes on until it returns. If it may run for ever, it belongs
/// into a process of its own, which can be ended.
#[derive(Debug, Clone, Default)]
pub struct Expiry(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// An answer is complete, or the connection is not served any more.
    changed: Condvar,
    watch: Option<Box<Watch>>,
}

/// Hears that a long answer begins (`true`) and that it is complete.
type Watch = dyn Fn(bool) + Send + Sync;

/// An answer of more bytes is long. A shorter one leaves in one piece, so that this process cannot end in
/// the middle of it as long as its client listens.
const SHORT: u64 = 16 << 10;

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.fmt(f)
    }
}

#[derive(Debug, Default)]
struct State {
    /// A connection is being served.
    serving: bool,
    /// A connection was served, or was told that it is too late.
    over: bool,
    /// The same connection, for the thread that ends it.
    connection: Option<(Stream, ServeOptions)>,
    /// An answer is being written.
    answering: bool,
    /// It is a long one.
    long: bool,
    expired: Option<Duration>,
}

impl Expiry {
    /// One that tells, on the thread that serves, when a long answer begins (`true`) and when it is complete.
    /// In between, nobody else can tell the client anything.
    #[must_use]
    pub fn watched(watch: impl Fn(bool) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared {
            watch: Some(Box::new(watch)),
            ..Shared::default()
        }))
    }

    /// Tells the client that the time of `limit` is up, and closes the connection. When an answer is on
    /// its way, it has a moment to arrive first; the client is told nothing in the middle of one. To
    /// expire again does nothing.
    ///
    /// Before a session is being served, or after it, this keeps it from being served any more; it has a
    /// moment to begin, so that its client can be told. A stream
    /// whose carrier has no clone for this thread ends where its next answer would begin.
    pub fn expire(&self, limit: Duration) {
        let mut state = self.lock();
        if state.expired.is_some() {
            return;
        }
        // From here on no answer begins.
        state.expired = Some(limit);
        let Some((mut stream, options)) = state.connection.take() else {
            // The thread that is about to serve it tells the client.
            drop(self.wait_while(state, |state| !state.serving && !state.over));
            return;
        };
        let state = self.wait_while(state, |state| state.answering);
        if !state.answering {
            drop(state);
            tell(&mut stream, &options, limit);
            // The thread that serves it hears the client out.
            drop(self.wait_while(self.lock(), |state| state.serving));
        }
        stream.close();
    }

    fn wait_while<'s>(
        &self,
        state: MutexGuard<'s, State>,
        mut condition: impl FnMut(&mut State) -> bool,
    ) -> MutexGuard<'s, State> {
        let waited = self
            .0
            .changed
            .wait_timeout_while(state, MOMENT, |state| condition(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// This connection is being served from now on, unless the time is up already: then the client is
    /// told.
    fn register(&self, stream: &mut Stream, options: &ServeOptions) -> Result<(), ServeError> {
        let mut state = self.lock();
        if let Some(limit) = state.expired {
            tell(stream, options, limit);
            state.over = true;
            drop(state);
            self.0.changed.notify_all();
            return Err(ServeError::Expired { limit });
        }
        state.serving = true;
        state.answering = false;
        state.connection = stream.try_clone().map(|clone| (clone, options.clone()));
        Ok(())
    }

    /// It is not served any more.
    pub(super) fn unregister(&self) {
        let mut state = self.lock();
        state.serving = false;
        state.over = true;
        state.connection = None;
        drop(state);
        self.0.changed.notify_all();
    }

    /// Says that an answer of so many bytes begins.
    pub(super) fn begin(&self, nbytes: u64) -> Result<(), ServeError> {
        let mut state = self.lock();
        if let Some(limit) = state.expired {
            return Err(ServeError::Expired { limit });
        }
        state.answering = true;
        state.long = nbytes > SHORT;
        let long = state.long;
        drop(state);
        self.tell_watch(true, long);
        Ok(())
    }

    /// Says that an answer is complete.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.answering = false;
        let long = state.long;
        if state.expired.is_some() {
            self.0.changed.notify_all();
        }
        drop(state);
        self.tell_watch(false, long);
    }

    fn tell_watch(&self, begins: bool, long: bool) {
        if let (true, Some(watch)) = (long, &self.0.watch) {
            watch(begins);
        }
    }

    fn expired(&self) -> Option<ServeError> {
        let limit = self.lock().expired?;
        Some(ServeError::Expired { limit })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last words to a client whose time is up.
fn tell(stream: &mut Stream, options: &ServeOptions, limit: Duration) {
    stream.set_deadline(Deadline::total(Step::Answer, Some(MOMENT)));
    // Whoever does not listen sees the end of the connection.
    let packet = options.farewell(&session_expired(limit));
    let _: Result<(), TransportError> = stream.write_all(&packet, &[]);
    stream.shutdown();
}

/// Serves a connection whose handshake is done, until the client says goodbye or goes, or until
/// `expiry` says that its time is up. What the client held is freed then.
///
/// # Errors
/// The connection fails, the client breaks the protocol, or the time is up.
pub fn serve(
    mut stream: Stream,
    constructors: &Constructors,
    options: &ServeOptions,
    expiry: &Expiry,
) -> Result<(), ServeError> {
    let late = expiry.register(&mut stream, options);
    let mut serving = Serving::new(Wire::new(stream, options, expiry), options);
    let ended = match late {
        Ok(()) => serving.run(constructors),
        Err(expired) => Err(expired),
    };
    // Whatever failed then, this is why.
    let ended = expiry.expired().map_or(ended, Err);
    if let Err(ServeError::Expired { .. }) = ended {
        serving.hear_out(MOMENT);
    }
    serving.finish();
    ended
}
