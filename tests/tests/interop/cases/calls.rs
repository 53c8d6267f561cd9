//! What belongs to the server, passed back to it: functions, modules, tensors, objects.

use rpc_session::{SessionError, args};

use super::bench::{call, describe, open, value};
use super::{Argument, Function, Module, Object, RemoteSession, Tensor, bisync, case, join, spawn};
use crate::support::message;

#[bisync]
#[case]
async fn the_functions_of_the_reference_answer() {
    let session = open().await;
    let sum: i64 = value(&session, "rpc.test.addone", args![10]).await;
    assert_eq!(sum, 11);
    let text: String = value(&session, "rpc.test.strcat", args!["abc", 11]).await;
    assert_eq!(text, "abc:11");
    let text: String = value(&session, "rpc.test.runtime_str_concat", args!["ab", "cd"]).await;
    assert_eq!(text, "abcd");

    let ones = vec![1.0_f64; 12];
    let tensor = session.cpu(0).tensor(&[3, 4], &ones).await.unwrap();
    // Compares with ones of its own.
    let () = value(&session, "rpc.test.remote_tensor_func", args![&tensor]).await;
    tensor.copy_from(&[0.0_f64; 12]).await.unwrap();
    let error = call(&session, "rpc.test.remote_tensor_func", args![&tensor])
        .await
        .unwrap_err();
    assert!(message(&error).contains("Arrays are not equal"), "{error}");
}

#[bisync]
#[case]
async fn handles_arrive_as_what_they_are() {
    let session = open().await;
    let function: Function = value(&session, "rpc.test.ret", args!["function"]).await;
    let module: Module = value(&session, "rpc.test.ret", args!["module"]).await;
    let object: Object = value(&session, "rpc.test.ret", args!["object"]).await;
    let returned: Tensor = value(&session, "rpc.test.ret", args!["tensor"]).await;
    let made = session.cpu(0).tensor(&[3], &[1_i8, -2, 3]).await.unwrap();

    let described = describe(
        &session,
        args![&function, &module, &object, &returned, &made, 7],
    )
    .await;
    assert_eq!(
        described,
        "function; module library; shape [2, 3]; \
         tensor float32 [2, 3] [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]; tensor int8 [3] [1, -2, 3]; int 7"
    );
}

#[bisync]
#[case]
async fn a_function_is_called_by_the_function_that_gets_it() {
    let session = open().await;
    let global = session.function("rpc.test.addone").await.unwrap();
    let returned: Function = value(&session, "rpc.test.ret", args!["function"]).await;
    for function in [&global, &returned] {
        let sum: i64 = value(&session, "testing.apply", args![function, 41]).await;
        assert_eq!(sum, 42);
    }
}

#[bisync]
#[case]
async fn a_returned_function_keeps_its_state_and_can_be_passed_on() {
    let session = open().await;
    let add_to_10: Function = value(&session, "rpc.test.add_to_lhs", args![10]).await;
    let add_to_1: Function = value(&session, "rpc.test.add_to_lhs", args![1]).await;

    for (function, expected) in [(&add_to_10, 15), (&add_to_1, 6)] {
        let sum: i64 = function.call(args![5]).await.unwrap().try_into().unwrap();
        assert_eq!(sum, expected);
        let sum: i64 = value(&session, "testing.apply", args![function, 5]).await;
        assert_eq!(sum, expected);
    }
    let back: Function = value(&session, "testing.echo", args![&add_to_10]).await;
    drop(add_to_10);
    let sum: i64 = back.call(args![-10]).await.unwrap().try_into().unwrap();
    assert_eq!(sum, 0);
}

#[bisync]
#[case]
async fn a_returned_tensor_can_be_read_written_and_passed_on() {
    let session = open().await;
    let tensor: Tensor = value(&session, "rpc.test.ret", args!["tensor"]).await;
    tensor
        .copy_from(&[6.0_f32, 5.0, 4.0, 3.0, 2.0, 1.0])
        .await
        .unwrap();
    assert_eq!(
        describe(&session, args![&tensor]).await,
        "tensor float32 [2, 3] [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]"
    );
}

