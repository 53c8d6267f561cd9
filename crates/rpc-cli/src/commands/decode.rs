use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write as _};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use rpc_proto::Dialect;
use rpc_recording::{
    Connection, Conversation, Cut, Cutter, Direction, Explained, Explainer, Kind, MAX_FILE_LEN,
    Message, Protocol, Stage, dialect_name, dump, guess, parse_dialect,
};

use crate::stdio::{self, Printer};

/// Explain recorded bytes, message by message
///
/// FILE is a recording of `tvm-rpc relay` or one of tests/vectors, bytes as they passed in one
/// direction, or a dump of such bytes: what `xxd` or `hexdump -C` print, or hexadecimal digits. Which
/// of these it is, and what the bytes are, is found out as far as they show it, and said; the options
/// say it where they do not.
///
/// Each message is shown with its bytes beside what they mean. Where one cannot be understood it says
/// at which byte, and why; the messages behind it are shown if it says where it ends.
///
/// A recording or dump may have 1 GiB, bytes as they passed 256 MiB.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The file; - is standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// What the file is
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    format: Format,
    /// Where in a connection bytes begin that are no recording
    #[arg(long, value_enum)]
    at: Option<At>,
    /// Who sent them
    #[arg(long, value_enum)]
    from: Option<From>,
    /// How packed values are laid out, ffi or legacy
    #[arg(long, value_name = "DIALECT", value_parser = parse_dialect)]
    dialect: Option<Dialect>,
    /// Only this connection of a recording
    #[arg(long, value_name = "N")]
    connection: Option<usize>,
    /// One line for each message
    #[arg(long)]
    brief: bool,
    /// Print a recording with the meanings, in the JSON format of tests/vectors
    #[arg(long, conflicts_with = "brief")]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Found out
    Auto,
    /// A recording
    Recording,
    /// Bytes as they are
    Raw,
    /// A dump
    Hex,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum At {
    /// At its start, with a greeting or a handshake
    Start,
    /// Behind a greeting, with frames of a tracker
    Frames,
    /// Behind a handshake, with packets
    Packets,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum From {
    /// The side that connected
    Client,
    /// The side that listened
    Server,
}

/// What is explained.
struct Input {
    conversation: Conversation,
    /// Of bytes that are no recording.
    found: Option<Found>,
    dialect: Option<Dialect>,
}

struct Found {
    /// What was found out.
    said: String,
    /// What each message was expected to be.
    expected: Vec<Kind>,
}

/// Explains the messages of an input in their order.
struct Meanings {
    explainer: Explainer,
    /// Of bytes that are no recording: what each message was expected to be.
    expected: Option<std::vec::IntoIter<Kind>>,
    dialect: Option<Dialect>,
}

impl Meanings {
    fn of(input: &mut Input) -> Self {
        let connections = &input.conversation.connections;
        Self {
            explainer: Explainer::new(connections, input.dialect),
            expected: input
                .found
                .as_mut()
                .map(|found| std::mem::take(&mut found.expected).into_iter()),
            dialect: input.dialect,
        }
    }

    fn next(&mut self, message: &Message) -> Explained {
        let expected = self.expected.as_mut().and_then(Iterator::next);
        match (message.kind, expected) {
            (Kind::Raw, Some(expected)) => {
                Explained::attempt(expected, message, self.dialect.unwrap_or_default())
            }
            _ => self.explainer.explain(message),
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let mut input = input(arguments, read(arguments)?)?;
    if let Some(only) = arguments.connection {
        let conversation = &mut input.conversation;
        let has_it = conversation.connections.iter().any(|c| c.id == only);
        ensure!(has_it, "{} has no connection {only}", arguments.file);
        conversation.connections.retain(|c| c.id == only);
        conversation.messages.retain(|message| message.conn == only);
    }
    if arguments.json {
        return print_json(input);
    }
    if let Some(found) = &input.found {
        stdio::note(&found.said);
    }
    print(input, arguments.brief)
}

/// Reads a file, as far as one of its format may go.
fn read(arguments: &Arguments) -> Result<Vec<u8>> {
    let name = &arguments.file;
    let mut file: Box<dyn Read> = match name.as_str() {
        "-" => Box::new(io::stdin()),
        name => Box::new(File::open(name).with_context(|| name.to_owned())?),
    };
    let mut content = Vec::new();
    let mut read_up_to = |limit: u64, content: &mut Vec<u8>| {
        // One byte more says that it goes on.
        let more = (limit + 1).saturating_sub(content.len() as u64);
        let read = file.by_ref().take(more).read_to_end(content);
        read.with_context(|| name.to_owned())
    };
    // What is no text is at most as long as what a dump stands for. Others may come without end, and not all
    // of it should be held in memory to find that out.
    read_up_to(dump::MAX_LEN as u64, &mut content)?;
    let limit = match arguments.format {
        Format::Raw => dump::MAX_LEN as u64,
        Format::Auto if !is_recording(&content) && !content.iter().all(is_text) => {
            dump::MAX_LEN as u64
        }
        _ => MAX_FILE_LEN,
    };
    read_up_to(limit, &mut content)?;
    ensure!(
        content.len() as u64 <= limit,
        "{name} has more than {limit} bytes, the most that are read of {}; a part of it may do",
        match limit {
            MAX_FILE_LEN => "a text",
            _ => "what is no text",
        }
    );
    Ok(content)
}

fn input(arguments: &Arguments, content: Vec<u8>) -> Result<Input> {
    let bytes = match format(arguments.format, &content) {
        Format::Recording => {
            let conversation = Conversation::parse(&content);
            return Ok(Input {
                conversation: conversation
                    .with_context(|| format!("{} is not a recording", arguments.file))?,
                found: None,
                dialect: arguments.dialect,
            });
        }
        Format::Hex => {
            let text = String::from_utf8_lossy(&content);
            dump::parse(&text).with_context(|| format!("{} is not a dump", arguments.file))?
        }
        Format::Raw | Format::Auto => content,
    };
    let (guessed, side) = guess::beginning(&bytes);
    let stage = match arguments.at {
        None => guessed,
        Some(At::Start) => Stage::Beginning,
        Some(At::Frames) => Stage::Frames,
        Some(At::Packets) => Stage::Packets,
    };
    let side = match arguments.from {
        None => side.unwrap_or(Direction::C2s),
        Some(From::Client) => Direction::C2s,
        Some(From::Server) => Direction::S2c,
    };
    Ok(cut(&bytes, stage, side, arguments.dialect))
}

/// What a file is, if nobody says it.
fn format(given: Format, content: &[u8]) -> Format {
    match given {
        Format::Auto if is_recording(content) => Format::Recording,
        Format::Auto if content.is_empty() || !content.iter().all(is_text) => Format::Raw,
        Format::Auto => match dump::parse(&String::from_utf8_lossy(content)) {
            Ok(_) => Format::Hex,
            Err(_) => Format::Raw,
        },
        given => given,
    }
}

fn is_recording(content: &[u8]) -> bool {
    content.trim_ascii_start().starts_with(b"{")
}

fn is_text(byte: &u8) -> bool {
    byte.is_ascii_graphic() || b" \t\r\n".contains(byte)
}

/// Cuts what one side said on one connection.
fn cut(bytes: &[u8], stage: Stage, side: Direction, dialect: Option<Dialect>) -> Input {
    let mut cutter = Cutter::new(side, stage.clone(), usize::MAX);
    let (mut messages, mut expected) = (Vec::new(), Vec::new());
    let mut keep = |cut: Cut| {
        let mut message = Message::new(messages.len(), 0, side, cut.kind, cut.bytes);
        message.note = cut.why.unwrap_or_default();
        messages.push(message);
        expected.push(cut.meant);
    };
    cutter.push(bytes, &mut keep);
    if let Some(rest) = cutter.end() {
        keep(rest);
    }
    let packets = messages
        .iter()
        .filter(|message| message.kind == Kind::Packet);
    let dialect = dialect.or_else(|| guess::dialect(packets.map(|packet| &*packet.bytes)));
    let protocol = cutter.protocol().unwrap_or_default();
    let said = found_out(&stage, protocol, side, dialect);
    let mut conversation = Conversation::default();
    conversation.connections = vec![Connection::new(0, "", protocol, dialect)];
    conversation.messages = messages;
    Input {
        conversation,
        found: Some(Found { said, expected }),
        dialect,
    }
}

/// What was found out, and how to say otherwise.
fn found_out(
    stage: &Stage,
    protocol: Protocol,
    side: Direction,
    dialect: Option<Dialect>,
) -> String {
    let what = match (stage, protocol) {
        (Stage::Beginning, Protocol::Tracker) => "a connection to a tracker",
        (Stage::Beginning, _) => "a session from its start",
        (Stage::Frames, _) => "frames of a tracker",
        (Stage::Packets, _) => "packets of a session",
        _ => "bytes of an unknown kind",
    };
    let side = match side {
        Direction::C2s => "client",
        Direction::S2c => "server",
    };
    let dialect = dialect.map(|dialect| format!(", dialect {}", dialect_name(dialect)));
    let dialect = dialect.unwrap_or_default();
    format!("{what}, sent by the {side}{dialect} (--at, --from and --dialect say otherwise)")
}

/// Prints the conversation with the meanings of all messages, of which it holds one at a time.
fn print_json(mut input: Input) -> Result<()> {
    let mut meanings = Meanings::of(&mut input);
    let messages = std::mem::take(&mut input.conversation.messages);
    let messages = messages.into_iter().map(|mut message| {
        let explained = meanings.next(&message);
        if message.note.is_empty() {
            message.note = explained.note;
        }
        if message.kind != Kind::Raw {
            message.decoded = explained.decoded;
        }
        if message.volatile.is_empty() {
            message.volatile = explained.volatile;
        }
        message
    });
    let mut out = Printer::default();
    input.conversation.write_with(&mut out, messages)?;
    out.finish()
}

fn print(mut input: Input, brief: bool) -> Result<()> {
    let mut meanings = Meanings::of(&mut input);
    let mut out = Printer::default();
    let conversation = &input.conversation;
    let several = conversation.connections.len() > 1;
    // Where a message is known by its place in the file.
    let is_raw = input.found.is_some();
    for connection in conversation.connections.iter().filter(|_| !is_raw) {
        let Connection {
            id, link, proto, ..
        } = connection;
        let proto = format!("{proto:?}").to_lowercase();
        let dialect = input.dialect.or(connection.dialect);
        let dialect = dialect.map(dialect_name).unwrap_or_default();
        let link = one_line(link);
        let line = format!("connection {id}: {link} {proto} {dialect}");
        writeln!(out, "{}", line.trim_end())?;
    }
    let mut step = None;
    let mut stopped = Vec::new();
    let mut from_start = 0;
    for message in &conversation.messages {
        let explained = meanings.next(message);
        if message.step != step {
            step.clone_from(&message.step);
            if let Some(step) = &step {
                writeln!(out, "== {}", one_line(step))?;
            }
        }
        write!(out, "#{} {}", message.i, place(message, several))?;
        if is_raw {
            write!(out, " from byte {from_start}")?;
            from_start += message.bytes.len() as u64;
        }
        match brief {
            true => writeln!(out, ": {}", explained.note)?,
            false => writeln!(out, ": {explained}")?,
        }
        if is_stopped(&explained, message) {
            stopped.push(format!("#{}", message.i));
        }
    }
    out.finish()?;
    if conversation.dropped > 0 {
        let dropped = conversation.dropped;
        stdio::note(&format!("{dropped} more messages were not recorded"));
    }
    if !stopped.is_empty() {
        /// The rest can be found by the word in their notes.
        const NAMED: usize = 20;
        let (count, all) = (stopped.len(), conversation.messages.len());
        let more = if count > NAMED { ", …" } else { "" };
        stopped.truncate(NAMED);
        let which = stopped.join(", ");
        stdio::note(&format!(
            "not understood: {count} of {all} messages, {which}{more}"
        ));
    }
    Ok(())
}

/// Names in a recording must not steer the terminal.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

fn place(message: &Message, several: bool) -> String {
    let mut place = match message.dir {
        Direction::C2s => "c2s".to_owned(),
        Direction::S2c => "s2c".to_owned(),
    };
    if several {
        let _ = write!(place, ", connection {}", message.conn);
    }
    if let Some(t) = message.t {
        let _ = write!(place, ", {t:.3} s");
    }
    place
}

fn is_stopped(explained: &Explained, message: &Message) -> bool {
    explained.stop.is_some() || message.kind == Kind::Raw
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_is_shows_itself() {
        let auto = |content: &[u8]| format(Format::Auto, content);
        assert_eq!(auto(b" {\"messages\": []}"), Format::Recording);
        assert_eq!(auto(b"71f2 0200\n"), Format::Hex);
        assert_eq!(auto(b"00000000: 71f2 0200  q...\n"), Format::Hex);
        assert_eq!(auto(b"\x71\xf2\x02\0"), Format::Raw);
        assert_eq!(auto(b"GET / HTTP/1.1\r\n"), Format::Raw);
        assert_eq!(auto(b""), Format::Raw);
        assert_eq!(format(Format::Raw, b"71f2"), Format::Raw);
    }
}
