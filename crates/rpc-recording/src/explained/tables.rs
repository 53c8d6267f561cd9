//! An explanation as lines of text.

use std::fmt;

use super::{Explained, ExplainedField};

/// Bytes on a line.
const WIDTH: usize = 8;
/// The most lines of one field.
const LINES: usize = 4;

/// The note, one line or more for each field, and where it stops.
pub(super) fn lines(explained: &Explained, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "{}", explained.note)?;
    let names: Vec<_> = explained.fields.iter().map(full_name).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    for (field, name) in explained.fields.iter().zip(&names) {
        let start = usize::try_from(field.offset).unwrap_or(usize::MAX);
        let len = usize::try_from(field.len).unwrap_or(usize::MAX);
        let bytes = explained.bytes.get(start..start.saturating_add(len));
        let said = match &field.meaning {
            Some(meaning) => format!("{}: {meaning}", field.text),
            None => field.text.clone(),
        };
        rows(f, start, bytes.unwrap_or_default(), |f| {
            write!(f, "  {name:<width$}  {said}")
        })?;
    }
    let understood = usize::try_from(explained.understood()).unwrap_or(usize::MAX);
    let rest = explained.bytes.get(understood..).unwrap_or_default();
    if !rest.is_empty() {
        let name = match explained.fields.is_empty() && explained.stop.is_none() {
            true => "bytes",
            false => "not understood",
        };
        rows(f, understood, rest, |f| write!(f, "  {name}"))?;
    }
    if explained.omitted > 0 {
        writeln!(
            f,
            "        {} more bytes were not recorded",
            explained.omitted
        )?;
    }
    match &explained.stop {
        Some(stop) => writeln!(f, "     !  stops at offset {}: {}", stop.offset, stop.why),
        None => Ok(()),
    }
}

/// Bytes in rows, with what is said of them beside the first.
fn rows(
    f: &mut fmt::Formatter<'_>,
    start: usize,
    bytes: &[u8],
    say: impl FnOnce(&mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    let mut say = Some(say);
    for (at, row) in bytes.chunks(WIDTH).take(LINES).enumerate() {
        let digits: Vec<_> = row.iter().map(|byte| format!("{byte:02x}")).collect();
        let digits = digits.join(" ");
        match say.take() {
            Some(say) => {
                write!(f, "{start:>6}  {digits:<23}")?;
                say(f)?;
                writeln!(f)?;
            }
            None => writeln!(f, "{:>6}  {digits}", start + at * WIDTH)?,
        }
    }
    if let Some(say) = say {
        write!(f, "{start:>6}  {:<23}", "")?;
        say(f)?;
        writeln!(f)?;
    }
    match bytes.len().checked_sub(WIDTH * LINES) {
        None | Some(0) => Ok(()),
        Some(more) => writeln!(f, "        … {more} more bytes"),
    }
}

fn full_name(field: &ExplainedField) -> String {
    match field.item {
        None => field.name.to_owned(),
        Some((item, None)) => format!("#{item} {}", field.name),
        Some((item, Some(label))) => format!("#{item} {label}: {}", field.name),
    }
}
