//! Packets that are the same in all dialects.

use rpc_recording::{Direction, Kind};

use super::assemble::{FLOAT32, INT64, all, i32, packet, packet_off_by, sized, tensor, u64};
use super::vector::{Area, Status, Vector};

pub(super) fn area() -> Area {
    Area {
        name: "packets",
        description: "Packets of a session that are the same in all dialects, since they hold no packed \
                      values: their frame, the opening of a session, copies of tensors.",
        vectors: [packets(), broken_frames(), broken_bodies()].concat(),
    }
}

fn message(
    direction: Direction,
    status: Status,
    name: &str,
    about: &str,
    bytes: Vec<u8>,
) -> Vector {
    Vector::new(Kind::Packet, direction, status, name, about, bytes)
}

fn packets() -> Vec<Vector> {
    use {Direction::*, Status::*};
    let matrix = || tensor(0x2000, FLOAT32, &[2, 3], 0);
    let six_floats: Vec<u8> = (0_u8..6).flat_map(|n| f32::from(n).to_le_bytes()).collect();
    vec![
        message(
            C2s,
            Accepted,
            "empty",
            "A packet of no bytes means nothing, and may stand anywhere.",
            u64(0),
        ),
        message(
            C2s,
            Canonical,
            "shutdown",
            "The session ends; there is no answer.",
            packet(1, &[]),
        ),
        message(
            C2s,
            Canonical,
            "init",
            "Opens a session without a constructor.",
            packet(2, &[sized(b"0.8.0"), i32(0)]),
        ),
        message(
            C2s,
            Accepted,
            "init-other-version",
            "A server answers another version with an exception.",
            packet(2, &[sized(b"0.7.0"), i32(0)]),
        ),
        message(
            C2s,
            Canonical,
            "call-no-arguments",
            "Calls a function by its handle.",
            packet(3, &[u64(0x1000), i32(0)]),
        ),
        message(
            S2c,
            Accepted,
            "return-nothing-at-all",
            "An answer to init of either dialect: no value.",
            packet(4, &[i32(0)]),
        ),
        message(
            C2s,
            Canonical,
            "copy-from",
            "Asks for the bytes of a matrix.",
            packet(6, &[matrix(), u64(24)]),
        ),
        message(
            C2s,
            Canonical,
            "copy-from-offset",
            "Asks for a part: the byte offset counts.",
            packet(6, &[tensor(0x2000, FLOAT32, &[4], 4), u64(8)]),
        ),
        message(
            C2s,
            Canonical,
            "copy-from-scalar",
            "A tensor of no dimensions has one element.",
            packet(6, &[tensor(0x2000, INT64, &[], 0), u64(8)]),
        ),
        message(
            C2s,
            Canonical,
            "copy-to",
            "Brings the bytes of a matrix.",
            packet(7, &[matrix(), u64(24), six_floats.clone()]),
        ),
        message(
            C2s,
            Canonical,
            "copy-to-offset",
            "Brings a part.",
            packet(
                7,
                &[
                    tensor(0x2000, FLOAT32, &[4], 8),
                    u64(8),
                    [30.125_f32, 40.0].map(f32::to_le_bytes).concat(),
                ],
            ),
        ),
        message(
            C2s,
            Canonical,
            "copy-to-nothing",
            "Brings no bytes.",
            packet(7, &[tensor(0x2000, FLOAT32, &[0], 0), u64(0)]),
        ),
        message(
            S2c,
            Canonical,
            "copy-ack",
            "The bytes that were asked for, without a length of their own.",
            packet(8, &[six_floats]),
        ),
        message(
            S2c,
            Canonical,
            "copy-ack-nothing",
            "No bytes.",
            packet(8, &[]),
        ),
    ]
}

