//! What is wrong with bytes in the `ffi` dialect, and where.

use super::*;

fn error_of(parts: &[&[u8]]) -> String {
    super::error_of(parts, Dialect::Ffi)
}

fn read(packet: &[u8]) -> Result<Packet<'_>, DecodeError> {
    super::read(packet, Dialect::Ffi)
}

#[test]
fn huge_counts_and_lengths_are_named() {
    let count = i32::MAX.to_le_bytes();
    let length = (1_u64 << 63).to_le_bytes();
    let values = "number of values is 2147483647, more than the limit of 4096";
    assert_eq!(
        error_of(&[&int(4), &count]),
        format!("at offset 12: {values}")
    );
    assert_eq!(
        error_of(&[&int(9), &count]),
        format!("at offset 12: {values}")
    );
    assert_eq!(
        error_of(&[&int(3), &[0; 8], &count]),
        format!("at offset 20: {values}")
    );
    assert_eq!(
        error_of(&[&int(5), &count]),
        format!("at offset 12: {values}")
    );

    // Data pointer and device, then the number of dimensions, in each place where a tensor may be.
    let tensor = [&[0; 16][..], &count, &[0; 12]].concat();
    let dimensions = "number of dimensions is 2147483647, more than the limit of 64";
    for copy in [6, 7] {
        assert_eq!(
            error_of(&[&int(copy), &tensor]),
            format!("at offset 28: {dimensions}")
        );
    }
    let argument = [&int(1)[..], &int(7), &tensor].concat();
    assert_eq!(
        error_of(&[&int(4), &argument]),
        format!("at offset 36: {dimensions}")
    );
    // The same where the packet is too short for what it announces, but within the limit.
    let tensor = [&[0; 16][..], &int(64), &[0; 12]].concat();
    assert_eq!(
        error_of(&[&int(7), &tensor]),
        "packet at offset 0 needs 564 bytes, but only 44 are left in the message"
    );

    let needs = "needs 9223372036854775808 bytes, but only";
    let text = [&int(1)[..], &int(8), &length, b"ab"].concat();
    for with_text in [4, 5, 9] {
        assert_eq!(
            error_of(&[&int(with_text), &text]),
            format!("text at offset 28 {needs} 2 are left in the message")
        );
    }
    let bytes = [&int(1)[..], &int(66), &int(66), &length].concat();
    assert_eq!(
        error_of(&[&int(4), &bytes]),
        format!("bytes at offset 32 {needs} 0 are left in the message")
    );
    assert_eq!(
        error_of(&[&int(2), &length, b"0.8.0"]),
        format!("version at offset 20 {needs} 5 are left in the message")
    );
    // A count that is within its limit, but of values that are not there.
    assert_eq!(
        error_of(&[&int(4), &int(4096)]),
        "type index at offset 16 needs 4 bytes, but only 0 are left in the message"
    );
    assert_eq!(
        error_of(&[&int(4), &int(-1)]),
        "number of values at offset 12: expected a count of at least 0, found -1"
    );
}

#[test]
fn errors_say_where() {
    for unknown in [0, 22, 99, -1] {
        assert_eq!(
            error_of(&[&int(unknown)]),
            format!("packet code at offset 8: expected a code from 1 to 21, found {unknown}")
        );
    }
    for index in [-1, 10, 13, 50, 63, 70] {
        let error = error_of(&[&int(9), &int(1), &int(index), &[0; 8]]);
        assert!(
            error.starts_with("type index at offset 16: expected an index"),
            "{error}"
        );
        assert!(error.ends_with(&format!(", found {index}")), "{error}");
    }
    assert_eq!(
        error_of(&[&int(9), &int(1), &int(69), &int(999), &[0; 8]]),
        "inner type index at offset 20: expected 115 inside an object, found 999"
    );
    assert_eq!(
        error_of(&[&int(9), &int(1), &int(8), &2_u64.to_le_bytes(), b"a\xff"]),
        "text at offset 29 is not UTF-8"
    );
    assert_eq!(
        error_of(&[&int(1), &[0; 4]]),
        "packet ends at offset 12, but 4 more bytes follow"
    );
    assert_eq!(
        error_of(&[&int(9), &int(1), &int(1), &[0; 8]]),
        "argument #0 of get global function: expected a text, found an integer"
    );
    assert_eq!(
        error_of(&[&int(13), &int(1), &int(6), &[0; 8]]),
        "argument #1 of allocate data: expected an integer, found no argument"
    );
    // A broken packet is no wrong argument, even if it has one.
    assert_eq!(
        error_of(&[&int(9), &int(1), &int(1), &[0; 8], &[0; 4]]),
        "packet ends at offset 28, but 4 more bytes follow"
    );
    let tensor_of_nothing = [0; 32];
    assert_eq!(
        error_of(&[&int(7), &tensor_of_nothing, &5_u64.to_le_bytes(), b"abcd"]),
        "bytes to copy at offset 44: expected the length of the data that follows, found 5 before 4 bytes"
    );
}

#[test]
fn a_syscall_takes_bytes_for_a_text() {
    let bytes = |bytes: &[u8]| {
        let length = (bytes.len() as u64).to_le_bytes();
        [&int(66)[..], &int(66), &length, bytes].concat()
    };
    let look_up = framed(&[&int(9), &int(1), &bytes("é".as_bytes())]);
    let name = "é".into();
    let expected = Packet::Syscall(Syscall::GetGlobalFunc { name });
    assert_eq!(read(&look_up), Ok(expected));

    let tensor = [&int(7)[..], &[0; 32]].concat();
    let allocate = framed(&[&int(17), &int(2), &tensor, &bytes(b"global")]);
    let packet = read(&allocate).unwrap();
    let Packet::Syscall(Syscall::AllocDataWithScope { scope, .. }) = packet else {
        panic!("{packet:?}");
    };
    assert_eq!(scope.as_deref(), Some("global"));

    assert_eq!(
        error_of(&[&int(17), &int(2), &tensor, &bytes(b"\xff")]),
        "argument #1 of allocate data with scope: expected a text or none, \
         found bytes that are not UTF-8"
    );
}
