//! The state of a tracker: who offers what, and who waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rpc_proto::tracker::{Allocation, Priority, Reply, Request, ServerInfo};

use self::queue::{Offer, Queue, Rank, Sequence};
use crate::TrackerOptions;

mod effect;
mod listing;
mod peer;
mod queue;

pub use effect::{ConnectionId, Effect, Grant};
pub use peer::Peer;

/// The queues of a tracker, without sockets and clocks: connections and requests in, effects out.
///
/// Whoever owns it calls [`Queues::connected`] for each connection, [`Queues::request`] for each
/// request on it and [`Queues::closed`] at its end, and carries out the [`Effect`]s in their order.
///
/// What a connection offers and what it waits for belong to it, and are gone when it is closed.
/// Nothing is ever read out of a match key. A device goes to the request with the highest priority,
/// and of those to the one that came first; of several devices, the one that was offered first goes.
/// Each call takes time that grows with the logarithm of what there is, and [`Queues::summary`] with
/// the servers and queues.
///
/// ```
/// use rpc_proto::tracker::{Priority, Reply, Request};
/// use rpc_tracker::{Effect, Peer, Queues, TrackerOptions};
///
/// let mut queues = Queues::new(&TrackerOptions::default());
/// let local = "10.0.0.1:9190".parse()?;
/// let client = queues.connected(Peer { remote: "10.0.0.9:40000".parse()?, local });
/// let server = queues.connected(Peer { remote: "10.0.0.7:40000".parse()?, local });
///
/// let mut effects = Vec::new();
/// let request = Request::Request {
///     key: "rasp4b".into(),
///     user: String::new(),
///     priority: Priority::default(),
/// };
/// queues.request(client, request, &mut effects);
/// assert!(effects.is_empty());
///
/// let put = Request::Put {
///     key: "rasp4b".into(),
///     port: 9090,
///     match_key: "rasp4b:0.25".into(),
///     custom_addr: None,
/// };
/// queues.request(server, put, &mut effects);
/// let [Effect::Grant(grant), Effect::Reply { to, reply: Reply::Done }] = &effects[..] else {
///     panic!("{effects:?}");
/// };
/// assert_eq!((grant.to(), *to), (client, server));
/// assert_eq!(grant.allocation().host, "10.0.0.7");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Queues {
    options: TrackerOptions,
    connections: BTreeMap<ConnectionId, Connection>,
    /// Those of the connections that a summary lists, as it lists them.
    servers: BTreeMap<ConnectionId, ServerInfo>,
    /// Those that are not empty.
    queues: BTreeMap<Arc<str>, Queue>,
    /// Keys of servers that registered here, also of those that are gone: a summary lists them.
    known: BTreeSet<String>,
    last_id: u64,
    last_sequence: Sequence,
}

#[derive(Debug)]
struct Connection {
    peer: Peer,
    /// The devices that it has on offer, by match key.
    offers: BTreeMap<Arc<str>, (Arc<str>, Sequence)>,
    /// The requests that it has waiting.
    waiting: BTreeMap<Sequence, (Arc<str>, Priority)>,
    /// The port of its last offer.
    port: Option<u16>,
    /// Whether its UPDATE_INFO left open where it listens.
    is_port_unknown: bool,
}

impl Queues {
    /// Of a tracker to which nobody is connected. Of the options, those about queues matter here.
    #[must_use]
    pub fn new(options: &TrackerOptions) -> Self {
        Self {
            options: options.clone(),
            connections: BTreeMap::new(),
            servers: BTreeMap::new(),
            queues: BTreeMap::new(),
            known: BTreeSet::new(),
            last_id: 0,
            last_sequence: 0,
        }
    }

    /// Somebody connected.
    pub fn connected(&mut self, peer: Peer) -> ConnectionId {
        self.last_id += 1;
        let id = ConnectionId(self.last_id);
        let connection = Connection {
            peer,
            offers: BTreeMap::new(),
            waiting: BTreeMap::new(),
            port: None,
            is_port_unknown: false,
        };
        self.connections.insert(id, connection);
        id
    }

