//! Modules and objects that mean something to the server alone.

use rpc_session::blocking::{Object, Output};
use rpc_tests::modules::{
    ANSWER, MODEL, MODEL_B, MODEL_RESULT, MODEL_W, MODEL_X, VADD, VADD_LEN, product,
};

use super::*;

#[test]
fn a_function_without_arguments_answers() {
    let server = Server::with_runtime(KEY, &[]);
    let session = connect(&server);
    for file in ANSWER.files() {
        let module = load(&session, &file);
        assert_eq!(answer(&module, ANSWER.function), 42, "{}", file.display());
    }
}

#[test]
fn functions_are_found_in_imported_modules() {
    let server = Server::with_runtime(KEY, &[]);
    let session = connect(&server);
    let vadd = load(&session, &VADD.shared_library());
    let imported = load(&session, &ANSWER.shared_library());
    assert!(vadd.get_function(ANSWER.function).unwrap().is_none());
    vadd.import_module(&imported).unwrap();
    drop(imported);
    assert_eq!(answer(&vadd, ANSWER.function), 42);

    let operands = Operands::new(&session, [VADD_LEN]);
    let sums = operands.run(&vadd, VADD.function).unwrap();
    assert_eq!(sums, operands.sums());
}

#[test]
fn functions_in_rust_stand_beside_those_of_the_runtime() {
    let server = Server::with_runtime(KEY, &["--test-functions"]);
    let session = connect(&server);
    let module = load(&session, &ANSWER.shared_library());
    let addone = session.function("rpc.test.addone").unwrap();
    let sum: i64 = addone.call(args![41]).unwrap().try_into().unwrap();
    assert_eq!(sum, answer(&module, ANSWER.function));
    assert!(session.get_function("ffi.Shape").unwrap().is_some());

    let without = Server::with_runtime(KEY, &[]);
    let session = connect(&without);
    assert!(session.get_function("rpc.test.addone").unwrap().is_none());
}

#[test]
fn the_system_library_of_the_runtime_is_there() {
    let server = Server::with_runtime(KEY, &[]);
    let session = connect(&server);
    let library = session.system_lib().unwrap();
    assert!(library.get_function("vadd").unwrap().is_none());
    drop((library, session));
    run_client("system_library_of_the_runtime", &server);
}

#[test]
fn a_shape_is_an_object_of_the_server() {
    let server = Server::with_runtime(KEY, &[]);
    let session = connect(&server);
    let sizes = [7, 0, 1 << 40];
    let make = session.function("ffi.Shape").unwrap();
    let shape = make.call(args![sizes[0], sizes[1], sizes[2]]).unwrap();
    let shape: Object = shape.try_into().unwrap();

    let count = session.function("rpc.testing.GetShapeSize").unwrap();
    let count: i64 = count.call(args![&shape]).unwrap().try_into().unwrap();
    assert_eq!(count, 3);
    let element = session.function("rpc.testing.GetShapeElem").unwrap();
    for (index, size) in (0..count).zip(sizes) {
        let there: i64 = element
            .call(args![&shape, index])
            .unwrap()
            .try_into()
            .unwrap();
        assert_eq!(there, size);
    }
}

#[test]
fn their_client_imports_modules_and_holds_objects() {
    let server = Server::with_runtime(KEY, &[]);
    run_client("objects", &server);
}

#[track_caller]
fn assert_close(there: &[f32], right: &[f32]) {
    let close = |(there, right): (&f32, &f32)| (there - right).abs() <= 1e-5 + 1e-3 * right.abs();
    assert!(
        there.len() == right.len() && there.iter().zip(right).all(close),
        "{there:?} is not {right:?}"
    );
}

/// A model is a library whose one function makes the machine that runs it.
#[test]
fn our_client_runs_a_model() {
    const POOLED_ALLOCATOR: i32 = 2;
    let server = Server::with_runtime(KEY, &[]);
    let session = connect(&server);
    let library = load(&session, &MODEL.shared_library());
    let machine = library.function("vm_load_executable").unwrap();
    let machine: Module = machine.call(&[]).unwrap().try_into().unwrap();
    let cpu = session.cpu(0);
    let device = cpu.device();
    let initialize = machine.function("vm_initialization").unwrap();
    let initialized = initialize
        .call(args![device.device_type.0, device.id, POOLED_ALLOCATOR])
        .unwrap();
    assert!(matches!(initialized, Output::None));

    let (shape_x, host_x) = elements(MODEL_X, 0.1);
    let (shape_w, host_w) = elements(MODEL_W, 0.3);
    let (shape_b, host_b) = elements(MODEL_B, -20.0);
    let x = cpu.tensor(&shape_x, &host_x).unwrap();
    let w = cpu.tensor(&shape_w, &host_w).unwrap();
    let b = cpu.tensor(&shape_b, &host_b).unwrap();
    let main = machine.function(MODEL.function).unwrap();
    let result: Tensor = main.call(args![&x, &w, &b]).unwrap().try_into().unwrap();

    let right: Vec<f32> = product(&host_x, &host_w, MODEL_X[1], MODEL_W[1])
        .iter()
        .zip(host_b.iter().cycle())
        .map(|(product, bias)| (product + bias).max(0.0))
        .collect();
    // Both branches of the last operator are taken.
    assert!(right.contains(&0.0) && right.iter().any(|&value| value > 0.0));
    let shape = MODEL_RESULT.map(|size| i64::try_from(size).unwrap());
    assert_eq!(result.shape(), shape);
    assert_close(&result.to_vec().unwrap(), &right);
}

#[test]
fn their_client_runs_a_model() {
    let server = Server::with_runtime(KEY, &[]);
    run_client("model", &server);
}
