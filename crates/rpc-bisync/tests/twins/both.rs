//! Written once, as async code.

use std::num::ParseIntError;

use super::{bisync, only_async, only_sync, wait};

#[bisync]
pub(crate) async fn twice(number: i32) -> i32 {
    let first = add(number, 0).await;
    add(first, number).await
}

#[bisync]
async fn add(one: i32, other: i32) -> i32 {
    wait().await;
    one + other
}

#[bisync]
async fn read(text: &str) -> Result<i32, ParseIntError> {
    wait().await;
    text.parse()
}

#[bisync]
pub(crate) async fn next(text: &str) -> Result<i32, ParseIntError> {
    Ok(read(text).await? + 1)
}

#[bisync]
async fn call<A, B, C>(often: A, mut changing: B, once: C) -> [i32; 3]
where
    A: AsyncFn(i32) -> i32,
    B: AsyncFnMut(i32) -> i32,
    C: AsyncFnOnce(i32) -> i32,
{
    [often(1).await, changing(1).await, once(1).await]
}

#[bisync]
pub(crate) async fn closures() -> [i32; 3] {
    let mut sum = 2;
    let owned = Box::new(4);
    call(
        async |number| add(number, 1).await,
        async |number| {
            wait().await;
            sum += number;
            sum
        },
        async move |number| add(*owned, number).await,
    )
    .await
}

#[bisync]
pub(crate) async fn groups() -> Vec<i32> {
    let (one, [two]) = (add(1, 0).await, [add(1, 1).await]);
    let mut found = vec![one, two, { add(1, 2).await }];
    for number in [4, 5] {
        if let 4.. = add(number, 0).await {
            found.push(match number {
                4 => add(4, 0).await,
                other => add(0, other).await,
            });
        }
    }
    found
}

#[bisync]
#[allow(async_fn_in_trait)]
pub(crate) trait Greet {
    async fn greeting(&self) -> String;
}

pub(crate) struct Host;

#[bisync]
impl Greet for Host {
    async fn greeting(&self) -> String {
        wait().await;
        "hello".to_owned()
    }
}

#[bisync]
pub(crate) async fn greet(host: &impl Greet) -> String {
    host.greeting().await
}

#[only_async]
pub(crate) fn name() -> &'static str {
    "async"
}

#[only_sync]
pub(crate) fn name() -> &'static str {
    "sync"
}
