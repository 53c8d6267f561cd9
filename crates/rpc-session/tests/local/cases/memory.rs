//! Allocations, their limits, and addresses that lead nowhere.

use rpc_proto::{DataType, Device, Shape, TensorView, Value};
use rpc_session::{Functions, LocalOptions, LocalTensor};

use super::client::{Client, refused, tensor, view};
use super::{Session as _, bisync, twin_test};

const CPU: Device = Device::cpu(0);
const BYTE: DataType = DataType::UINT8;

#[bisync]
#[twin_test]
async fn memory_is_zero_and_its_own() {
    let mut client = Client::test();
    let a = client.session.allocate(CPU, 100, 64, BYTE).await.unwrap();
    let b = client
        .session
        .allocate(Device::cpu(3), 100, 0, BYTE)
        .await
        .unwrap();
    let (a, b) = (view(a, &[100], BYTE), view(b, &[100], BYTE));
    assert_eq!(client.read_all(&a).await, [0; 100]);
    client.write(&a, &[1; 100]).await.unwrap();
    assert_eq!(client.read_all(&b).await, [0; 100]);
    client.session.free_data(CPU, a.data).await.unwrap();
    client.session.free_data(CPU, 0).await.unwrap();
    let again = client.session.allocate(CPU, 100, 64, BYTE).await.unwrap();
    assert_ne!(again, a.data, "an address is given once");
    assert_eq!(client.read_all(&view(again, &[100], BYTE)).await, [0; 100]);
}

#[bisync]
#[twin_test]
async fn nothing_is_allocated_for_nonsense() {
    let mut client = Client::test();
    for nbytes in [(8 << 30) + 1, 1 << 60, u64::MAX] {
        let over = client.session.allocate(CPU, nbytes, 64, BYTE).await;
        refused(over, &["MemoryError", "limit of this session"]);
    }
    for alignment in [3, 8192, u64::MAX] {
        let odd = client.session.allocate(CPU, 1, alignment, BYTE).await;
        refused(odd, &["alignment", &alignment.to_string()]);
    }
    for (shape, dtype) in [
        (&[-1][..], BYTE),
        (&[i64::MIN, i64::MIN], BYTE),
        (&[i64::MAX, i64::MAX], BYTE),
        (&[i64::MAX], DataType::FLOAT64),
        (&[0, -5], BYTE),
    ] {
        let odd = client
            .session
            .allocate_tensor(&view(0, shape, dtype), None)
            .await;
        refused(odd, &["ValueError: no tensor of"]);
    }
    for scope in ["global.texture", "shared", "x"] {
        let odd = client
            .session
            .allocate_tensor(&view(0, &[1], BYTE), Some(scope))
            .await;
        refused(odd, &["memory scope", scope]);
    }
    for scope in [None, Some(""), Some("global")] {
        let allocated = client
            .session
            .allocate_tensor(&view(0, &[1], BYTE), scope)
            .await;
        client
            .session
            .free_data(CPU, allocated.unwrap())
            .await
            .unwrap();
    }
    assert_eq!(client.session.memory(), 0);
}

#[bisync]
#[twin_test]
async fn the_limit_counts_what_is_in_use() {
    let options = LocalOptions::default().with_memory(10_000);
    let mut functions = rpc_session::test_functions();
    functions.add("large", |nbytes: i64| LocalTensor::zeros(&[nbytes], BYTE));
    let mut client = Client::with(&functions, None, options);
    let most = client.tensor(&[9_000], BYTE).await;
    let limit = &["MemoryError", "1001 more bytes", "9000 of 10000"];
    refused(client.session.allocate(CPU, 1_001, 64, BYTE).await, limit);
    refused(
        client.call_named("large", &[Value::Int(1_001)]).await,
        limit,
    );
    let rest = client
        .call_named("large", &[Value::Int(1_000)])
        .await
        .unwrap();
    assert_eq!(client.session.memory(), 10_000);

    // A tensor of the client's own memory takes no more.
    let echoed = client
        .call_named("testing.echo", &[Value::Tensor(most.clone())])
        .await
        .unwrap();
    assert_eq!(client.session.memory(), 10_000);
    client.session.free_data(CPU, most.data).await.unwrap();
    assert_eq!(client.session.memory(), 10_000, "it is in use");
    let (echoed, handle) = tensor(echoed);
    assert_eq!(client.read_all(&echoed).await, vec![0; 9_000]);
    refused(
        client.session.free_data(CPU, most.data).await,
        &["no allocation"],
    );
    client.session.free(handle).await.unwrap();
    assert_eq!(client.session.memory(), 1_000);
    client.session.free(rest.handle().unwrap()).await.unwrap();
    assert_eq!(client.session.memory(), 0);
    refused(client.read(&echoed, 1).await, &["no memory"]);
}

