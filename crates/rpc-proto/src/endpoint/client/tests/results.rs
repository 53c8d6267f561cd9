//! What a call gives back.

use super::*;

fn returned(hex: &str) -> Returned<'static> {
    match reply_to(call(), hex) {
        Reply::Returned(returned) => returned,
        other => panic!("{other:?}"),
    }
}

#[test]
fn calls_that_return_nothing() {
    let both = "1800000000000000 04000000 02000000 01000000 0000000000000000 00000000";
    assert_eq!(returned(both), Returned::Value(Value::None));
    let index_only = "1400000000000000 04000000 01000000 01000000 0000000000000000";
    assert_eq!(returned(index_only), Returned::Value(Value::None));
    // The void of a syscall is none of a call; neither is no value at all.
    assert_eq!(
        malformed(call(), VOID),
        "result of a call at offset 12: expected the number of a type first, found none"
    );
    assert_eq!(
        malformed(call(), "0800000000000000 04000000 00000000"),
        "result of a call at offset 12: expected the number of a type first, found no value"
    );
}

#[test]
fn calls_that_return_text_and_bytes() {
    let head = "04000000 02000000 01000000";
    let text = |length: &str, code: &str, value: &str| {
        returned(&format!(
            "{length}00000000000000 {head} {code}00000000000000 {value}"
        ))
    };
    let raw = "08000000 0300000000000000";
    assert_eq!(
        text("23", "08", &format!("{raw} 726177")),
        Returned::Value("raw".into())
    );
    assert_eq!(
        text("23", "41", &format!("{raw} 616263")),
        Returned::Value("abc".into())
    );
    let object = "41000000 41000000 0d00000000000000 6f626a65637420737472696e67";
    assert_eq!(
        text("31", "41", object),
        Returned::Value("object string".into())
    );
    let long = "08000000 1400000000000000 61206d756368206c6f6e67657220737472696e67";
    assert_eq!(
        text("34", "0b", long),
        Returned::Value("a much longer string".into())
    );
    let short = "08000000 0700000000000000 61626364656667";
    assert_eq!(text("27", "0b", short), Returned::Value("abcdefg".into()));
    let object = "42000000 42000000 0200000000000000 0102";
    assert_eq!(text("26", "42", object), Returned::Value([1, 2][..].into()));
    let view = "09000000 0200000000000000 0102";
    assert_eq!(text("22", "09", view), Returned::Value([1, 2][..].into()));

    // Hand-made: text that is not UTF-8, and text under the index of bytes.
    let broken = format!("2300000000000000 {head} 0b00000000000000 {raw} 61ff63");
    assert_eq!(malformed(call(), &broken), "text at offset 41 is not UTF-8");
    let wrong = format!("2300000000000000 {head} 4200000000000000 {raw} 616263");
    let error = malformed(call(), &wrong);
    assert!(error.ends_with("found a text under type 66"), "{error}");
}

#[test]
fn calls_that_return_handles() {
    let pointer = |code: &str| {
        returned(&format!(
            "2000000000000000 04000000 02000000 01000000 {code}00000000000000 04000000 0040000000000000"
        ))
    };
    assert_eq!(pointer("04"), Returned::Value(Value::Pointer(0x4000)));
    assert_eq!(pointer("44"), Returned::Value(Value::Function(0x4000)));
    assert_eq!(pointer("49"), Returned::Value(Value::Module(0x4000)));
    // Shape, a type that a peer has registered, and an index that means nothing.
    let object = |type_index| Returned::Object {
        type_index,
        handle: 0x4000,
    };
    assert_eq!(pointer("45"), object(69));
    assert_eq!(pointer("c8"), object(200));
    assert_eq!(pointer("1e"), Returned::Value(Value::Pointer(0x4000)));
    assert_eq!(pointer("45").handle(), Some(0x4000));
    assert_eq!(pointer("1e").handle(), None);
}

#[test]
fn calls_that_return_tensors() {
    const TENSOR: &str = "07000000 0020000000000000 01000000 00000000 02000000 02200100 \
         0200000000000000 0300000000000000 0000000000000000";
    let tensor = |handle| Returned::Tensor {
        tensor: f32_2x3(),
        handle,
    };
    let of = |head: &str, last: &str| format!("{head} {TENSOR} {last}");
    let three = "5400000000000000 04000000 03000000 01000000 4600000000000000";
    let owned = of(three, "04000000 0030000000000000");
    assert_eq!(returned(&owned), tensor(0x3000));
    // A tensor that nobody owns; hand-made with none in the place of a null pointer.
    let view = "5400000000000000 04000000 03000000 01000000 0700000000000000";
    assert_eq!(returned(&of(view, "04000000 0000000000000000")), tensor(0));
    let view = "4c00000000000000 04000000 03000000 01000000 0700000000000000";
    assert_eq!(returned(&of(view, "00000000")), tensor(0));
    assert_eq!(tensor(0).handle(), None);

    let two = "4800000000000000 04000000 02000000 01000000 4600000000000000";
    assert_eq!(
        malformed(call(), &of(two, "")),
        "result of a call at offset 12: expected 2 values, or 3 for a tensor, found 2 values"
    );
}

