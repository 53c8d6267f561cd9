//! What comes of each reply, apart from the results of calls.

use super::*;

#[test]
fn a_return_that_can_be_read_opens_a_session() {
    for hex in [
        VOID,
        "0800000000000000 04000000 00000000",
        "1400000000000000 04000000 01000000 01000000 0500000000000000",
    ] {
        assert_eq!(reply_to(init(), hex), Reply::Done);
    }
    // Recorded from a server of the legacy dialect: its null is a pointer here.
    let legacy = "0c00000000000000 04000000 01000000 04000000";
    assert_eq!(
        malformed(init(), legacy),
        "pointer at offset 20 needs 8 bytes, but only 0 are left in the message"
    );
    let refused = "1a00000000000000 05000000 01000000 08000000 0600000000000000 6e6f20776179";
    assert_eq!(reply_to(init(), refused), Reply::Exception("no way".into()));
    // The same in the legacy dialect: it cannot be read, but it does not open the session.
    let legacy = "1a00000000000000 05000000 01000000 0b000000 0600000000000000 6e6f20776179";
    let error = malformed(init(), legacy);
    assert!(error.starts_with("text at offset 32 needs "), "{error}");
}

#[test]
fn lookups() {
    let found = "1400000000000000 04000000 01000000 04000000 0010000000000000";
    assert_eq!(reply_to(lookup(), found), Reply::Pointer(0x1000));
    assert_eq!(reply_to(lookup(), VOID), Reply::Pointer(0));
    let int = "1400000000000000 04000000 01000000 01000000 0010000000000000";
    assert_eq!(
        malformed(lookup(), int),
        "result of a syscall at offset 12: expected one value: a pointer or none, found an integer"
    );
    let two =
        "2000000000000000 04000000 02000000 04000000 0010000000000000 01000000 0100000000000000";
    assert_eq!(
        malformed(lookup(), two),
        "result of a syscall at offset 12: expected one value: a pointer or none, found 2 values"
    );
}

#[test]
fn attributes() {
    assert_eq!(reply_to(attr(), VOID), Reply::Attr(Value::None));
    let text = "2300000000000000 04000000 01000000 08000000 0f00000000000000 74686520646576696365206e616d65";
    assert_eq!(
        reply_to(attr(), text),
        Reply::Attr("the device name".into())
    );
    let int = "1400000000000000 04000000 01000000 01000000 0100000000000000";
    assert_eq!(reply_to(attr(), int), Reply::Attr(Value::Int(1)));
    let pointer = "1400000000000000 04000000 01000000 04000000 0010000000000000";
    assert_eq!(
        malformed(attr(), pointer),
        "result of a syscall at offset 12: expected one value: none, an integer or a text, found a pointer"
    );
}

#[test]
fn exceptions() {
    let abc = "1700000000000000 05000000 01000000 08000000 0300000000000000 616263";
    for request in [call(), lookup(), attr(), sync(), download(24)] {
        assert_eq!(reply_to(request, abc), Reply::Exception("abc".into()));
    }
    let empty = "1400000000000000 05000000 01000000 08000000 0000000000000000";
    assert_eq!(reply_to(call(), empty), Reply::Exception("".into()));
    let more =
        "2100000000000000 05000000 02000000 08000000 0100000000000000 78 01000000 0100000000000000";
    assert_eq!(reply_to(call(), more), Reply::Exception("x".into()));
    // Hand-made: text that is not UTF-8, the other forms of text, and none at all.
    let broken = "1700000000000000 05000000 01000000 08000000 0300000000000000 61ff63";
    assert_eq!(
        reply_to(call(), broken),
        Reply::Exception("a\u{fffd}c".into())
    );
    let object = "1b00000000000000 05000000 01000000 0b000000 41000000 0300000000000000 616263";
    assert_eq!(reply_to(call(), object), Reply::Exception("abc".into()));
    assert_eq!(
        malformed(call(), "0800000000000000 05000000 00000000"),
        "exception at offset 12: expected a text, found no value"
    );
    assert_eq!(
        malformed(call(), "0c00000000000000 05000000 01000000 00000000"),
        "exception at offset 16: expected a text, found 0"
    );
}

#[test]
fn copies() {
    let head = "0800000000000000 08000000";
    let mut endpoint = after(&[download(4), sync()]);
    let input = bytes(&format!("{head} 01020304 {VOID}"));
    let Ok(Received::Reply {
        consumed: 12,
        token: 0,
        reply,
    }) = endpoint.receive(&input)
    else {
        panic!("no reply");
    };
    assert_eq!(reply, Reply::Data { nbytes: 4 });
    assert_eq!(reply.payload(), 4);
    assert_eq!(receive(&mut endpoint, &input[16..]), Ok(Reply::Done));

    for (head, found) in [
        ("0600000000000000 08000000", 2),
        ("0a00000000000000 08000000", 6),
    ] {
        let mut endpoint = after(&[download(4)]);
        let error = endpoint.receive(&bytes(head)).unwrap_err();
        assert_eq!(error, EndpointError::WrongLength { found, expected: 4 });
    }
    let by_return =
        "unexpected return packet from the peer, where a copy ack or an exception was due";
    assert_eq!(broken(download(4), VOID), by_return);
    // A return that cannot be read does not answer a copy either.
    let unreadable = "0c00000000000000 04000000 01000000 0a000000";
    assert!(
        broken(download(4), unreadable).starts_with("the peer's packet is malformed: type index")
    );
    let upload = Packet::CopyTo {
        tensor: f32_2x3(),
        nbytes: 24,
    };
    assert_eq!(reply_to(upload.clone(), VOID), Reply::Done);
    assert_eq!(
        broken(upload, head),
        "unexpected copy ack packet from the peer, where the return of at most one value or an exception was due"
    );
}
