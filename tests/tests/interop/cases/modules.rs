//! Compiled modules: uploaded, loaded, and run on tensors of the server.

use rpc_proto::DataType;
use rpc_session::{SessionError, args};
use rpc_tests::modules::{
    ANSWER, CompiledModule, MATMUL, MATMUL_SIDE, MODEL, MODEL_B, MODEL_RESULT, MODEL_W, MODEL_X,
    VADD, VADD_LEN, elements, product,
};

use super::bench::open;
use super::{Module, Output, RemoteSession, Tensor, bisync, case};
use crate::support::{CPU, message};

#[bisync]
pub(super) async fn load(session: &RemoteSession, module: CompiledModule) -> Module {
    let library = module.shared_library();
    let name = session.files().upload_file(&library, &mut |_, _| {}).await;
    session.load_module(&name.unwrap()).await.unwrap()
}

#[bisync]
#[case]
async fn vadd_adds() {
    let session = open().await;
    let module = load(&session, VADD).await;
    let vadd = module.function(VADD.function).await.unwrap();

    let (shape, host_a) = elements([VADD_LEN], 1.0);
    let (_, host_b) = elements([VADD_LEN], -0.5);
    let cpu = session.cpu(0);
    let a = cpu.tensor(&shape, &host_a).await.unwrap();
    let b = cpu.tensor(&shape, &host_b).await.unwrap();
    let c = cpu.empty(&shape, DataType::FLOAT32).await.unwrap();
    vadd.call(args![&a, &b, &c]).await.unwrap();

    let sums: Vec<f32> = host_a.iter().zip(&host_b).map(|(a, b)| a + b).collect();
    assert_eq!(c.to_vec::<f32>().await.unwrap(), sums);
}

#[bisync]
#[case]
async fn matmul_multiplies() {
    let session = open().await;
    let module = load(&session, MATMUL).await;
    let matmul = module.function(MATMUL.function).await.unwrap();

    let (shape, host_a) = elements([MATMUL_SIDE; 2], 1.0);
    let (_, host_b) = elements([MATMUL_SIDE; 2], -2.0);
    let cpu = session.cpu(0);
    let a = cpu.tensor(&shape, &host_a).await.unwrap();
    let b = cpu.tensor(&shape, &host_b).await.unwrap();
    let c = cpu.empty(&shape, DataType::FLOAT32).await.unwrap();
    matmul.call(args![&a, &b, &c]).await.unwrap();

    let expected = product(&host_a, &host_b, MATMUL_SIDE, MATMUL_SIDE);
    assert_eq!(c.to_vec::<f32>().await.unwrap(), expected);
}

#[bisync]
#[case]
async fn a_function_without_arguments_answers() {
    let session = open().await;
    let module = load(&session, ANSWER).await;
    let answer = module.function(ANSWER.function).await.unwrap();
    let answer: i64 = answer.call(&[]).await.unwrap().try_into().unwrap();
    assert_eq!(answer, 42);
    let answer_of = module.function("answer_of").await.unwrap();
    let answer: i64 = answer_of.call(args![-1]).await.unwrap().try_into().unwrap();
    assert_eq!(answer, 42);
}

#[bisync]
#[case]
async fn a_server_links_archives_and_objects() {
    let session = open().await;
    for file in [ANSWER.archive(), ANSWER.object()] {
        let name = session.files().upload_file(&file, &mut |_, _| {}).await;
        let module = session.load_module(&name.unwrap()).await.unwrap();
        let answer = module.function(ANSWER.function).await.unwrap();
        let answer: i64 = answer.call(&[]).await.unwrap().try_into().unwrap();
        assert_eq!(answer, 42, "{}", file.display());
    }
}

#[bisync]
#[case]
async fn a_linked_archive_is_downloaded_as_a_library() {
    let session = open().await;
    let library = {
        let files = session.files();
        let name = files.upload_file(&ANSWER.archive(), &mut |_, _| {}).await;
        files.link_and_download(&name.unwrap()).await.unwrap()
    };
    assert!(library.starts_with(b"\x7fELF"));

    let session = session.reopen().await;
    session.files().upload("linked.so", &library).await.unwrap();
    let module = session.load_module("linked.so").await.unwrap();
    let answer = module.function(ANSWER.function).await.unwrap();
    let answer: i64 = answer.call(&[]).await.unwrap().try_into().unwrap();
    assert_eq!(answer, 42);
}

