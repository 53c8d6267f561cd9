//! Bytes of the `legacy` dialect: how they are laid out, and what is wrong with them where.

use super::*;
use crate::{DataType, Device};

const DIALECT: Dialect = Dialect::Legacy;

fn error_of(parts: &[&[u8]]) -> String {
    super::error_of(parts, DIALECT)
}

fn call(function: u64, args: impl IntoIterator<Item = Value<'static>>) -> Packet<'static> {
    Packet::Call {
        function,
        args: Values::from_iter(args),
        bulk: None,
    }
}

fn view() -> TensorView {
    TensorView {
        data: 0x1000,
        device: Device::cpu(0),
        dtype: DataType::FLOAT32,
        shape: [2, 3][..].into(),
        byte_offset: 8,
    }
}

/// The same, as it is written.
fn view_bytes() -> Vec<u8> {
    let device = [int(1), int(0)].concat();
    let dtype = [2, 32, 1, 0];
    let shape = [long(2), long(3)].concat();
    [&long(0x1000), &*device, &int(2), &dtype, &shape, &long(8)].concat()
}

#[test]
fn type_codes_stand_before_all_values() {
    let values = [
        (0, Value::Int(-2), (-2_i64).to_le_bytes().to_vec()),
        (2, Value::Float(0.5), 0.5_f64.to_le_bytes().to_vec()),
        (3, Value::Pointer(3), long(3).to_vec()),
        (4, Value::None, vec![]),
        (
            5,
            Value::DataType(DataType::FLOAT32),
            vec![2, 32, 1, 0, 0, 0, 0, 0],
        ),
        (6, Value::Device(Device::cpu(7)), [int(1), int(7)].concat()),
        (7, Value::Tensor(view()), view_bytes()),
        (8, Value::Object(4), [&int(9)[..], &long(4)].concat()),
        (9, Value::Module(5), long(5).to_vec()),
        (10, Value::Function(6), long(6).to_vec()),
        (
            11,
            Value::from("héllo"),
            [&long(6)[..], "héllo".as_bytes()].concat(),
        ),
        (
            12,
            Value::from(&b"\0\xff"[..]),
            [&long(2)[..], b"\0\xff"].concat(),
        ),
    ];
    let codes = values.each_ref().map(|(code, ..)| int(*code)).concat();
    let bytes = values
        .each_ref()
        .map(|(_, _, bytes)| bytes.clone())
        .concat();
    let packet = call(1, values.map(|(_, value, _)| value));
    let written = framed(&[&int(3), &long(1), &int(12), &codes, &bytes]);
    assert_eq!(encoded(&packet, DIALECT), written);
    assert_eq!(read(&written, DIALECT), Ok(packet));
}

/// Type codes and values of a sequence are apart, and yet belong together.
#[test]
fn type_codes_are_explained_with_the_value_that_they_belong_to() {
    let bytes = encoded(&call(1, [Value::None, Value::Object(4), 5.into()]), DIALECT);
    let explained = explain(&bytes, DIALECT, LIMITS());
    let lines = explained.fields.iter().skip(3).map(|field| {
        let item = field.item.map(|item| format!("#{item} "));
        let meaning = field
            .meaning
            .as_ref()
            .map(|meaning| format!(" ({meaning})"));
        let (item, meaning) = (item.unwrap_or_default(), meaning.unwrap_or_default());
        format!(
            "{} {item}{} {}{meaning}",
            field.offset, field.name, field.value
        )
    });
    assert_eq!(
        lines.collect::<Vec<_>>(),
        [
            "20 number of values 3",
            "24 #0 type code of a value 4 (Null)",
            "28 #1 type code of a value 8 (ObjectHandle)",
            "32 #2 type code of a value 0 (Int)",
            "36 #1 inner type index 9 (RPCObjectRef)",
            "40 #1 object handle 0x4",
            "48 #2 integer 5",
        ]
    );
}

#[test]
fn integers_without_a_sign_and_bools_are_read_but_not_written() {
    let written = framed(&[
        &int(3),
        &long(1),
        &int(3),
        &[int(1), int(15), int(15)].concat(),
        &[long(5), long(0), long(2)].concat(),
    ]);
    let packet = call(1, [Value::Int(5), Value::Bool(false), Value::Bool(true)]);
    assert_eq!(read(&written, DIALECT).as_ref(), Ok(&packet));
    let same = call(1, [5, 0, 1].map(Value::Int));
    assert_eq!(encoded(&packet, DIALECT), encoded(&same, DIALECT));

    let returned = |code: u8, value: u64| {
        let bytes = framed(&[
            &int(4),
            &int(2),
            &int(0),
            &int(code.into()),
            &long(code.into()),
            &long(value),
        ]);
        let Ok(Packet::Return(values)) = read(&bytes, DIALECT) else {
            panic!("{bytes:?}");
        };
        Packet::returned(values, DIALECT).map(Returned::into_owned)
    };
    assert_eq!(returned(1, 5), Ok(Returned::Value(Value::Int(5))));
    assert_eq!(returned(15, 1), Ok(Returned::Value(Value::Bool(true))));
}

#[test]
fn a_payload_has_its_type_code_among_the_others() {
    let args = Values::from_iter([Value::from("ab"), Value::None, Value::Tensor(view())]);
    let nbytes = 1 << 20;
    let head = [
        &int(3)[..],
        &long(1),
        &int(4),
        &[int(11), int(4), int(7), int(12)].concat(),
        &long(2),
        b"ab",
        &view_bytes(),
        &long(nbytes),
    ]
    .concat();
    let written = [&long(head.len() as u64 + nbytes)[..], &head].concat();
    let packet = Packet::Call {
        function: 1,
        args,
        bulk: Some(Bulk::bytes(nbytes)),
    };
    assert_eq!(encoded(&packet, DIALECT), written);
    let frame = Frame::Packet {
        head: written.len() as u64,
        payload: nbytes,
    };
    assert_eq!(scanned(&written, DIALECT), Ok(frame));
    assert_reads(&written, nbytes, DIALECT, &packet);
}

/// Where the last argument is neither text nor bytes, its type code says so before all values.
#[test]
fn a_large_packet_without_a_payload_is_refused_early() {
    let head = [&int(3)[..], &long(1), &int(2), &int(12), &int(0)].concat();
    let limits = LIMITS().with_packet(1 << 16);
    let error = scan(&[&long(1 << 20)[..], &head].concat(), DIALECT, limits);
    let error = error.unwrap_err().to_string();
    assert_eq!(
        error,
        "at offset 0: packet is 1048584, more than the limit of 65536"
    );
}

/// A peer that sends a large call in small pieces is not waited for value by value.
#[test]
fn what_is_needed_covers_all_values_of_known_length() {
    let count = 1000_u32;
    let total = 1_u64 << 20;
    let start = [&long(total)[..], &int(3), &long(1), &count.to_le_bytes()].concat();
    let needed_of = |input: &[u8]| match scanned(input, DIALECT) {
        Ok(Frame::Incomplete { needed }) => needed,
        other => panic!("{other:?}"),
    };
    assert_eq!(needed_of(&start), 24 + 4000);
    let codes = [int(0); 999].concat();
    let with_codes = [&*start, &codes, &int(11)].concat();
    assert_eq!(needed_of(&with_codes), 24 + 4000 + 8000);
}

#[test]
fn a_handle_is_freed_as_what_it_is() {
    use HandleKind::{Function, Module, Object, Tensor};

    let kinds = [
        (Some(Function), 10, Some(Function)),
        (Some(Module), 9, Some(Module)),
        (Some(Tensor), 13, Some(Tensor)),
        (Some(Object), 8, Some(Object)),
        (None, 8, Some(Object)),
    ];
    for (kind, code, arrives) in kinds {
        let free = |kind| Packet::Syscall(Syscall::FreeHandle { handle: 7, kind });
        let written = framed(&[
            &int(10),
            &int(2),
            &[int(3), int(0)].concat(),
            &long(7),
            &long(code),
        ]);
        assert_eq!(encoded(&free(kind), DIALECT), written);
        assert_eq!(read(&written, DIALECT), Ok(free(arrives)));
        let in_ffi = encoded(&free(kind), Dialect::Ffi);
        assert_eq!(in_ffi, encoded(&free(None), Dialect::Ffi));
        assert_eq!(read(&in_ffi, Dialect::Ffi), Ok(free(None)));
    }
}

#[test]
fn memory_is_asked_for_by_a_data_type_or_its_name() {
    let asked = |dtype: &[u8], code: i32| {
        let codes = [int(6), int(0), int(0), int(code)].concat();
        let device = [int(1), int(0)].concat();
        let packet = framed(&[
            &int(13),
            &int(4),
            &codes,
            &device,
            &[long(64), long(16)].concat(),
            dtype,
        ]);
        read(&packet, DIALECT).map(Packet::into_owned)
    };
    let expected = Packet::Syscall(Syscall::AllocData {
        device: Device::cpu(0),
        nbytes: 64,
        alignment: 16,
        dtype: DataType::FLOAT32,
    });
    assert_eq!(asked(&[2, 32, 1, 0, 0, 0, 0, 0], 5).as_ref(), Ok(&expected));
    let name = [&long(7)[..], b"float32"].concat();
    assert_eq!(asked(&name, 11).as_ref(), Ok(&expected));
    let no_name = [&long(7)[..], b"float3x"].concat();
    assert_eq!(
        asked(&no_name, 11).unwrap_err().to_string(),
        "argument #3 of allocate data: expected a data type, found a text that is none"
    );
}

#[test]
fn results_of_calls() {
    let written = |returned: &Returned<'_>| {
        let mut out = Vec::new();
        encode_returned(DIALECT, returned, LIMITS(), &mut out).unwrap();
        out
    };
    let sequence = |codes: &[i32], values: &[u8]| {
        let count = i32::try_from(codes.len()).unwrap();
        let codes: Vec<_> = codes.iter().flat_map(|code| int(*code)).collect();
        framed(&[&int(4), &int(count), &codes, values])
    };
    assert_eq!(
        written(&Returned::Value(Value::None)),
        sequence(&[0, 4], &long(4))
    );
    let text = [&long(11)[..], &long(7), b"abcdefg"].concat();
    assert_eq!(
        written(&Returned::Value("abcdefg".into())),
        sequence(&[0, 11], &text)
    );
    // Whatever number the type of an object has elsewhere.
    let object = Returned::Object {
        type_index: 71,
        handle: 5,
    };
    assert_eq!(
        written(&object),
        sequence(&[0, 3], &[long(8), long(5)].concat())
    );
    let tensor = Returned::Tensor {
        tensor: view(),
        handle: 5,
    };
    assert_eq!(
        written(&tensor),
        sequence(
            &[0, 7, 3],
            &[&long(13)[..], &view_bytes(), &long(5)].concat()
        )
    );
    let nbytes = 1 << 20;
    let bulk = Packet::BulkReturn {
        kind: BulkKind::Text,
        nbytes,
    };
    let head = encoded(&bulk, DIALECT);
    assert_eq!(head.len() as u64, Dialect::BULK_RETURN_HEAD);
    assert_eq!(
        head[12..],
        sequence(&[0, 11], &[long(11), long(nbytes)].concat())[12..]
    );
    assert_reads(&head, nbytes, DIALECT, &bulk);
}

