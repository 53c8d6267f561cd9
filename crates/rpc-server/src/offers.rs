//! Which match keys are good: what a server has on offer at a tracker.

use std::time::{Duration, Instant};

/// The match keys of a server. A key is good for one session; there are as many as sessions may begin.
#[derive(Debug)]
pub(crate) struct Offers {
    key: String,
    slots: usize,
    /// Sessions that are under way.
    busy: usize,
    offers: Vec<Offer>,
    patience: Duration,
}

#[derive(Debug)]
struct Offer {
    match_key: String,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The tracker of this connection does not know of it.
    Unannounced,
    /// The tracker has it.
    Announced,
    /// The tracker had it, and has given it to a client; it is missing since then.
    Granted(Instant),
}

impl Offers {
    pub(crate) fn new(key: &str, slots: usize, patience: Duration) -> Self {
        Self {
            key: key.to_owned(),
            slots,
            busy: 0,
            offers: Vec::new(),
            patience,
        }
    }

    /// A match key that the tracker has to be told of, if there is one. Keys that are missing are made
    /// with `random`, a number from 0 up to 1.
    pub(crate) fn next_to_announce(&mut self, random: impl Fn() -> f64) -> Option<String> {
        while self.offers.len() + self.busy < self.slots {
            self.offers.push(Offer {
                match_key: format!("{}:{}", self.key, random()),
                state: State::Unannounced,
            });
        }
        let waiting = |offer: &&Offer| offer.state == State::Unannounced;
        self.offers
            .iter()
            .find(waiting)
            .map(|offer| offer.match_key.clone())
    }

    /// The tracker was told of this key.
    pub(crate) fn announced(&mut self, match_key: &str) {
        let mut offers = self.offers.iter_mut();
        // A client may have come with it meanwhile.
        if let Some(offer) = offers.find(|offer| offer.match_key == match_key) {
            offer.state = State::Announced;
        }
    }

    /// A client came with this key: is it good? Then its session is under way.
    pub(crate) fn take(&mut self, match_key: &str) -> bool {
        let found = self
            .offers
            .iter()
            .position(|offer| offer.match_key == match_key);
        if let Some(index) = found {
            self.offers.swap_remove(index);
            self.busy += 1;
        }
        found.is_some()
    }

    /// A session is over.
    pub(crate) fn release(&mut self) {
        self.busy = self.busy.saturating_sub(1);
    }

    /// What the tracker still has of this server's keys. A key that it gave away, and that nobody came
    /// with in time, is given up; those keys are returned.
    pub(crate) fn pending(&mut self, at_tracker: &[String], now: Instant) -> Vec<String> {
        let mut given_up = Vec::new();
        self.offers.retain_mut(|offer| {
            let there = at_tracker.contains(&offer.match_key);
            offer.state = match offer.state {
                State::Unannounced => State::Unannounced,
                _ if there => State::Announced,
                State::Announced => State::Granted(now),
                State::Granted(since) => State::Granted(since),
            };
            let too_long = matches!(
                offer.state,
                State::Granted(since) if now.saturating_duration_since(since) > self.patience
            );
            if too_long {
                given_up.push(offer.match_key.clone());
            }
            !too_long
        });
        given_up
    }

    /// The connection to the tracker is gone, and with it all that was announced and not given to a
    /// client. Those keys are announced again; all stay good for clients that have them.
    pub(crate) fn connection_lost(&mut self) {
        for offer in &mut self.offers {
            if offer.state == State::Announced {
                offer.state = State::Unannounced;
            }
        }
    }
}

#[cfg(test)]
mod tests;