#[bisync]
#[twin_test]
async fn what_a_function_keeps_counts_until_it_lets_go() {
    let kept = std::sync::Arc::new(std::sync::Mutex::new(None));
    let mut functions = Functions::new();
    let keep = std::sync::Arc::clone(&kept);
    functions.add("keep", move |tensor: LocalTensor| {
        *keep.lock().unwrap() = Some(tensor);
    });
    let mut client = Client::new(&functions);
    let there = client.tensor(&[100], BYTE).await;
    client
        .call_named("keep", &[Value::Tensor(there.clone())])
        .await
        .unwrap();
    client.session.free_data(CPU, there.data).await.unwrap();
    assert_eq!(client.session.memory(), 100);
    assert_eq!(kept.lock().unwrap().as_ref().unwrap().owners(), 1);
    *kept.lock().unwrap() = None;
    assert_eq!(client.session.memory(), 0);
}

#[bisync]
#[twin_test]
async fn forged_addresses_hit_nothing() {
    let mut client = Client::test();
    let there = client.tensor(&[16], BYTE).await;
    let other = client.tensor(&[16], BYTE).await;
    let at = |data: u64, byte_offset: u64, size: i64| TensorView {
        byte_offset,
        ..view(data, &[size], BYTE)
    };
    let behind = other.data - there.data;
    let forged = [
        at(0, 0, 16),
        at(1, 0, 1),
        at(there.data - 1, 0, 1),
        at(there.data - 1, 1, 1),
        at(there.data + 17, 0, 0),
        at(u64::MAX, 0, 1),
        at(u64::MAX, 1, 1),
        at(there.data, 0, 17),
        at(there.data, 16, 1),
        at(there.data, u64::MAX, 1),
        at(there.data + 8, u64::MAX - 7, 1),
        at(there.data + 8, 0, 9),
        // From one piece of memory into another.
        at(there.data, behind, 1),
        at(there.data, 0, i64::MAX),
        at(there.data, 0, -1),
    ];
    for forged in forged {
        let nbytes = forged.nbytes().unwrap_or(1);
        let sent = vec![7; usize::try_from(nbytes.min(64)).unwrap()];
        refused(client.write(&forged, &sent).await, &["ValueError"]);
        refused(client.read(&forged, nbytes).await, &["ValueError"]);
        let echo = client
            .call_named("testing.echo", &[Value::Tensor(forged.clone())])
            .await;
        refused(echo, &["ValueError"]);
        let among = client.session.copy_among(&forged, &there, 0).await;
        refused(among, &["ValueError"]);
        let among = client.session.copy_among(&there, &forged, 0).await;
        refused(among, &["ValueError"]);
    }
    for forged in [there.data + 1, 1, u64::MAX] {
        refused(
            client.session.free_data(CPU, forged).await,
            &["no allocation", "0x"],
        );
    }
    assert_eq!(client.read_all(&other).await, [0; 16]);
    // The last byte, and nothing behind it, are inside.
    assert_eq!(
        client
            .read(&at(there.data + 15, 0, 1), 1)
            .await
            .unwrap()
            .len(),
        1
    );
    let nothing = client.read(&at(there.data + 16, 0, 0), 0).await;
    assert!(nothing.unwrap().is_empty());
}

#[bisync]
#[twin_test]
async fn tensors_without_elements_are_tensors() {
    let mut client = Client::test();
    let empty = client.tensor(&[3, 0], DataType::FLOAT32).await;
    client.write(&empty, &[]).await.unwrap();
    assert!(client.read_all(&empty).await.is_empty());
    client.session.copy_among(&empty, &empty, 0).await.unwrap();
    let (echoed, handle) = tensor(
        client
            .call_named("testing.echo", &[Value::Tensor(empty.clone())])
            .await
            .unwrap(),
    );
    assert_eq!(echoed, empty);
    client.session.free(handle).await.unwrap();
    client.session.free_data(CPU, empty.data).await.unwrap();
    // Nothing needs no address.
    let null = TensorView { data: 0, ..empty };
    let (echoed, _) = tensor(
        client
            .call_named("testing.echo", &[Value::Tensor(null)])
            .await
            .unwrap(),
    );
    assert_eq!(echoed.shape, Shape::from(&[3, 0][..]));
}
