use std::error::Error;
use std::time::Instant;

use tracing::debug;

use super::bisync;
use super::client::TrackerClient;
use super::connect::Connect;
use crate::error::Exhausted;
use crate::{RequestOptions, TrackerClientError};

/// A run that fails after this part of the session timeout is taken to have failed of it: the server
/// ends a session without a word, so that all a client sees is a lost connection.
const ALMOST_ALL: f64 = 0.95;

#[bisync]
impl TrackerClient {
    /// Requests a session and runs `work` on it; once more, on another session, if that fails, as
    /// devices do drop out. So `work` may start twice, see [`RequestOptions::with_max_runs`].
    ///
    /// | what happened | then |
    /// | --- | --- |
    /// | `work` is done | its result |
    /// | `work` failed when at least 0.95 of the session timeout had passed since the session was made | [`TrackerClientError::SessionTimedOut`] |
    /// | `work` failed before | the next run; after the last one [`TrackerClientError::Run`] |
    /// | the request failed | the next run; after the last one the request's error |
    /// | the request failed and trying again is of no use, for example as its time in the queue is up | the request's error |
    ///
    /// The session is moved into `work`, so that it is over before the next one is requested.
    ///
    /// # Errors
    /// As the table says.
    pub async fn request_and_run<C, F, T, E>(
        &self,
        options: &RequestOptions,
        connect: &C,
        mut work: F,
    ) -> Result<T, TrackerClientError>
    where
        C: Connect,
        F: AsyncFnMut(C::Session) -> Result<T, E>,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let mut last = Exhausted::new(&options.key).into();
        for number in 1..=options.max_runs {
            last = match self.run_once(options, connect, &mut work, number).await {
                Ok(result) => return Ok(result),
                Err(error) if error.is_retryable() => error,
                Err(error) => return Err(error),
            };
            debug!(number, error = &last as &dyn Error, "a run failed");
        }
        Err(last)
    }

    async fn run_once<C, F, T, E>(
        &self,
        options: &RequestOptions,
        connect: &C,
        work: &mut F,
        number: u32,
    ) -> Result<T, TrackerClientError>
    where
        C: Connect,
        F: AsyncFnMut(C::Session) -> Result<T, E>,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let session = self.request(options, connect).await?;
        let start = Instant::now();
        let failure = match work(session).await {
            Ok(result) => return Ok(result),
            Err(error) => error.into(),
        };
        let key = options.key.clone();
        Err(match options.session_timeout {
            Some(limit) if start.elapsed() >= limit.mul_f64(ALMOST_ALL) => {
                TrackerClientError::SessionTimedOut {
                    key,
                    limit,
                    source: failure,
                }
            }
            _ => TrackerClientError::Run {
                key,
                runs: number,
                source: failure,
            },
        })
    }
}
