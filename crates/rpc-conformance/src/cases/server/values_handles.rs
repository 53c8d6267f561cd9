//! Tensors and handles as arguments: `SRV-VAL-04`.

use rpc_proto::{DataType, Returned, TensorView, Value};

use super::by_hand as hand;
use super::exchange::floats;
use crate::case::{Case, Level};
use crate::roles::Server;
use crate::stage::Outcome;

const ELEMENTS: &[&str] = &["rpc.test.remote_return_nd"];
const MODULES: &[&str] = &[
    "ffi.SystemLib",
    "tvm.rpc.server.ModuleGetFunction",
    "testing.echo",
];
const SHAPES: &[&str] = &[
    "ffi.Shape",
    "rpc.testing.GetShapeSize",
    "rpc.testing.GetShapeElem",
    "testing.echo",
];

pub(super) const CASES: &[Case] = &[
    Case::server("SRV-VAL-040", Level::Must, "5.4.1", tensor_argument)
        .about(
            "A tensor as an argument is the memory at its address, with that shape and type.",
            "Tensors are what most functions are called with.",
        )
        .functions(&["rpc.test.remote_tensor_func"]),
    Case::server("SRV-VAL-041", Level::Must, "5.4.2", byte_offset)
        .about(
            "The byte offset of a tensor argument says where its first element is.",
            "Views into a tensor are sent so; without the offset a function reads other elements.",
        )
        .functions(ELEMENTS),
    Case::server("SRV-VAL-042", Level::Must, "5.4.1", element_types)
        .about(
            "Functions see the elements of a tensor argument by its data type.",
            "The bytes alone do not say what they are.",
        )
        .functions(ELEMENTS),
    Case::server("SRV-VAL-043", Level::Must, "5.4.1", two_tensors)
        .about(
            "Tensors with different numbers of dimensions can stand side by side in one call.",
            "A tensor's length follows from its dimensions; all behind it hangs on that.",
        )
        .functions(&["testing.echo", "rpc.test.remote_tensor_func"]),
    Case::server("SRV-VAL-044", Level::Must, "5.5.1", function_argument)
        .about(
            "The handle of a function under index 68 arrives as that function.",
            "Functions take functions.",
        )
        .functions(&["testing.echo", "rpc.test.add_to_lhs"]),
    Case::server("SRV-VAL-045", Level::Must, "5.5.2", module_argument)
        .about(
            "The handle of a module under index 73 arrives as that module.",
            "So a client asks for the functions of a module.",
        )
        .functions(MODULES),
    Case::server("SRV-VAL-046", Level::Must, "5.5.3", object_argument)
        .about(
            "The handle of an object under index 115 with inner index 115 arrives as that object.",
            "Shapes and arrays stay at the server, and are only named by clients.",
        )
        .functions(SHAPES),
    Case::server("SRV-VAL-047", Level::Should, "5.5.4", other_indices)
        .about(
            "An object is known by its inner index 115, whatever index of an object stands before it.",
            "The number of the outer type differs between builds.",
        )
        .functions(SHAPES),
];

fn tensor_argument(server: &Server) -> Outcome {
    let mut session = server.session()?;
    // It wants 3 by 4 ones, and raises otherwise.
    let wants_ones = session.function("rpc.test.remote_tensor_func")?;
    let ones = session.filled(&[3, 4], DataType::FLOAT32, &floats(&[1.0; 12]))?;
    let arg = || Value::Tensor(ones.clone());
    session.expect_call("ones", wants_ones, vec![arg()], &Value::None)?;
    session.upload("change", &ones, &floats(&[1.0, 1.0, 1.0, 1.0, 1.0, 2.0]))?;
    session.send_call(wants_ones, vec![arg()])?;
    session.expect_exception("not-ones")?;
    session.upload("change-back", &ones, &floats(&[1.0; 12]))?;
    let turned = TensorView {
        shape: [4, 3].into_iter().collect(),
        ..ones.clone()
    };
    session.send_call(wants_ones, vec![Value::Tensor(turned)])?;
    session.expect_exception("other-shape")?;
    session.expect_call("ones-again", wants_ones, vec![arg()], &Value::None)?;
    session.release("freed", &ones)
}

/// The function that gives an element of a tensor.
fn element_of(session: &mut crate::roles::server::Session) -> Outcome<u64> {
    let maker = session.function("rpc.test.remote_return_nd")?;
    session.function_of("get-element", maker, vec!["get_arr_elem".into()])
}

fn byte_offset(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let element = element_of(&mut session)?;
    let numbers = floats(&[10.0, 11.0, 12.0, 13.0]);
    let whole = session.filled(&[4], DataType::FLOAT32, &numbers)?;
    for first in 0..4_u32 {
        let view = TensorView {
            shape: [i64::from(4 - first)].into_iter().collect(),
            byte_offset: u64::from(first) * 4,
            ..whole.clone()
        };
        let args = vec![Value::Tensor(view), 0.into()];
        let expected = Value::Float(10.0 + f64::from(first));
        session.expect_call(&format!("offset-{}", first * 4), element, args, &expected)?;
    }
    session.release("freed", &whole)
}

