//! Serving one connection on the caller's own thread, and who may end it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rpc_transport::blocking::Stream;
use rpc_transport::{Deadline, Step, TransportError};

use super::dual::serve::constructor::Constructors;
use super::dual::serve::endpoint::Serving;
use super::wire::Wire;
use crate::serving::expired_packet;
use crate::{ServeError, ServeOptions};

/// Ends a session that is being served when its time is up, from another thread than the one that
/// serves it. A clone is the same.
///
/// The function that the session is running goes on until it returns. If it may run for ever, it belongs
/// into a process of its own, which can be ended.
#[derive(Debug, Clone, Default)]
pub struct Expiry(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    answered: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The connection, while it is being served.
    served: Option<(Stream, ServeOptions)>,
    /// An answer is being written.
    answering: bool,
    expired: Option<Duration>,
}

impl Expiry {
    /// Tells the client that the time of `limit` is up, and closes the connection. When an answer is on
    /// its way, it has a moment to arrive first; the client is told nothing in the middle of one.
    ///
    /// Before a session is being served, or after it, this keeps it from being served any more.
    pub fn expire(&self, limit: Duration) {
        const MOMENT: Duration = Duration::from_millis(500);
        let state = self.lock();
        let waited = self
            .0
            .answered
            .wait_timeout_while(state, MOMENT, |state| state.answering);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.expired = Some(limit);
        let between_answers = !state.answering;
        let Some((stream, options)) = &mut state.served else {
            return;
        };
        if between_answers {
            stream.set_deadline(Deadline::total(Step::Answer, Some(MOMENT)));
            // Whoever does not listen sees the end of the connection.
            let packet = expired_packet(options, limit);
            let _: Result<(), TransportError> = stream.write_all(&packet, &[]);
        }
        stream.close();
    }

    /// The connection that is being served from now on.
    pub(super) fn register(&self, served: Option<(Stream, ServeOptions)>) {
        self.lock().served = served;
    }

    /// Says that an answer begins.
    pub(super) fn begin(&self) -> Result<(), ServeError> {
        let mut state = self.lock();
        match state.expired {
            Some(limit) => Err(ServeError::Expired { limit }),
            None => {
                state.answering = true;
                Ok(())
            }
        }
    }

    /// Says that an answer is complete.
    pub(super) fn end(&self) {
        self.lock().answering = false;
        self.0.answered.notify_all();
    }

    /// Why the session is not served any more, if its time is up.
    pub(super) fn expired(&self) -> Option<ServeError> {
        let limit = self.lock().expired?;
        Some(ServeError::Expired { limit })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves a connection whose handshake is done, until the client says goodbye or goes, or until
/// `expiry` says that its time is up. What the client held is freed then.
///
/// # Errors
/// The connection fails, the client breaks the protocol, or the time is up.
pub fn serve(
    stream: Stream,
    constructors: &Constructors,
    options: &ServeOptions,
    expiry: &Expiry,
) -> Result<(), ServeError> {
    let mut serving = Serving::new(Wire::new(stream, options, expiry), options);
    let ended = serving.run(constructors);
    serving.finish();
    ended
}
