use std::sync::{Arc, Mutex, PoisonError, Weak};

use rpc_proto::{DataType, TypeCode};

use super::{Arg, Exception, Functions, LocalFunction, LocalObject, LocalTensor, LocalValue};

/// The functions that the reference's own tests call on a server.
///
/// | name | what it does |
/// | --- | --- |
/// | `rpc.test.addone` (x) | x + 1 |
/// | `rpc.test.strcat` (name, x) | the text `name:x` |
/// | `rpc.test.runtime_str_concat` (x, y) | both texts in a row |
/// | `rpc.test.except` (name) | raises `ValueError` with that text |
/// | `rpc.test.add_to_lhs` (x) | a function that adds x |
/// | `rpc.test.remote_tensor_func` (tensor) | raises unless it is 3 by 4 and all ones |
/// | `rpc.test.remote_return_nd` (what) | a function on ten zeros: `get_arr`, `get_elem`, `get_arr_elem`, `ref_count` |
/// | `testing.echo` (x, …) | x |
/// | `testing.test_raise_error` (kind, message) | raises that |
/// | `ffi.Shape` (x, …), `rpc.testing.GetShapeSize`, `rpc.testing.GetShapeElem` | an object, and what is in it |
///
/// The system library has `vadd` (a, b, sum), for tensors of `float32`.
///
/// ```
/// let functions = rpc_session::test_functions();
/// let addone = functions.get("rpc.test.addone").unwrap();
/// assert_eq!(addone.call(&[1.into()]).unwrap().get::<i64>().unwrap(), 2);
/// ```
#[must_use]
pub fn test_functions() -> Functions {
    let mut functions = Functions::new();
    functions
        .add("rpc.test.addone", |x: i64| {
            x.checked_add(1)
                .ok_or_else(|| Exception::new("OverflowError", "the sum is above 64 bits"))
        })
        .add_packed("rpc.test.strcat", |args| match args {
            [Arg::Str(name), x] => Ok(format!("{name}:{}", printed(x)?).into()),
            _ => Err(Exception::new(
                "TypeError",
                "rpc.test.strcat: expected a text and a value",
            )),
        })
        .add("rpc.test.runtime_str_concat", |x: &str, y: &str| {
            format!("{x}{y}")
        })
        .add("rpc.test.except", |name: &str| {
            Err::<(), _>(Exception::new("ValueError", name))
        })
        .add("rpc.test.add_to_lhs", |x: i64| {
            LocalFunction::new("add_to_lhs", move |y: i64| {
                x.checked_add(y)
                    .ok_or_else(|| Exception::new("OverflowError", "the sum is above 64 bits"))
            })
        })
        .add("rpc.test.remote_tensor_func", ones)
        .add("testing.test_raise_error", |kind: &str, message: &str| {
            Err::<(), _>(Exception::new(kind, message))
        })
        .add_packed("testing.echo", |args| match args {
            [first, ..] => Ok(first.clone().into()),
            [] => Err(Exception::new(
                "TypeError",
                "testing.echo: expected an argument",
            )),
        })
        .insert(shared_zeros())
        .add_to_system_lib("vadd", add_vectors);
    add_shapes(&mut functions);
    functions
}

/// A value as Python prints it.
fn printed(value: &Arg<'_>) -> Result<String, Exception> {
    Ok(match value {
        Arg::None => "None".to_owned(),
        Arg::Int(x) => x.to_string(),
        Arg::Bool(true) => "True".to_owned(),
        Arg::Bool(false) => "False".to_owned(),
        Arg::Float(x) => format!("{x:?}"),
        Arg::Str(text) => (*text).to_owned(),
        Arg::DataType(dtype) => dtype.to_string(),
        Arg::Device(device) => device.to_string(),
        other => {
            return Err(Exception::new(
                "TypeError",
                format!("rpc.test.strcat cannot print {}", other.kind()),
            ));
        }
    })
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "so arguments come to a function"
)]
fn ones(tensor: LocalTensor) -> Result<(), Exception> {
    let expected = tensor.shape() == [3, 4];
    if expected
        && (0..12).all(|index| {
            matches!(
                element(&tensor, index),
                Ok(Element::Float(1.0) | Element::Int(1))
            )
        })
    {
        return Ok(());
    }
    Err(Exception::new(
        "AssertionError",
        format!("expected 3 by 4 ones, found {tensor:?}"),
    ))
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "so arguments come to a function"
)]
fn add_vectors(a: LocalTensor, b: LocalTensor, sum: LocalTensor) -> Result<(), Exception> {
    let (a, b) = (a.to_vec::<f32>()?, b.to_vec::<f32>()?);
    let sums: Vec<_> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    sum.write(&sums)
}