fn broken_frames() -> Vec<Vector> {
    let wrong = |name: &str, about: &str, bytes| {
        message(Direction::C2s, Status::Invalid, name, about, bytes)
    };
    let mut vectors = vec![
        wrong(
            "length-cut",
            "Three of eight bytes of a length.",
            vec![100, 0, 0],
        ),
        wrong(
            "length-huge",
            "More than any receiver takes.",
            all(&[u64(1 << 62), vec![b'x'; 16]]),
        ),
        wrong(
            "length-largest",
            "A length that overflows when its own bytes are added.",
            all(&[u64(u64::MAX), vec![b'x'; 16]]),
        ),
        wrong("length-without-code", "The code is missing.", u64(4)),
        wrong(
            "packet-cut",
            "The last byte is missing.",
            packet(2, &[sized(b"0.8.0"), i32(0)])[..28].to_vec(),
        ),
        wrong(
            "shutdown-with-body",
            "More bytes than the packet needs.",
            packet(1, &[i32(0)]),
        ),
        wrong(
            "init-with-more",
            "More bytes than the packet needs.",
            packet(2, &[sized(b"0.8.0"), i32(0), i32(0)]),
        ),
        wrong(
            "init-too-short",
            "The length ends inside the packet.",
            packet_off_by(-2, 2, &[sized(b"0.8.0"), i32(0)]),
        ),
    ];
    for length in 1..4 {
        let name = format!("length-{length}");
        let bytes = all(&[
            u64(length),
            vec![0; 3][..usize::try_from(length).expect("small")].to_vec(),
        ]);
        vectors.push(wrong(&name, "A packet has a code of four bytes.", bytes));
    }
    for code in [0, 22, 99, -1] {
        let name = format!("code-{code}");
        vectors.push(wrong(&name, "No such code.", packet(code, &[i32(0)])));
    }
    vectors
}

fn broken_bodies() -> Vec<Vector> {
    let wrong = |name: &str, about: &str, bytes| {
        message(Direction::C2s, Status::Invalid, name, about, bytes)
    };
    let dimensions = |count: i32| {
        let mut tensor = tensor(0, FLOAT32, &[], 0);
        tensor[16..20].copy_from_slice(&count.to_le_bytes());
        tensor
    };
    let scalar = || tensor(0x2000, FLOAT32, &[], 0);
    vec![
        wrong(
            "init-version-longer",
            "The version is longer than the packet.",
            packet(2, &[u64(1000), b"0.8.0".to_vec()]),
        ),
        wrong(
            "init-version-not-utf8",
            "A version is UTF-8.",
            packet(2, &[sized(b"0.\xff.0"), i32(0)]),
        ),
        wrong(
            "init-values-negative",
            "A number of values is not negative.",
            packet(2, &[sized(b"0.8.0"), i32(-1)]),
        ),
        wrong(
            "init-values-missing",
            "The number of values is missing.",
            packet(2, &[sized(b"0.8.0")]),
        ),
        wrong("call-cut", "Half of a handle.", packet(3, &[i32(0x1000)])),
        wrong(
            "call-values-missing",
            "The number of values is missing.",
            packet(3, &[u64(0x1000)]),
        ),
        wrong(
            "copy-from-no-length",
            "Bytes to copy are missing.",
            packet(6, &[scalar()]),
        ),
        wrong(
            "copy-from-more",
            "More bytes than the packet needs.",
            packet(6, &[scalar(), u64(4), i32(0)]),
        ),
        wrong(
            "copy-from-dimensions-negative",
            "A number of dimensions is not negative.",
            packet(6, &[dimensions(-1), u64(4)]),
        ),
        wrong(
            "copy-from-shape-missing",
            "Three sizes are announced and none is there.",
            packet(6, &[dimensions(3), u64(4)]),
        ),
        wrong(
            "copy-to-less",
            "Less data than it says.",
            packet(7, &[scalar(), u64(16), vec![0; 4]]),
        ),
        wrong(
            "copy-to-more",
            "More data than it says.",
            packet(7, &[scalar(), u64(2), vec![0; 4]]),
        ),
        wrong(
            "copy-to-cut",
            "The data ends before the packet.",
            packet(7, &[scalar(), u64(4), vec![0; 4]])[..54].to_vec(),
        ),
        wrong(
            "copy-to-dimensions-negative",
            "A number of dimensions is not negative.",
            packet(7, &[dimensions(-1), u64(4), vec![0; 4]]),
        ),
    ]
}