    /// How many are connected.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// A connection ended: takes back all that it offered, and forgets what it waited for.
    ///
    /// `undelivered` are the grants that it was to be sent and that it cannot have seen. Their devices
    /// get their old place in the queue, or go to the next one who waits, unless their servers are gone
    /// as well.
    pub fn closed(
        &mut self,
        id: ConnectionId,
        undelivered: impl IntoIterator<Item = Grant>,
        effects: &mut Vec<Effect>,
    ) {
        // Before the devices go to others, so that they do not go to the connection that ended.
        if let Some(connection) = self.connections.remove(&id) {
            self.servers.remove(&id);
            for (key, sequence) in connection.offers.into_values() {
                self.change(&key, |queue| queue.free.remove(&sequence));
            }
            for (sequence, (key, priority)) in connection.waiting {
                let rank = Rank { priority, sequence };
                self.change(&key, |queue| queue.waiting.remove(&rank));
            }
        }
        for Grant {
            key,
            sequence,
            offer,
            ..
        } in undelivered
        {
            // A server that offered the match key again meanwhile means the new offer.
            let owner = self.connections.get(&offer.owner);
            if owner.is_some_and(|owner| !owner.offers.contains_key(&offer.match_key)) {
                self.offer(key, sequence, offer, effects);
            }
        }
    }

    /// A connection asked for something. What a connection asks that has ended is without effect.
    pub fn request(&mut self, from: ConnectionId, request: Request, effects: &mut Vec<Effect>) {
        if !self.connections.contains_key(&from) {
            return;
        }
        let reply = match request {
            Request::Ping => Reply::Done,
            Request::Summary => Reply::Summary(self.summary()),
            Request::PendingMatchKeys => self.pending_match_keys(from),
            Request::UpdateInfo(info) => self.update_info(from, info),
            Request::Put {
                key,
                port,
                match_key,
                custom_addr,
            } => {
                let offer = Offer {
                    owner: from,
                    match_key: match_key.into(),
                    port,
                    custom_addr,
                };
                self.put(&key, offer, effects)
            }
            Request::Request { key, priority, .. } => {
                match self.wait(from, &key, priority, effects) {
                    Ok(()) => return,
                    Err(refusal) => refusal,
                }
            }
            Request::Stop { stop_key } => {
                let known = self.options.stop_key.as_ref();
                if known.is_some_and(|key| key.is(&stop_key)) {
                    let reply = Reply::Done;
                    effects.push(Effect::Reply { to: from, reply });
                    effects.push(Effect::Stop);
                    return;
                }
                Reply::refused()
            }
            // A request of a protocol to come.
            _ => Reply::refused(),
        };
        effects.push(Effect::Reply { to: from, reply });
    }

    fn put(&mut self, key: &str, offer: Offer, effects: &mut Vec<Effect>) -> Reply {
        let custom_addr = offer.custom_addr.as_deref();
        if !self.fits([Some(key), Some(&offer.match_key), custom_addr]) {
            return Reply::refused();
        }
        let Some(connection) = self.connections.get_mut(&offer.owner) else {
            return Reply::refused();
        };
        connection.port = Some(offer.port);
        if connection.is_port_unknown {
            let addr = self
                .servers
                .get_mut(&offer.owner)
                .and_then(|info| info.addr.as_mut());
            if let Some(addr) = addr {
                addr.port = offer.port.into();
            }
        }
        // A second offer with the same match key is the same device, offered again.
        let earlier = connection.offers.remove(&offer.match_key);
        let is_full = connection.offers.len() >= self.options.free_devices;
        if let Some((key, sequence)) = earlier {
            self.change(&key, |queue| queue.free.remove(&sequence));
        }
        let key = self.name(key);
        let is_awaited = self
            .queues
            .get(&key)
            .is_some_and(|queue| !queue.waiting.is_empty());
        if is_full && !is_awaited {
            return Reply::refused();
        }
        let sequence = self.next_sequence();
        self.offer(key, sequence, offer, effects);
        Reply::Done
    }

