use std::cell::Cell;

use proptest::prelude::*;

use super::*;

const PATIENCE: Duration = Duration::from_secs(6);

/// Numbers that differ.
fn numbers() -> impl Fn() -> f64 {
    let last = Cell::new(0_u32);
    move || {
        last.set(last.get() + 1);
        f64::from(last.get()) / 1024.0
    }
}

/// Announces all that there is to announce.
fn announce(offers: &mut Offers, random: &impl Fn() -> f64) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(key) = offers.next_to_announce(random) {
        offers.announced(&key);
        told.push(key);
    }
    told
}

#[test]
fn a_key_is_good_for_one_session() {
    let random = numbers();
    let mut offers = Offers::new("a:b", 1, PATIENCE);
    let told = announce(&mut offers, &random);
    assert_eq!(told, ["a:b:0.0009765625"]);
    assert!(!offers.take("a:b"));
    assert!(!offers.take(""));
    assert!(offers.take(&told[0]));
    assert!(!offers.take(&told[0]));
    assert_eq!(offers.next_to_announce(&random), None);
    offers.release();
    assert_eq!(announce(&mut offers, &random), ["a:b:0.001953125"]);
}

#[test]
fn there_are_as_many_keys_as_free_slots() {
    let random = numbers();
    let mut offers = Offers::new("k", 3, PATIENCE);
    let told = announce(&mut offers, &random);
    assert_eq!(told.len(), 3);
    assert!(offers.take(&told[1]) && offers.take(&told[0]));
    assert_eq!(announce(&mut offers, &random).len(), 0);
    offers.release();
    assert_eq!(announce(&mut offers, &random).len(), 1);
}

#[test]
fn a_key_that_was_granted_and_not_used_is_replaced() {
    let random = numbers();
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let mut offers = Offers::new("k", 1, PATIENCE);
    let told = announce(&mut offers, &random);
    assert!(offers.pending(&told, at(0)).is_empty());
    assert!(offers.pending(&[], at(2)).is_empty());
    // Just long enough to be late is not too late.
    assert!(offers.pending(&[], at(8)).is_empty());
    assert_eq!(offers.pending(&[], at(9)), told);
    assert!(!offers.take(&told[0]));
    assert_eq!(announce(&mut offers, &random), ["k:0.001953125"]);
}

#[test]
fn a_key_that_was_granted_is_good_until_it_is_given_up() {
    let random = numbers();
    let now = Instant::now();
    let mut offers = Offers::new("k", 1, PATIENCE);
    let told = announce(&mut offers, &random);
    offers.pending(&[], now);
    assert!(offers.take(&told[0]));
    assert!(offers.pending(&[], now + 2 * PATIENCE).is_empty());
}

#[test]
fn keys_outlive_a_connection() {
    let random = numbers();
    let mut offers = Offers::new("k", 2, PATIENCE);
    let told = announce(&mut offers, &random);
    offers.connection_lost();
    // Nothing is missing at a tracker that was told nothing.
    assert!(
        offers
            .pending(&[], Instant::now() + 10 * PATIENCE)
            .is_empty()
    );
    assert_eq!(announce(&mut offers, &random), told);
    assert!(offers.take(&told[0]));
}

#[derive(Debug, Clone)]
enum Step {
    Announce,
    Take(prop::sample::Index),
    Release,
    Poll(bool),
    Lose,
}

proptest! {
    /// Sessions and keys together are never more than the slots, and none is lost.
    #[test]
    fn slots_are_kept(slots in 1..4_usize, steps in prop::collection::vec(prop_oneof![
        Just(Step::Announce),
        any::<prop::sample::Index>().prop_map(Step::Take),
        Just(Step::Release),
        any::<bool>().prop_map(Step::Poll),
        Just(Step::Lose),
    ], 0..60)) {
        let random = numbers();
        let mut now = Instant::now();
        let mut offers = Offers::new("k", slots, PATIENCE);
        let mut keys: Vec<String> = Vec::new();
        let mut sessions = 0;
        for step in steps {
            match step {
                Step::Announce => keys.extend(announce(&mut offers, &random)),
                Step::Take(index) if !keys.is_empty() => {
                    if offers.take(&keys.swap_remove(index.index(keys.len()))) {
                        sessions += 1;
                    }
                }
                Step::Take(_) => {}
                Step::Release if sessions > 0 => {
                    offers.release();
                    sessions -= 1;
                }
                Step::Release => {}
                Step::Poll(known) => {
                    now += Duration::from_secs(4);
                    let there = if known { keys.clone() } else { Vec::new() };
                    offers.pending(&there, now);
                }
                Step::Lose => offers.connection_lost(),
            }
            prop_assert_eq!(offers.busy, sessions);
            prop_assert!(offers.offers.len() + sessions <= slots);
        }
        announce(&mut offers, &random);
        prop_assert_eq!(offers.offers.len() + sessions, slots);
    }
}