#[test]
fn huge_counts_and_lengths_are_named() {
    let count = i32::MAX.to_le_bytes();
    let values = "number of values is 2147483647, more than the limit of 4096";
    for code in [4, 5, 9] {
        assert_eq!(
            error_of(&[&int(code), &count]),
            format!("at offset 12: {values}")
        );
    }
    assert_eq!(
        error_of(&[&int(3), &[0; 8], &count]),
        format!("at offset 20: {values}")
    );

    let tensor = [&[0; 16][..], &count, &[0; 12]].concat();
    let argument = [&int(1)[..], &int(7), &tensor].concat();
    assert_eq!(
        error_of(&[&int(4), &argument]),
        "at offset 36: number of dimensions is 2147483647, more than the limit of 64"
    );

    let needs = "needs 9223372036854775808 bytes, but only";
    let text = [&int(1)[..], &int(11), &long(1 << 63), b"ab"].concat();
    for with_text in [4, 5, 9] {
        assert_eq!(
            error_of(&[&int(with_text), &text]),
            format!("text at offset 28 {needs} 2 are left in the message")
        );
    }
    let bytes = [&int(1)[..], &int(12), &long(1 << 63)].concat();
    assert_eq!(
        error_of(&[&int(4), &bytes]),
        format!("bytes at offset 28 {needs} 0 are left in the message")
    );
    // A count that is within its limit, but of values that are not there.
    assert_eq!(
        error_of(&[&int(4), &int(4096)]),
        "type codes at offset 16 needs 16384 bytes, but only 0 are left in the message"
    );
    assert_eq!(
        error_of(&[&int(4), &int(-1)]),
        "number of values at offset 12: expected a count of at least 0, found -1"
    );
}