    /// Gives the device to the first one who waits, or else keeps it for the next one.
    fn offer(
        &mut self,
        key: Arc<str>,
        sequence: Sequence,
        offer: Offer,
        effects: &mut Vec<Effect>,
    ) {
        let first = self.change(&key, |queue| queue.waiting.pop_first());
        if let Some((rank, client)) = first.flatten() {
            if let Some(connection) = self.connections.get_mut(&client) {
                connection.waiting.remove(&rank.sequence);
            }
            effects.extend(self.grant(client, key, sequence, offer));
        } else if let Some(owner) = self.connections.get_mut(&offer.owner) {
            let place = (Arc::clone(&key), sequence);
            owner.offers.insert(Arc::clone(&offer.match_key), place);
            self.queues
                .entry(key)
                .or_default()
                .free
                .insert(sequence, offer);
        }
    }

    /// Grants the device that was offered first, or else lets the request wait.
    fn wait(
        &mut self,
        from: ConnectionId,
        key: &str,
        priority: Priority,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Reply> {
        if !self.fits([Some(key)]) {
            return Err(refused_request("the key is too long"));
        }
        let key = self.name(key);
        let first = self.change(&key, |queue| queue.free.pop_first());
        if let Some((sequence, offer)) = first.flatten() {
            if let Some(owner) = self.connections.get_mut(&offer.owner) {
                owner.offers.remove(&offer.match_key);
            }
            effects.extend(self.grant(from, key, sequence, offer));
            return Ok(());
        }
        let sequence = self.next_sequence();
        let limit = self.options.pending_requests;
        match self.connections.get_mut(&from) {
            Some(connection) if connection.waiting.len() < limit => {
                let place = (Arc::clone(&key), priority);
                connection.waiting.insert(sequence, place);
            }
            _ => {
                return Err(refused_request(
                    "this connection has too many requests waiting",
                ));
            }
        }
        let queue = self.queues.entry(key).or_default();
        queue.waiting.insert(Rank { priority, sequence }, from);
        Ok(())
    }

    fn grant(
        &self,
        to: ConnectionId,
        key: Arc<str>,
        sequence: Sequence,
        offer: Offer,
    ) -> Option<Effect> {
        let client = &self.connections.get(&to)?.peer;
        let server = &self.connections.get(&offer.owner)?.peer;
        let public_host = self.options.public_host.as_deref();
        let custom_addr = offer.custom_addr.clone();
        let allocation = Allocation {
            host: custom_addr.unwrap_or_else(|| server.host_for(client, public_host)),
            port: offer.port,
            match_key: offer.match_key.to_string(),
        };
        Some(Effect::Grant(Grant {
            to,
            allocation,
            key,
            sequence,
            offer,
        }))
    }

    /// Changes a queue, if there is one, and drops it when it is empty.
    fn change<T>(&mut self, key: &str, change: impl FnOnce(&mut Queue) -> T) -> Option<T> {
        let queue = self.queues.get_mut(key)?;
        let result = change(queue);
        if queue.is_empty() {
            self.queues.remove(key);
        }
        Some(result)
    }

    /// The key, shared with its queue if there is one.
    fn name(&self, key: &str) -> Arc<str> {
        match self.queues.get_key_value(key) {
            Some((name, _)) => Arc::clone(name),
            None => key.into(),
        }
    }

    fn fits<const N: usize>(&self, texts: [Option<&str>; N]) -> bool {
        let limit = self.options.limits.key as usize;
        texts.into_iter().flatten().all(|text| text.len() <= limit)
    }

    fn next_sequence(&mut self) -> Sequence {
        self.last_sequence += 1;
        self.last_sequence
    }
}

/// A refusal in the form of the answer that the client waits for: the reference's client prints it.
fn refused_request(why: &str) -> Reply {
    Reply::Refused(format!("[-1, \"{why}\"]"))
}

#[cfg(test)]
mod tests;
