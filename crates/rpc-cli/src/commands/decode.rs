use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use rpc_proto::Dialect;
use rpc_recording::{
    Connection, Conversation, Cutter, Direction, Explained, Kind, MAX_FILE_LEN, Message, Stage,
    dialect_name, dump, guess, parse_dialect,
};

use crate::stdio;

/// Explain recorded bytes, message by message
///
/// FILE is a recording of `tvm-rpc relay` or one of tests/vectors, bytes as they passed in one
/// direction, or a dump of such bytes: what `xxd` or `hexdump -C` print, or hexadecimal digits. Which
/// of these it is, and what the bytes are, is found out as far as they show it, and said; the options
/// say it where they do not.
///
/// Each message is shown with its bytes beside what they mean. Where one cannot be understood it says
/// at which byte, and why; the messages behind it are shown if it says where it ends.
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

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let content = read(&arguments.file)?;
    let (mut conversation, said) = conversation(arguments, content)?;
    if let Some(only) = arguments.connection {
        let has_it = conversation.connections.iter().any(|c| c.id == only);
        ensure!(
            has_it,
            "there is no connection {only} in {}",
            arguments.file
        );
        conversation.connections.retain(|c| c.id == only);
        conversation.messages.retain(|message| message.conn == only);
    }
    if arguments.json {
        let mut text = Vec::new();
        annotated(conversation, arguments.dialect).write_to(&mut text)?;
        return stdio::print(&String::from_utf8_lossy(&text));
    }
    if let Some(said) = said {
        stdio::note(&said);
    }
    print(&conversation, arguments)
}

fn read(file: &str) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    let read = match file {
        "-" => io::stdin().take(MAX_FILE_LEN + 1).read_to_end(&mut content),
        file => {
            File::open(file).and_then(|file| file.take(MAX_FILE_LEN + 1).read_to_end(&mut content))
        }
    };
    read.with_context(|| file.to_owned())?;
    ensure!(
        content.len() as u64 <= MAX_FILE_LEN,
        "{file} has more than {MAX_FILE_LEN} bytes"
    );
    Ok(content)
}

/// The conversation in a file, and what was found out of one that does not say it.
fn conversation(arguments: &Arguments, content: Vec<u8>) -> Result<(Conversation, Option<String>)> {
    let bytes = match format(arguments.format, &content) {
        Format::Recording => {
            let conversation = Conversation::parse(&content)
                .with_context(|| format!("{} is not a recording", arguments.file))?;
            return Ok((conversation, None));
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
    let conversation = cut(&bytes, stage, side, arguments.dialect);
    let said = found_out(&conversation, side);
    Ok((conversation, Some(said)))
}

/// What a file is, if nobody says it.
fn format(given: Format, content: &[u8]) -> Format {
    let is_text = |byte: &u8| byte.is_ascii_graphic() || b" \t\r\n".contains(byte);
    match given {
        Format::Auto if content.trim_ascii_start().starts_with(b"{") => Format::Recording,
        Format::Auto if content.is_empty() || !content.iter().all(is_text) => Format::Raw,
        Format::Auto => match dump::parse(&String::from_utf8_lossy(content)) {
            Ok(_) => Format::Hex,
            Err(_) => Format::Raw,
        },
        given => given,
    }
}

/// A conversation of one connection, in which one side spoke.
fn cut(bytes: &[u8], stage: Stage, side: Direction, dialect: Option<Dialect>) -> Conversation {
    let mut cutter = Cutter::new(side, stage, usize::MAX);
    let mut messages = Vec::new();
    let mut keep = |cut: rpc_recording::Cut| {
        let mut message = Message::new(messages.len(), 0, side, cut.kind, cut.bytes);
        message.note = cut.why.unwrap_or_default();
        messages.push(message);
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
    let mut conversation = Conversation::default();
    conversation.connections = vec![Connection::new(0, "", protocol, dialect)];
    conversation.messages = messages;
    conversation
}

/// What was found out, and how to say otherwise.
fn found_out(conversation: &Conversation, side: Direction) -> String {
    let first = conversation.messages.first().map(|message| message.kind);
    let what = match first {
        Some(Kind::Magic) => "a connection to a tracker",
        Some(Kind::Handshake) => "a session from its start",
        Some(Kind::Json) => "frames of a tracker",
        Some(Kind::Packet) => "packets of a session",
        _ => "bytes of an unknown kind",
    };
    let side = match side {
        Direction::C2s => "client",
        Direction::S2c => "server",
    };
    let dialect = match conversation.connections.iter().find_map(|c| c.dialect) {
        Some(dialect) => format!(", dialect {}", dialect_name(dialect)),
        None => String::new(),
    };
    format!("{what}, sent by the {side}{dialect} (--at, --from and --dialect say otherwise)")
}

/// With the meanings of all messages.
fn annotated(mut conversation: Conversation, dialect: Option<Dialect>) -> Conversation {
    let explained: Vec<_> = (0..conversation.messages.len())
        .map(|index| conversation.explain(index, dialect))
        .collect();
    for (message, explained) in conversation.messages.iter_mut().zip(explained) {
        if message.note.is_empty() {
            message.note = explained.note;
        }
        message.decoded = explained.decoded;
        if message.volatile.is_empty() {
            message.volatile = explained.volatile;
        }
    }
    conversation
}

fn print(conversation: &Conversation, arguments: &Arguments) -> Result<()> {
    let several = conversation.connections.len() > 1;
    // Where a message is known by its place in the file.
    let is_raw = conversation.connections.iter().all(|c| c.link.is_empty());
    for connection in conversation
        .connections
        .iter()
        .filter(|c| !c.link.is_empty())
    {
        let Connection {
            id, link, proto, ..
        } = connection;
        let proto = format!("{proto:?}").to_lowercase();
        let dialect = arguments.dialect.or(connection.dialect);
        let dialect = dialect.map(dialect_name).unwrap_or_default();
        let link = one_line(link);
        stdio::print(&format!("connection {id}: {link} {proto} {dialect}\n"))?;
    }
    let mut step = None;
    let mut stopped = Vec::new();
    let mut from_start = 0;
    for (index, message) in conversation.messages.iter().enumerate() {
        let explained = conversation.explain(index, arguments.dialect);
        let mut text = String::new();
        if message.step != step {
            step.clone_from(&message.step);
            let name = step.as_deref().unwrap_or_default();
            let _ = writeln!(text, "== {}", one_line(name));
        }
        let _ = write!(text, "#{} {}", message.i, place(message, several));
        if is_raw {
            let _ = write!(text, " from byte {from_start}");
            from_start += message.bytes.len() as u64;
        }
        let _ = match arguments.brief {
            true => writeln!(text, ": {}", explained.note),
            false => writeln!(text, ": {explained}"),
        };
        if is_stopped(&explained, message) {
            stopped.push(format!("#{}", message.i));
        }
        stdio::print(&text)?;
    }
    if conversation.dropped > 0 {
        let dropped = conversation.dropped;
        stdio::note(&format!("{dropped} more messages were not recorded"));
    }
    if !stopped.is_empty() {
        let (count, all) = (stopped.len(), conversation.messages.len());
        let which = stopped.join(", ");
        stdio::note(&format!(
            "not understood: {count} of {all} messages, {which}"
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