#[test]
fn errors_say_where() {
    for code in [-1, 13, 14, 16, 65] {
        let error = error_of(&[&int(9), &int(2), &int(4), &int(code), &[0; 8]]);
        assert_eq!(
            error,
            format!(
                "type code of a value at offset 20: \
                 expected a code that a packet may hold (0 to 12, or 15), found {code}"
            )
        );
    }
    assert_eq!(
        error_of(&[&int(9), &int(1), &int(8), &int(115), &[0; 8]]),
        "inner type index at offset 20: expected 9 inside an object, found 115"
    );
    assert_eq!(
        error_of(&[&int(9), &int(1), &int(11), &long(2), b"a\xff"]),
        "text at offset 29 is not UTF-8"
    );
    assert_eq!(
        error_of(&[&int(9), &int(1), &int(0), &[0; 8]]),
        "argument #0 of get global function: expected a text, found an integer"
    );
    let free = |arguments: &[&[u8]]| error_of(&[&[&int(10)[..]], arguments].concat());
    assert_eq!(
        free(&[&int(1), &int(3), &long(7)]),
        "argument #1 of free handle: expected an integer, found no argument"
    );
    for code in [0, 11, 1 << 40] {
        assert_eq!(
            free(&[&int(2), &int(3), &int(0), &long(7), &long(code)]),
            format!(
                "argument #1 of free handle: \
                 expected the type code of a function, module, tensor or object, found {code}"
            )
        );
    }
    // A broken packet is no wrong argument, even if it has one.
    assert_eq!(
        error_of(&[&int(9), &int(1), &int(0), &[0; 8], &[0; 4]]),
        "packet ends at offset 28, but 4 more bytes follow"
    );
    assert_eq!(
        error_of(&[&int(5), &int(0)]),
        "exception at offset 12: expected a text, found no value"
    );
    assert_eq!(
        error_of(&[&int(5), &int(1), &int(0), &[0; 8]]),
        "exception at offset 16: expected a text, found 0"
    );
}

#[test]
fn an_exception_is_its_first_text() {
    let of = |parts: &[&[u8]]| match read(&framed(parts), DIALECT) {
        Ok(Packet::Exception { text }) => text.into_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(of(&[&int(5), &int(1), &int(11), &long(0)]), "");
    assert_eq!(
        of(&[&int(5), &int(1), &int(12), &long(2), b"a\xff"]),
        "a\u{fffd}"
    );
    let behind = of(&[
        &int(5),
        &int(2),
        &int(11),
        &int(0),
        &long(1),
        b"a",
        &long(9),
    ]);
    assert_eq!(behind, "a");
}
