//! Histories of queues, compared with a model that looks through all there is.

use proptest::prelude::*;

use super::*;

const LIMIT: usize = 3;

#[derive(Debug, Clone)]
enum Step {
    Connect,
    /// The connection with this number, modulo how many there are; with the grants that are still on
    /// their way to it.
    Close(usize),
    /// What was granted to it has reached it.
    Delivered(usize),
    Put(usize, usize, usize),
    Request(usize, usize, i32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => Just(Step::Connect),
        1 => (0_usize..100).prop_map(Step::Close),
        2 => (0_usize..100).prop_map(Step::Delivered),
        6 => (0_usize..100, 0_usize..3, 0_usize..5).prop_map(|(c, k, m)| Step::Put(c, k, m)),
        6 => (0_usize..100, 0_usize..3, -1..3).prop_map(|(c, k, p)| Step::Request(c, k, p)),
    ];
    prop::collection::vec(step, 0..120)
}

/// Everything in one heap, in the order in which it came.
#[derive(Debug, Default)]
struct Model {
    connections: Vec<u64>,
    free: Vec<Device>,
    waiting: Vec<Waiting>,
    /// Devices on their way, and to whom.
    granted: Vec<(u64, Device)>,
    last: u64,
}

#[derive(Debug, Clone, PartialEq)]
struct Device {
    key: String,
    came: u64,
    owner: u64,
    match_key: String,
}

#[derive(Debug, Clone, PartialEq)]
struct Waiting {
    key: String,
    priority: i32,
    came: u64,
    who: u64,
}

impl Model {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn put(&mut self, owner: u64, key: &str, match_key: &str) -> Vec<String> {
        let is_same = |device: &Device| device.owner == owner && device.match_key == match_key;
        self.free.retain(|device| !is_same(device));
        let count = self
            .free
            .iter()
            .filter(|device| device.owner == owner)
            .count();
        let is_awaited = self.waiting.iter().any(|waiting| waiting.key == key);
        if count >= LIMIT && !is_awaited {
            return vec![format!("{owner}<-1")];
        }
        let device = Device {
            key: key.to_owned(),
            came: self.next(),
            owner,
            match_key: match_key.to_owned(),
        };
        let mut told = self.offer(device);
        told.push(format!("{owner}<0"));
        told
    }

    fn offer(&mut self, device: Device) -> Vec<String> {
        let of_key = self
            .waiting
            .iter()
            .filter(|waiting| waiting.key == device.key);
        let first = of_key
            .min_by_key(|waiting| (-waiting.priority, waiting.came))
            .cloned();
        let Some(first) = first else {
            self.free.push(device);
            return vec![];
        };
        self.waiting.retain(|waiting| *waiting != first);
        vec![self.grant(first.who, device)]
    }

    fn request(&mut self, who: u64, key: &str, priority: i32) -> Vec<String> {
        let of_key = self.free.iter().filter(|device| device.key == key);
        if let Some(device) = of_key.min_by_key(|device| device.came).cloned() {
            self.free.retain(|other| *other != device);
            return vec![self.grant(who, device)];
        }
        let count = self
            .waiting
            .iter()
            .filter(|waiting| waiting.who == who)
            .count();
        if count >= LIMIT {
            let why = "this connection has too many requests waiting";
            return vec![format!("{who}<[-1, \"{why}\"]")];
        }
        let came = self.next();
        let key = key.to_owned();
        self.waiting.push(Waiting {
            key,
            priority,
            came,
            who,
        });
        vec![]
    }

    fn grant(&mut self, who: u64, device: Device) -> String {
        let told = format!("{who}<10.0.0.{}:9090:{}", device.owner, device.match_key);
        self.granted.push((who, device));
        told
    }

