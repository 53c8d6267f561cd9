//! What functions give, in every spelling, and the handles among it: `CLI-GIVE-` and `CLI-FREE-`.

use rpc_proto::{DataType, Device, Returned, Shape, TensorView, Value};

use super::by_hand::{
    self, BOOL, BYTES, DATA_TYPE, DEVICE, FLOAT, FUNCTION, INT, MODULE, NONE, OBJECT, POINTER,
    RAW_BYTES, RAW_STR, SHAPE, SMALL_BYTES, SMALL_STR, STR, TENSOR, TENSOR_VIEW,
};
use crate::case::{Case, Level, Tag};
use crate::roles::client::{Client, Host, Name, Script};
use crate::stage::Outcome;

pub(super) const CASES: &[Case] = &[
    Case::client("CLI-GIVE-001", Level::Must, "9.8.1", plain).about(
        "A client understands none, integers, truth values and floats, also at the ends of their ranges.",
        "A result that comes out as another number is worse than none.",
    ),
    Case::client("CLI-GIVE-002", Level::Must, "9.8.1", types_and_devices).about(
        "A client understands data types and devices.",
        "Functions that look at tensors give them.",
    ),
    Case::client("CLI-GIVE-003", Level::Must, "9.8.2", texts).about(
        "A client takes a text under each of the type indices 8, 11 and 65, in each spelling.",
        "Servers differ in how they write texts.",
    ),
    Case::client("CLI-GIVE-004", Level::Must, "9.8.3", byte_strings).about(
        "A client takes bytes under each of the type indices 9, 12 and 66, in each spelling.",
        "Servers differ in how they write bytes.",
    ),
    Case::client("CLI-GIVE-005", Level::Must, "9.8.4", large)
        .about(
            "A client takes texts and bytes of a megabyte.",
            "Files come as the result of a call.",
        )
        .tags(&[Tag::Large]),
    Case::client("CLI-GIVE-006", Level::Must, "9.8.5", objects).about(
        "A client takes a pointer under a type index from 64 on as the handle of an object, also under one that it does not know.",
        "Indices from 128 on differ from process to process.",
    ),
    Case::client("CLI-GIVE-007", Level::May, "9.8.6", unknown_index).about(
        "A client takes a pointer under an unknown type index below 64 for an address.",
        "It is what the reference does.",
    ),
    Case::client("CLI-GIVE-008", Level::Must, "9.8.7", tensors).about(
        "A client understands a tensor, under the type index 70 and under 7.",
        "Functions that make tensors give them.",
    ),
    Case::client("CLI-FREE-001", Level::Must, "9.9.1", nothing_twice).about(
        "A client frees no handle twice, and none that it was not given.",
        "The server frees something else, or ends.",
    ),
    Case::client("CLI-FREE-002", Level::Should, "9.9.3", while_it_goes_on).about(
        "A client frees a handle in the session in which it is no longer used.",
        "A session that calls for days would fill the memory of the device.",
    ),
    Case::client("CLI-FREE-003", Level::Must, "9.9.4", tensor_by_its_handle).about(
        "A client frees a tensor that a function gave by its handle, and never its memory.",
        "The memory belongs to the tensor; freed twice, the server ends.",
    ),
    Case::client("CLI-FREE-004", Level::Must, "9.9.5", no_null_handle).about(
        "A client frees nothing for a tensor whose handle is null.",
        "A server that is asked to free null may end.",
    ),
    Case::client("CLI-FREE-005", Level::Must, "9.9.6", same_handle_again).about(
        "A client that is given one handle twice frees it twice.",
        "The reference gives the same pointer each time, and counts.",
    ),
];

/// Gives each of these, and checks what the client made of them.
fn given(client: &Client, expected: &[(Vec<u8>, &str, String)]) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::times("give", expected.len()))?;
    for (bytes, _, _) in expected {
        host.give_bytes(bytes)?;
    }
    host.until_end()?;
    let expected: Vec<_> = expected
        .iter()
        .map(|(_, kind, value)| (*kind, value.as_str()))
        .collect();
    rig.gave(&expected)
}

