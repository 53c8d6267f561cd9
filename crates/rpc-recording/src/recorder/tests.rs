use super::*;

const START: Duration = Duration::ZERO;

fn recorder(limits: RecorderLimits) -> (Recorder, usize) {
    let mut recorder = Recorder::new(About::default(), limits);
    let connection = recorder.connect("", None, None);
    (recorder, connection)
}

#[test]
fn a_conversation_has_readings_and_times() {
    let (mut recorder, connection) = recorder(RecorderLimits::default());
    recorder.step("greet");
    for direction in [Direction::C2s, Direction::S2c] {
        recorder.pass(connection, direction, b"\x71\xf2\x02\0", START);
    }
    recorder.step("put");
    let put = br#"[3, "x1", [9090, "x1:0.33779848957395986"], null]"#;
    let frame = [&49_u32.to_le_bytes()[..], put].concat();
    recorder.pass(
        connection,
        Direction::C2s,
        &frame,
        Duration::from_millis(1234),
    );
    let conversation = recorder.conversation();
    assert_eq!(conversation.connections[0].link, "peer-tracker");
    let message = &conversation.messages[2];
    assert_eq!(
        message.note,
        r#"PUT "x1": at port 9090, match key "x1:0.33779848957395986""#
    );
    assert_eq!(
        (message.t, message.step.as_deref()),
        (Some(1.234), Some("put"))
    );
    let volatile = message.volatile.iter();
    let volatile: Vec<_> = volatile.map(|v| (v.offset, v.len, &*v.what)).collect();
    assert_eq!(
        volatile,
        [(0, 4, "len"), (15, 4, "port"), (22, 22, "random-key")]
    );
}

#[test]
fn what_has_no_length_ends_when_the_other_side_speaks() {
    let (mut recorder, connection) = recorder(RecorderLimits::default());
    recorder.pass(connection, Direction::C2s, b"HELO ", START);
    recorder.pass(connection, Direction::C2s, b"there\x1b[2J", START);
    recorder.pass(connection, Direction::S2c, b"250 OK", START);
    recorder.end(connection, Direction::S2c, START);
    let said = recorder.conversation().messages;
    let said: Vec<_> = said
        .iter()
        .map(|m| (m.dir, m.kind, m.bytes.len()))
        .collect();
    assert_eq!(
        said,
        [
            (Direction::C2s, Kind::Raw, 14),
            (Direction::S2c, Kind::Raw, 6),
            (Direction::S2c, Kind::Close, 0),
        ]
    );
}

#[test]
fn memory_is_bounded() {
    let limits = RecorderLimits::default()
        .with_message(100)
        .with_total(1024 + 1000);
    let (mut recorder, connection) = recorder(limits);
    let ack = [&10_004_u64.to_le_bytes()[..], b"\x08\0\0\0", &[7; 10_000]].concat();
    let handshake = b"\x71\xf2\x0f\0\0\0\0\0";
    recorder.pass(connection, Direction::S2c, handshake, START);
    for _ in 0..3 {
        for piece in ack.chunks(999) {
            recorder.pass(connection, Direction::S2c, piece, START);
        }
    }
    let conversation = recorder.conversation();
    let kept = |message: &Message| (message.bytes.len(), message.omitted);
    let kept: Vec<_> = conversation.messages.iter().map(kept).collect();
    assert_eq!(kept, [(8, 0), (100, 9912), (100, 9912)]);
    assert_eq!(conversation.dropped, 1);
    assert_eq!(
        conversation.messages[1].note,
        "copy ack: 10000 bytes; 9912 bytes of it were not recorded"
    );
}

#[test]
fn what_is_not_complete_at_the_end_is_kept() {
    let (mut recorder, connection) = recorder(RecorderLimits::default());
    recorder.pass(
        connection,
        Direction::C2s,
        b"\x71\xf2\x0f\0\x09\0\0\0clie",
        START,
    );
    assert!(recorder.conversation().messages.is_empty());
    recorder.finish(START);
    let message = &recorder.conversation().messages[0];
    assert_eq!((message.kind, message.bytes.len()), (Kind::Raw, 12));
    assert_eq!(
        message.note,
        "12 bytes that are no message: 12 of 17 bytes of a greeting or handshake"
    );
}