    fn close(&mut self, who: u64) -> Vec<String> {
        self.connections.retain(|connection| *connection != who);
        self.free.retain(|device| device.owner != who);
        self.waiting.retain(|waiting| waiting.who != who);
        let (back, granted) = std::mem::take(&mut self.granted)
            .into_iter()
            .partition(|(to, _)| *to == who);
        self.granted = granted;
        let mut told = Vec::new();
        for (_, device) in back {
            let is_same =
                |other: &Device| other.owner == device.owner && other.match_key == device.match_key;
            if self.connections.contains(&device.owner) && !self.free.iter().any(is_same) {
                told.extend(self.offer(device));
            }
        }
        told
    }

    fn pending(&self, owner: u64) -> String {
        let of_owner = self.free.iter().filter(|device| device.owner == owner);
        let mut keys: Vec<_> = of_owner.map(|device| &device.match_key).collect();
        keys.sort();
        let quoted: Vec<_> = keys.iter().map(|key| format!("{key:?}")).collect();
        format!("{owner}<[{}]", quoted.join(", "))
    }

    fn status(&self, key: &str) -> Option<(u64, u64)> {
        let free = self.free.iter().filter(|device| device.key == key).count();
        let pending = self
            .waiting
            .iter()
            .filter(|waiting| waiting.key == key)
            .count();
        (free + pending > 0).then_some((free as u64, pending as u64))
    }
}

/// Takes a step on both sides; what each told.
fn take(step: Step, desk: &mut Desk, model: &mut Model) -> (Vec<String>, Vec<String>) {
    if let Step::Connect = step {
        model.connections.push(desk.connect().0);
        return (vec![], vec![]);
    }
    let (Step::Close(n) | Step::Delivered(n) | Step::Put(n, ..) | Step::Request(n, ..)) = step
    else {
        unreachable!("the one without a number was taken");
    };
    let Some(&number) = model.connections.get(n % model.connections.len().max(1)) else {
        return (vec![], vec![]);
    };
    let id = ConnectionId(number);
    match step {
        Step::Connect => unreachable!(),
        Step::Close(_) => {
            let (back, granted) = std::mem::take(&mut desk.grants)
                .into_iter()
                .partition::<Vec<_>, _>(|grant| grant.to() == id);
            desk.grants = granted;
            let mut effects = Vec::new();
            desk.queues.closed(id, back, &mut effects);
            (desk.told(effects), model.close(number))
        }
        Step::Delivered(_) => {
            desk.grants.retain(|grant| grant.to() != id);
            model.granted.retain(|(to, _)| *to != number);
            (vec![], vec![])
        }
        Step::Put(_, key, match_key) => {
            let (key, match_key) = (format!("k{key}"), format!("m{match_key}"));
            let told = desk.put(id, &key, &match_key);
            (told, model.put(number, &key, &match_key))
        }
        Step::Request(_, key, priority) => {
            let key = format!("k{key}");
            let told = desk.request(id, &key, priority);
            (told, model.request(number, &key, priority))
        }
    }
}

proptest! {
    #[test]
    fn any_history_is_that_of_the_model(steps in steps()) {
        let options = TrackerOptions::default()
            .with_pending_requests(LIMIT)
            .with_free_devices(LIMIT);
        let (mut desk, mut model) = (Desk::with(&options), Model::default());
        for step in steps {
            let what = format!("{step:?}");
            let (told, expected) = take(step, &mut desk, &mut model);
            prop_assert_eq!(told, expected, "{}", what);
            for key in ["k0", "k1", "k2"] {
                prop_assert_eq!(desk.status(key), model.status(key), "{} after {}", key, what);
            }
            for number in model.connections.clone() {
                let pending = desk.pending(ConnectionId(number));
                prop_assert_eq!(pending, model.pending(number), "after {}", what);
            }
        }
        for number in model.connections {
            desk.close(ConnectionId(number));
        }
        prop_assert!(desk.queues.queues.is_empty(), "nothing is left of those who are gone");
        prop_assert!(desk.queues.connections.is_empty());
    }
}