#[bisync]
#[case]
async fn objects_and_modules_come_back() {
    let session = open().await;
    let object: Object = value(&session, "rpc.test.ret", args!["object"]).await;
    let back: Object = value(&session, "testing.echo", args![&object]).await;
    drop(object);
    assert_eq!(describe(&session, args![&back]).await, "shape [2, 3]");

    let module: Module = value(&session, "rpc.test.ret", args!["module"]).await;
    let back: Module = value(&session, "testing.echo", args![&module]).await;
    drop(module);
    assert_eq!(describe(&session, args![&back]).await, "module library");
}

#[bisync]
#[case]
async fn the_server_reads_the_shape_that_it_gave() {
    let session = open().await;
    let shape: Object = value(&session, "rpc.test.ret", args!["object"]).await;
    let size: i64 = value(&session, "rpc.testing.GetShapeSize", args![&shape]).await;
    assert_eq!(size, 2);
    for (index, expected) in [(0, 2), (1, 3)] {
        let element: i64 = value(&session, "rpc.testing.GetShapeElem", args![&shape, index]).await;
        assert_eq!(element, expected);
    }
    let error = call(&session, "rpc.testing.GetShapeElem", args![&shape, 2])
        .await
        .unwrap_err();
    assert!(
        message(&error).starts_with("Check failed: idx < shape.size()"),
        "{error}"
    );
}

#[bisync]
#[case]
async fn what_belongs_to_another_session_is_refused() {
    let [one, other] = [open().await, open().await];
    let describe_one = one.function("rpc.test.describe").await.unwrap();
    let function: Function = value(&other, "rpc.test.ret", args!["function"]).await;
    let module: Module = value(&other, "rpc.test.ret", args!["module"]).await;
    let object: Object = value(&other, "rpc.test.ret", args!["object"]).await;
    let tensor = other.cpu(0).tensor(&[1], &[1_i32]).await.unwrap();
    let own = one.cpu(0).tensor(&[1], &[2_i32]).await.unwrap();

    let cases: &[(&[Argument<'_>], &str)] = &[
        (args![&function], "argument 0, a function,"),
        (args![1, &module], "argument 1, a module,"),
        (args![&object], "argument 0, an object,"),
        (args![&own, &tensor], "argument 1, a tensor,"),
    ];
    for &(args, argument) in cases {
        let error = describe_one.call(args).await.unwrap_err();
        assert!(
            matches!(&error, SessionError::ForeignHandle { argument: said } if said == argument),
            "{error:?}"
        );
        assert!(!error.is_fatal());
    }
    let error = own.copy_to(&tensor).await.unwrap_err();
    assert!(matches!(error, SessionError::ForeignHandle { .. }));
    let foreign = other.system_lib().await.unwrap();
    let error = one
        .system_lib()
        .await
        .unwrap()
        .import_module(&foreign)
        .await
        .unwrap_err();
    assert!(matches!(error, SessionError::ForeignHandle { .. }));

    // Nothing was sent: both sessions are in step.
    assert_eq!(describe(&one, args![&own]).await, "tensor int32 [1] [2]");
    assert_eq!(
        describe(&other, args![&tensor]).await,
        "tensor int32 [1] [1]"
    );
}

#[bisync]
#[case]
async fn clones_of_a_session_are_used_side_by_side() {
    let session = open().await;
    let mut running = Vec::new();
    for worker in 0..4 {
        let session = RemoteSession::clone(&session);
        running.push(spawn(async move || {
            for number in 0..50 {
                let sent = worker * 1000 + number;
                let back: i64 = value(&session, "testing.echo", args![sent]).await;
                assert_eq!(back, i64::from(sent));
            }
        }));
    }
    for worker in running {
        join(worker).await;
    }
    assert_eq!(describe(&session, args![1]).await, "int 1");
}

#[bisync]
#[case]
async fn a_function_that_is_not_there_is_none() {
    let session = open().await;
    assert!(session.get_function("no.such").await.unwrap().is_none());
    let error = session.function("no.such").await.unwrap_err();
    assert_eq!(error.to_string(), r#"the server has no function "no.such""#);
    assert!(!error.is_fatal());
}