#[bisync]
#[case]
async fn functions_are_found_in_a_module_and_in_those_that_it_imports() {
    let session = open().await;
    let vadd = load(&session, VADD).await;
    let answer = load(&session, ANSWER).await;

    assert!(vadd.get_function("vadd").await.unwrap().is_some());
    assert!(vadd.get_function("answer").await.unwrap().is_none());
    let error = vadd.function("answer").await.unwrap_err();
    assert!(
        matches!(&error, SessionError::NoModuleFunction { name } if name == "answer"),
        "{error:?}"
    );

    vadd.import_module(&answer).await.unwrap();
    drop(answer);
    let answer = vadd.function("answer").await.unwrap();
    let answer: i64 = answer.call(&[]).await.unwrap().try_into().unwrap();
    assert_eq!(answer, 42);
}

#[bisync]
#[case]
async fn the_entry_function_of_a_library_with_one_kernel_is_that_kernel() {
    let session = open().await;
    let module = load(&session, VADD).await;
    let entry = module.entry_function().await.unwrap();
    let error = entry.call(args![1]).await.unwrap_err();
    assert!(message(&error).contains("`vadd(a: Tensor("), "{error}");

    let library = session.system_lib().await.unwrap();
    let error = library.entry_function().await.unwrap_err();
    assert_eq!(error.to_string(), r#"the module has no function "main""#);
}

#[bisync]
#[case]
async fn the_system_library_of_a_server_is_there() {
    let session = open().await;
    let library = session.system_lib().await.unwrap();
    assert!(library.get_function("vadd").await.unwrap().is_none());
}

#[bisync]
#[case]
async fn a_file_that_is_no_module_is_refused_by_the_server() {
    let session = open().await;
    let error = session.load_module("nothing.so").await.unwrap_err();
    let said = message(&error);
    assert!(
        said.starts_with("cannot find file") && said.ends_with("nothing.so"),
        "{said}"
    );
}

/// A model is a library whose one function makes the machine that runs it.
#[bisync]
#[case]
async fn a_relax_model_runs() {
    const POOLED_ALLOCATOR: i32 = 2;
    let session = open().await;
    let library = load(&session, MODEL).await;
    let machine = library.function("vm_load_executable").await.unwrap();
    let machine: Module = machine.call(&[]).await.unwrap().try_into().unwrap();
    let initialize = machine.function("vm_initialization").await.unwrap();
    let initialized = initialize
        .call(args![CPU.device_type.0, CPU.id, POOLED_ALLOCATOR])
        .await
        .unwrap();
    assert!(matches!(initialized, Output::None));

    let cpu = session.cpu(0);
    let (shape_x, host_x) = elements(MODEL_X, 1.0);
    let (shape_w, host_w) = elements(MODEL_W, 0.5);
    let (shape_b, host_b) = elements(MODEL_B, -250.0);
    let x = cpu.tensor(&shape_x, &host_x).await.unwrap();
    let w = cpu.tensor(&shape_w, &host_w).await.unwrap();
    let b = cpu.tensor(&shape_b, &host_b).await.unwrap();
    let main = machine.entry_function().await.unwrap();
    let result: Tensor = main
        .call(args![&x, &w, &b])
        .await
        .unwrap()
        .try_into()
        .unwrap();

    let expected: Vec<f32> = product(&host_x, &host_w, MODEL_X[1], MODEL_W[1])
        .iter()
        .zip(host_b.iter().cycle())
        .map(|(product, bias)| (product + bias).max(0.0))
        .collect();
    // Both branches of the last operator are taken.
    assert!(expected.contains(&0.0) && expected.iter().any(|&value| value > 0.0));
    assert_eq!(
        result.shape(),
        MODEL_RESULT.map(|size| i64::try_from(size).unwrap())
    );
    assert_eq!(result.to_vec::<f32>().await.unwrap(), expected);
}