fn plain(client: &Client) -> Outcome {
    let int = |number: i64| {
        let bytes = by_hand::result(INT, by_hand::int(number));
        (bytes, "int", number.to_string())
    };
    let boolean = |number: i64, text: &str| {
        let bytes = by_hand::result(BOOL, by_hand::boolean(number));
        (bytes, "bool", text.to_owned())
    };
    let float = |number: f64| {
        let bytes = by_hand::result(FLOAT, by_hand::float(number));
        (bytes, "float", number.to_string())
    };
    let none = (
        by_hand::result(NONE, by_hand::none()),
        "none",
        String::new(),
    );
    given(
        client,
        &[
            none,
            int(0),
            int(-1),
            int(i64::MAX),
            int(i64::MIN),
            boolean(1, "true"),
            boolean(0, "false"),
            float(0.1),
            float(-0.0),
            float(f64::MAX),
            float(f64::INFINITY),
            float(f64::NAN),
        ],
    )
}

fn types_and_devices(client: &Client) -> Outcome {
    let dtype = |dtype: DataType, bytes: [u8; 4]| {
        let value = by_hand::value(DATA_TYPE, &[bytes, [0; 4]].concat());
        let text = dtype.to_string();
        (by_hand::result(DATA_TYPE, value), "dtype", text)
    };
    let device = |device: Device| {
        let Device { device_type, id } = device;
        let value = by_hand::device(device_type.0, id);
        let text = format!("{}:{id}", device_type.0);
        (by_hand::result(DEVICE, value), "device", text)
    };
    given(
        client,
        &[
            dtype(DataType::FLOAT32, [2, 32, 1, 0]),
            dtype(DataType::INT8, [0, 8, 1, 0]),
            dtype(DataType::UINT16, [1, 16, 1, 0]),
            device(Device::cpu(0)),
            device(Device::cpu(3)),
        ],
    )
}

fn texts(client: &Client) -> Outcome {
    let mut expected = Vec::new();
    for text in ["", "text", "1234567", "12345678", "é😀"] {
        for (_, value) in by_hand::texts(text) {
            for index in [RAW_STR, SMALL_STR, STR] {
                let bytes = by_hand::result(index, value.clone());
                expected.push((bytes, "str", text.to_owned()));
            }
        }
    }
    given(client, &expected)
}

fn byte_strings(client: &Client) -> Outcome {
    let mut expected = Vec::new();
    for bytes in [&b""[..], b"\0\x01\xff", b"1234567", b"12345678"] {
        for (_, value) in by_hand::byte_strings(bytes) {
            for index in [RAW_BYTES, SMALL_BYTES, BYTES] {
                let result = by_hand::result(index, value.clone());
                expected.push((result, "bytes", hex::encode(bytes)));
            }
        }
    }
    given(client, &expected)
}

fn large(client: &Client) -> Outcome {
    const SIZE: usize = 1 << 20;
    let text = "x".repeat(SIZE);
    let bytes: Vec<u8> = (0..=255).cycle().take(SIZE).collect();
    let as_text = by_hand::result(STR, by_hand::raw(RAW_STR, text.as_bytes()));
    let as_bytes = by_hand::result(BYTES, by_hand::raw(RAW_BYTES, &bytes));
    given(
        client,
        &[
            (as_text, "str", text),
            (as_bytes, "bytes", hex::encode(&bytes)),
        ],
    )
}

/// The result of a call that is a handle under this type index.
fn handle_result(host: &mut Host, index: i32) -> Vec<u8> {
    let handle = host.new_handle();
    by_hand::result(index, by_hand::pointer(handle))
}

fn objects(client: &Client) -> Outcome {
    const INDICES: [(i32, &str); 5] = [
        (FUNCTION, "function"),
        (MODULE, "module"),
        (SHAPE, "object"),
        (OBJECT, "object"),
        (224, "object"),
    ];
    let (mut rig, mut host) = client.session(&Script::times("give", INDICES.len()))?;
    for (index, _) in INDICES {
        let bytes = handle_result(&mut host, index);
        host.give_bytes(&bytes)?;
    }
    host.until_end()?;
    let lines = rig.done()?;
    let found: Vec<_> = lines.iter().filter_map(|line| line.kind.clone()).collect();
    let expected: Vec<_> = INDICES.iter().map(|(_, kind)| *kind).collect();
    let holds = found == expected;
    client.stage.check(
        "kinds",
        holds,
        format_args!("{expected:?}"),
        format_args!("{found:?}"),
    )
}