#[test]
fn connections_take_room_as_messages_do() {
    let limits = RecorderLimits::default().with_total(10_000);
    let mut recorder = Recorder::new(About::default(), limits);
    for number in 0..100 {
        let connection = recorder.connect("", None, None);
        assert_eq!(connection, number);
        for direction in [Direction::C2s, Direction::S2c] {
            recorder.pass(connection, direction, b"\x71\xf2\x02\0", START);
            recorder.end(connection, direction, START);
        }
    }
    assert!(recorder.is_full());
    let conversation = recorder.conversation();
    let counts = (conversation.connections.len(), conversation.messages.len());
    assert_eq!(counts, (5, 4 * 4 + 2));
    // The last two of the fifth, and one for each connection behind it.
    assert_eq!(conversation.dropped, 2 + 95);
}

#[test]
fn messages_that_are_not_complete_take_room() {
    const PIECE: &[u8] = &[7; 10_000];
    let limits = RecorderLimits::default().with_total(1 << 20);
    let mut recorder = Recorder::new(About::default(), limits);
    let handshake = b"\x71\xf2\x0f\0\0\0\0\0";
    let ack = [&1_000_004_u64.to_le_bytes()[..], b"\x08\0\0\0"].concat();
    let begin = |recorder: &mut Recorder| {
        let connection = recorder.connect("", None, None);
        recorder.pass(connection, Direction::S2c, handshake, START);
        recorder.pass(connection, Direction::S2c, &ack, START);
        connection
    };
    let connections: Vec<_> = (0..20).map(|_| begin(&mut recorder)).collect();
    for _ in 0..100 {
        for connection in &connections {
            recorder.pass(*connection, Direction::S2c, PIECE, START);
            let kept = recorder.connections.iter().flat_map(|c| &c.cutters);
            let kept: u64 = kept.map(Cutter::kept).sum();
            assert!(kept <= 1 << 20, "{kept} bytes");
        }
    }
    assert!(recorder.is_full());
    // The messages are counted, all the same.
    let conversation = recorder.conversation();
    assert_eq!(
        (conversation.messages.len(), conversation.dropped),
        (20, 20)
    );
}

#[test]
fn each_of_many_connections_has_the_dialect_that_it_shows() {
    const CONNECTIONS: usize = 20_000;
    let mut recorder = Recorder::new(About::default(), RecorderLimits::default());
    for number in 0..CONNECTIONS {
        let connection = recorder.connect("", None, None);
        let code = if number % 2 == 0 { 0 } else { 4 };
        let reply = [
            &b"\x71\xf2\x0f\0\0\0\0\0\x0c\0\0\0\0\0\0\0\x04\0\0\0\x01\0\0\0"[..],
            &[code, 0, 0, 0],
        ];
        recorder.pass(connection, Direction::S2c, &reply.concat(), START);
    }
    let conversation = recorder.conversation();
    let dialects = conversation.connections.iter().map(|c| c.dialect);
    let expected = [Some(Dialect::Ffi), Some(Dialect::Legacy)];
    assert!(dialects.eq(expected.into_iter().cycle().take(CONNECTIONS)));
}

#[test]
fn nothing_is_recorded_behind_the_end() {
    let (mut recorder, connection) = recorder(RecorderLimits::default());
    recorder.pass(connection, Direction::C2s, b"\x71\xf2\x0f\0\x09", START);
    recorder.finish(START);
    // These would be read as the beginning of a message.
    recorder.pass(connection, Direction::C2s, b"\0\0\0client:x1", START);
    recorder.end(connection, Direction::C2s, START);
    let conversation = recorder.conversation();
    let kinds: Vec<_> = conversation.messages.iter().map(|m| m.kind).collect();
    assert_eq!((&kinds[..], conversation.dropped), (&[Kind::Raw][..], 0));
}