#[test]
fn calls_that_return_nonsense() {
    let three_ints = "2c00000000000000 04000000 03000000 01000000 0100000000000000 \
         01000000 0700000000000000 01000000 0800000000000000";
    assert_eq!(
        malformed(call(), three_ints),
        "result of a call at offset 12: expected 2 values, or 3 for a tensor, found 3 values"
    );
    // Hand-made, as the rest: an index beyond 32 bits, a pointer as an integer, a tensor that is none.
    let pointer = |index: &str| {
        format!("2000000000000000 04000000 02000000 01000000 {index} 04000000 0040000000000000")
    };
    for (index, printed) in [
        ("4500000001000000", "4294967365"),
        ("0000000000000080", "-9223372036854775808"),
    ] {
        assert_eq!(
            malformed(call(), &pointer(index)),
            format!(
                "result of a call at offset 12: expected the number of a type in 32 bits, found {printed}"
            )
        );
    }
    for (index, number) in [("00", "0"), ("01", "1"), ("08", "8")] {
        let error = malformed(call(), &pointer(&format!("{index}00000000000000")));
        assert!(
            error.ends_with(&format!("found a pointer under type {number}")),
            "{error}"
        );
    }
    let error = malformed(call(), &pointer("4600000000000000"));
    assert!(
        error.ends_with("expected 2 values, or 3 for a tensor, found 2 values"),
        "{error}"
    );
    let three = "2c00000000000000 04000000 03000000 01000000 4600000000000000 \
         04000000 0700000000000000 04000000 0800000000000000";
    let error = malformed(call(), three);
    assert!(
        error.ends_with("expected a tensor and its handle, found something else"),
        "{error}"
    );
    // A packet that ends inside its only value.
    assert_eq!(
        malformed(
            call(),
            "1000000000000000 04000000 01000000 01000000 01000000"
        ),
        "integer at offset 20 needs 8 bytes, but only 4 are left in the message"
    );
}

/// Hand-made: no recorded result is larger than 64 KiB.
#[test]
fn large_text_and_bytes_follow_as_payload() {
    const N: u64 = 0x20000;
    let forms = [
        ("0b", "08000000", BulkKind::Text, 40),
        ("41", "08000000", BulkKind::Text, 40),
        ("41", "41000000 41000000", BulkKind::Text, 44),
        ("42", "09000000", BulkKind::Bytes, 40),
        ("42", "42000000 42000000", BulkKind::Bytes, 44),
    ];
    for (index, form, kind, head) in forms {
        let mut input = bytes(&format!(
            "{:02x}00020000000000 04000000 02000000 01000000 {index}00000000000000 {form} 0000020000000000",
            head - 8
        ));
        assert_eq!(input.len(), head);
        let mut endpoint = after(&[call(), sync()]);
        // The head is enough.
        assert_eq!(
            receive(&mut endpoint, &input),
            Ok(Reply::BulkReturn { kind, nbytes: N })
        );
        input.resize(head + 0x20000, b'x');
        input.extend(bytes(VOID));
        assert_eq!(
            receive(&mut endpoint, &input[head + 0x20000..]),
            Ok(Reply::Done)
        );

        let mut endpoint = after(&[call(), sync()]);
        let Ok(Received::Reply {
            consumed,
            token,
            reply,
        }) = endpoint.receive(&input)
        else {
            panic!("no reply");
        };
        assert_eq!((consumed, token, reply.payload()), (head, 0, N));
    }
}

#[test]
fn large_results_that_are_no_calls_or_no_text() {
    let bulk =
        "2000020000000000 04000000 02000000 01000000 4100000000000000 08000000 0000020000000000";
    assert_eq!(
        broken(sync(), bulk),
        "unexpected return packet from the peer, where the return of at most one value or an exception was due"
    );
    // Two values, of which the last is no text, in a packet of as many bytes: taken whole.
    let mut input = bytes(
        "2000020000000000 04000000 02000000 01000000 4100000000000000 01000000 00000000 00000000",
    );
    input.resize(0x20028, 0);
    let mut endpoint = after(&[call()]);
    let incomplete = Received::Incomplete {
        consumed: 0,
        needed: 0x20028,
    };
    assert_eq!(endpoint.receive(&input[..100]), Ok(incomplete));
    let Ok(Received::Reply {
        reply: Reply::Malformed(error),
        ..
    }) = endpoint.receive(&input)
    else {
        panic!("no reply");
    };
    assert_eq!(
        error.to_string(),
        "packet ends at offset 40, but 131072 more bytes follow"
    );
}