fn element_types(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let element = element_of(&mut session)?;
    let doubles = [1.25_f64.to_le_bytes(), (-2.5_f64).to_le_bytes()].concat();
    let samples = [
        (DataType::INT8, vec![0xfe, 0x7f], Value::Int(-2)),
        (DataType::UINT8, vec![0xfe, 0x7f], Value::Int(254)),
        (
            DataType::INT32,
            [(-70_000_i32).to_le_bytes(), [0; 4]].concat(),
            Value::Int(-70_000),
        ),
        (
            DataType::INT64,
            [i64::MIN.to_le_bytes(), [0; 8]].concat(),
            Value::Int(i64::MIN),
        ),
        (DataType::FLOAT64, doubles, Value::Float(1.25)),
    ];
    for (dtype, bytes, expected) in samples {
        let tensor = session.filled(&[2], dtype, &bytes)?;
        let args = vec![Value::Tensor(tensor.clone()), 0.into()];
        session.expect_call(&format!("first-of-{dtype}"), element, args, &expected)?;
        session.release("freed", &tensor)?;
    }
    Ok(())
}

fn two_tensors(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    let one = session.filled(&[], DataType::FLOAT32, &floats(&[1.0]))?;
    let ones = session.filled(&[3, 4], DataType::FLOAT32, &floats(&[1.0; 12]))?;
    let many = TensorView {
        shape: [1, 1, 3, 1, 2, 2].into_iter().collect(),
        ..ones.clone()
    };
    let tensors = [one.clone(), ones.clone(), many, one.clone()].map(Value::Tensor);
    let args = [Value::Int(9)]
        .into_iter()
        .chain(tensors)
        .chain([Value::from("end")]);
    session.expect_call("first", echo, args.collect(), &Value::Int(9))?;
    let wants_ones = session.function("rpc.test.remote_tensor_func")?;
    let args = vec![Value::Tensor(ones.clone())];
    session.expect_call("call-after-it", wants_ones, args, &Value::None)?;
    session.release("freed", &one)?;
    session.release("freed-too", &ones)
}

fn function_argument(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let echo = session.function("testing.echo")?;
    let maker = session.function("rpc.test.add_to_lhs")?;
    let add_ten = session.function_of("add-ten", maker, vec![10.into()])?;
    session.call_by_hand(echo, &[hand::value(hand::FUNCTION, &add_ten.to_le_bytes())]);
    let found = session.returned("same-function")?;
    let Returned::Value(Value::Function(again)) = found else {
        return Err(session
            .stage()
            .fail("a-function", "a function", format_args!("{found:?}")));
    };
    session.free("first-handle-freed", add_ten)?;
    session.expect_call("is-that-function", again, vec![5.into()], &Value::Int(15))?;
    session.free("second-handle-freed", again)
}

fn module_argument(server: &Server) -> Outcome {
    let mut session = server.session()?;
    let system_lib = session.function(MODULES[0])?;
    let get_function = session.function(MODULES[1])?;
    let found = session.call("module", system_lib, vec![])?;
    let Returned::Value(Value::Module(module)) = found else {
        return Err(session
            .stage()
            .fail("a-module", "a module", format_args!("{found:?}")));
    };
    let by_hand = hand::value(hand::MODULE, &module.to_le_bytes());
    let args = [
        by_hand.clone(),
        hand::raw(hand::RAW_STR, b"no such"),
        hand::boolean(0),
    ];
    session.expect_by_hand("asked-for-a-function", get_function, &args, &Value::None)?;
    let echo = session.function(MODULES[2])?;
    session.call_by_hand(echo, &[by_hand]);
    let found = session.returned("same-module")?;
    let holds = matches!(found, Returned::Value(Value::Module(again)) if again != 0);
    session
        .stage()
        .check("is-a-module", holds, "a module", format_args!("{found:?}"))
}

/// Has shapes asked for their sizes, with the handle under this index.
fn objects_under(server: &Server, indices: &[i32]) -> Outcome {
    let mut session = server.session()?;
    let shape = session.function(SHAPES[0])?;
    let size = session.function(SHAPES[1])?;
    let element = session.function(SHAPES[2])?;
    let handle = session.object_of("shape", shape, vec![2.into(), 3.into(), 5.into()])?;
    for index in indices {
        let inner = hand::value(hand::OBJECT, &handle.to_le_bytes());
        let object = hand::value(*index, &inner);
        let check = format!("size-as-{index}");
        session.expect_by_hand(&check, size, std::slice::from_ref(&object), &Value::Int(3))?;
        let args = [object, hand::int(2)];
        session.expect_by_hand(&format!("last-as-{index}"), element, &args, &Value::Int(5))?;
    }
    session.free("freed", handle)
}

fn object_argument(server: &Server) -> Outcome {
    objects_under(server, &[hand::OBJECT])
}

fn other_indices(server: &Server) -> Outcome {
    objects_under(server, &[hand::SHAPE, 71, 114, 200])
}