/// `rpc.test.remote_return_nd`. What it returned share one tensor for as long as one of them is alive.
fn shared_zeros() -> LocalFunction {
    let shared: Mutex<Weak<LocalTensor>> = Mutex::default();
    LocalFunction::new("rpc.test.remote_return_nd", move |what: &str| {
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let zeros = match shared.upgrade() {
            Some(zeros) => zeros,
            None => Arc::new(LocalTensor::zeros(&[10], DataType::FLOAT32)?),
        };
        *shared = Arc::downgrade(&zeros);
        Ok::<_, Exception>(match what {
            "get_arr" => LocalFunction::new(what, move || LocalTensor::clone(&zeros)),
            "get_elem" => LocalFunction::new(what, move |index: i64| element_at(&zeros, index)),
            "get_arr_elem" => LocalFunction::new(what, |tensor: LocalTensor, index: i64| {
                element_at(&tensor, index)
            }),
            "ref_count" => LocalFunction::new(what, move || zeros.owners()),
            _ => return Err(Exception::runtime("unknown name")),
        })
    })
}

#[derive(Debug, PartialEq)]
enum Element {
    Int(i64),
    Float(f64),
}

/// An element by an index as Python counts: from the end if negative.
fn element_at(tensor: &LocalTensor, index: i64) -> Result<LocalValue, Exception> {
    let out_of_bounds = || {
        let shape = tensor.shape();
        Exception::new(
            "IndexError",
            format!("index {index} of a tensor of {shape:?}"),
        )
    };
    let &[size] = tensor.shape() else {
        return Err(out_of_bounds());
    };
    let from_start = if index < 0 {
        index.checked_add(size)
    } else {
        Some(index)
    };
    let index = from_start.filter(|index| (0..size).contains(index));
    let index = index.and_then(|index| usize::try_from(index).ok());
    Ok(match element(tensor, index.ok_or_else(out_of_bounds)?)? {
        Element::Int(value) => LocalValue::Int(value),
        Element::Float(value) => LocalValue::Float(value),
    })
}

/// The element at `index` of all.
fn element(tensor: &LocalTensor, index: usize) -> Result<Element, Exception> {
    let dtype = tensor.dtype();
    let width = usize::from(dtype.bits / 8);
    let bytes = tensor.read_bytes(index * width..(index + 1) * width)?;
    let mut wide = [0; 8];
    let (DataType { lanes: 1, .. }, Some(low)) = (dtype, wide.get_mut(..width)) else {
        return Err(unknown(dtype));
    };
    low.copy_from_slice(&bytes);
    let bits = u64::from_le_bytes(wide);
    let unused = 64 - u32::from(dtype.bits).clamp(1, 64);
    Ok(match (dtype.code, dtype.bits) {
        (TypeCode::FLOAT, 64) => Element::Float(f64::from_bits(bits)),
        (TypeCode::FLOAT, 32) => {
            Element::Float(f32::from_le_bytes([wide[0], wide[1], wide[2], wide[3]]).into())
        }
        // Shifted up and down again, for its sign.
        (TypeCode::INT, 8 | 16 | 32 | 64) => Element::Int((bits << unused).cast_signed() >> unused),
        (TypeCode::UINT | TypeCode::BOOL, 8 | 16 | 32) => Element::Int(bits.cast_signed()),
        _ => return Err(unknown(dtype)),
    })
}

fn unknown(dtype: DataType) -> Exception {
    Exception::new(
        "TypeError",
        format!("there are no numbers to read in a tensor of {dtype}"),
    )
}

/// Objects that only functions of the server can look into.
fn add_shapes(functions: &mut Functions) {
    /// The number under which the reference knows the type.
    const SHAPE: i64 = 69;
    struct Shape(Vec<i64>);

    fn sizes(object: &LocalObject) -> Result<&[i64], Exception> {
        let shape = object.downcast_ref::<Shape>();
        let shape = shape.ok_or_else(|| Exception::new("TypeError", "expected a shape"))?;
        Ok(&shape.0)
    }
    functions
        .add_packed("ffi.Shape", |args| {
            let sizes = args.iter().map(|arg| match arg {
                Arg::Int(size) => Ok(*size),
                other => Err(Exception::new(
                    "TypeError",
                    format!("ffi.Shape: expected integers, found {}", other.kind()),
                )),
            });
            let shape = Shape(sizes.collect::<Result<_, _>>()?);
            Ok(LocalObject::new(shape).with_type_index(SHAPE).into())
        })
        .add("rpc.testing.GetShapeSize", |shape: LocalObject| {
            sizes(&shape).map(<[i64]>::len)
        })
        .add(
            "rpc.testing.GetShapeElem",
            |shape: LocalObject, index: usize| {
                let size = sizes(&shape)?.get(index).copied();
                size.ok_or_else(|| {
                    Exception::new("IndexError", format!("the shape has no size {index}"))
                })
            },
        );
}