fn unknown_index(client: &Client) -> Outcome {
    let pointer = by_hand::result(30, by_hand::pointer(0x1234));
    let plain = by_hand::result(POINTER, by_hand::pointer(0x1234));
    let address = 0x1234.to_string();
    given(
        client,
        &[
            (plain, "pointer", address.clone()),
            (pointer, "pointer", address),
        ],
    )
}

/// A tensor of two by three floats at this address.
fn tensor_at(data: u64) -> TensorView {
    TensorView {
        data,
        device: Device::cpu(0),
        dtype: DataType::FLOAT32,
        shape: Shape::from(&[2, 3][..]),
        byte_offset: 0,
    }
}

/// Where the memory of tensors is that the client must not free.
const MEMORY: u64 = 0x7000_0000;

fn tensor_view(tensor: &TensorView) -> Vec<u8> {
    let mut bytes = [tensor.data.to_le_bytes().as_slice()].concat();
    for field in [tensor.device.device_type.0, tensor.device.id, 2] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend([2, 32, 1, 0]);
    for &size in &*tensor.shape {
        bytes.extend(size.to_le_bytes());
    }
    bytes.extend(tensor.byte_offset.to_le_bytes());
    by_hand::value(TENSOR_VIEW, &bytes)
}

fn tensor_result(index: i32, handle: u64) -> Vec<u8> {
    by_hand::returned(&[
        by_hand::int(index.into()),
        tensor_view(&tensor_at(MEMORY)),
        by_hand::pointer(handle),
    ])
}

fn tensors(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::times("give", 2))?;
    for index in [TENSOR, TENSOR_VIEW] {
        let handle = host.new_handle();
        host.give_bytes(&tensor_result(index, handle))?;
    }
    host.until_end()?;
    rig.gave(&[("tensor", "2x3"); 2])
}

/// Serves until the next function that gives is called, and checks that this handle was freed so often
/// by then: two steps after it was given.
fn expect_freed(client: &Client, host: &mut Host, handle: u64, times: u32) -> Outcome {
    host.until_call(Name::Give)?;
    let freed = host.freed(handle);
    let expected = format!("the handle to be freed, {times} in all");
    client
        .stage
        .check("freed", freed == times, expected, freed)?;
    host.served.returned(&Returned::Value(Value::Int(1)))
}

fn nothing_twice(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("give,give,give,give,call,give"))?;
    for index in [FUNCTION, MODULE, SHAPE] {
        let bytes = handle_result(&mut host, index);
        host.give_bytes(&bytes)?;
    }
    let handle = host.new_handle();
    host.give_bytes(&tensor_result(TENSOR, handle))?;
    // The host refuses to free what is not there to be freed.
    host.until_end()?;
    rig.done().map(drop)
}

fn while_it_goes_on(client: &Client) -> Outcome {
    for index in [SHAPE, FUNCTION] {
        let (mut rig, mut host) = client.session(&Script::steps("give,call,give"))?;
        let handle = host.new_handle();
        host.give_bytes(&by_hand::result(index, by_hand::pointer(handle)))?;
        expect_freed(client, &mut host, handle, 1)?;
        host.until_end()?;
        rig.done()?;
    }
    Ok(())
}

fn tensor_by_its_handle(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("give,call,give"))?;
    let handle = host.new_handle();
    host.give_bytes(&tensor_result(TENSOR, handle))?;
    // Memory at its address is none of the host's, so that it refuses to free it.
    expect_freed(client, &mut host, handle, 1)?;
    host.until_end()?;
    rig.done().map(drop)
}

fn no_null_handle(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::times("give", 2))?;
    for index in [TENSOR, TENSOR_VIEW] {
        host.give_bytes(&tensor_result(index, 0))?;
    }
    host.until_end()?;
    rig.gave(&[("tensor", "2x3"); 2])
}

fn same_handle_again(client: &Client) -> Outcome {
    let (mut rig, mut host) = client.session(&Script::steps("give,give,give,call,give"))?;
    let handle = host.new_handle();
    host.given_again(handle, 2);
    let bytes = by_hand::result(SHAPE, by_hand::pointer(handle));
    for _ in 0..3 {
        host.give_bytes(&bytes)?;
    }
    expect_freed(client, &mut host, handle, 3)?;
    host.until_end()?;
    rig.done().map(drop)
}
