//! Bytes from hexadecimal dumps.

/// The most bytes that a dump may stand for.
pub const MAX_LEN: usize = 256 << 20;

/// A text that is no dump.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct DumpError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
}

/// Reads a dump as `xxd` and `hexdump -C` print it, or just hexadecimal digits with any white space,
/// commas and `0x` between them. Lines that start with `#` are skipped.
///
/// ```
/// use rpc_recording::dump;
///
/// let xxd = "00000000: 0400 0000 0000 0000 0100 0000            ............";
/// let hexdump = "00000000  04 00 00 00 00 00 00 00  01 00 00 00              |............|\n0000000c";
/// let plain = "04000000 00000000 01000000";
/// for text in [xxd, hexdump, plain] {
///     assert_eq!(dump::parse(text)?, [4, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
/// }
/// # Ok::<(), dump::DumpError>(())
/// ```
///
/// # Errors
/// A line that is none of these, or bytes that are missing between two lines.
pub fn parse(text: &str) -> Result<Vec<u8>, DumpError> {
    let mut dump = Dump::default();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if line.trim_start().starts_with('#') {
            continue;
        }
        dump.line(line).map_err(|problem| DumpError {
            line: number + 1,
            problem,
        })?;
    }
    if dump.repeats {
        return Err(DumpError {
            line: text.lines().count(),
            problem: "nothing says how often the row before `*` is repeated".to_owned(),
        });
    }
    Ok(dump.bytes)
}

#[derive(Default)]
struct Dump {
    bytes: Vec<u8>,
    /// The offset of the first row, if rows have some.
    first: Option<u64>,
    /// Where the last row starts in `bytes`.
    row: usize,
    /// That row is repeated up to the next offset.
    repeats: bool,
}

impl Dump {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.trim() == "*" {
            self.repeats = true;
            return Ok(());
        }
        let (offset, digits) = columns(line, self.first.is_some());
        if let Some(offset) = offset {
            self.go_to(offset)?;
        }
        self.row = self.bytes.len();
        for word in digits
            .split([' ', '\t', ','])
            .filter(|word| !word.is_empty())
        {
            let digits = word.strip_prefix("0x").unwrap_or(word);
            let bytes = hex::decode(digits);
            let bytes =
                bytes.map_err(|_| format!("{word:?} is not pairs of hexadecimal digits"))?;
            self.bytes.extend(bytes);
        }
        match self.bytes.len() {
            0..=MAX_LEN => Ok(()),
            _ => Err(too_long()),
        }
    }

    /// A row starts there, or the dump ends.
    fn go_to(&mut self, offset: u64) -> Result<(), String> {
        let first = *self.first.get_or_insert(offset);
        let at = offset
            .checked_sub(first)
            .and_then(|at| usize::try_from(at).ok());
        let at = at.ok_or("the offset is smaller than the first one")?;
        if at > MAX_LEN {
            return Err(too_long());
        }
        if std::mem::take(&mut self.repeats) && self.row < self.bytes.len() {
            let row = self.bytes[self.row..].to_vec();
            let missing = at.saturating_sub(self.bytes.len());
            self.bytes.extend(row.iter().cycle().take(missing));
        }
        match at == self.bytes.len() {
            true => Ok(()),
            false => Err(format!(
                "the offset says {at} bytes from the start, but {} bytes stand before it",
                self.bytes.len()
            )),
        }
    }
}

fn too_long() -> String {
    format!("more than {MAX_LEN} bytes")
}

/// Offset and digits of a row, without the text beside them.
fn columns(line: &str, has_offsets: bool) -> (Option<u64>, &str) {
    let is_offset = |text: &str| text.len() >= 7 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let number = |text| u64::from_str_radix(text, 16).ok();
    if let Some((offset, rest)) = line.split_once(": ")
        && is_offset(offset)
    {
        // Two blanks stand before the text.
        let digits = rest.split_once("  ").map_or(rest, |(digits, _)| digits);
        return (number(offset), digits);
    }
    match line.split_once("  ") {
        Some((offset, rest)) if is_offset(offset) => {
            let digits = rest.split_once('|').map_or(rest, |(digits, _)| digits);
            (number(offset), digits)
        }
        // Behind rows that have offsets the end of the dump is one alone.
        None if has_offsets && is_offset(line) => (number(line), ""),
        _ => (None, line),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn rows_may_be_left_out_where_they_repeat() {
        let mut expected = vec![0; 64];
        expected.extend(b"AB");
        let hexdump = "\
00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|
*
00000040  41 42                                             |AB|
00000042
";
        assert_eq!(parse(hexdump), Ok(expected.clone()));
        let xxd = "\
00000000: 0000 0000 0000 0000 0000 0000 0000 0000  ................
*
00000040: 4142                                     AB
";
        assert_eq!(parse(xxd), Ok(expected));
    }

    #[test]
    fn the_text_beside_the_digits_is_not_read() {
        let xxd = "00000000: 3233 2020 6162 3132 2061 6220 2063 6420  23  ab12 ab  cd ";
        assert_eq!(parse(xxd).unwrap(), b"23  ab12 ab  cd ");
        let hexdump = "00000000  7c 20 31 32 20 7c 20 20  31 32                    || 12 |  12|";
        assert_eq!(parse(hexdump).unwrap(), b"| 12 |  12");
    }

    #[test]
    fn a_dump_may_be_of_the_middle_of_a_file() {
        let xxd = "00000010: 41\n00000011: 42\n";
        assert_eq!(parse(xxd).unwrap(), b"AB");
    }

    #[test]
    fn plain_digits_may_be_written_in_many_ways() {
        for text in [
            "41 42",
            "4142",
            "0x41, 0x42",
            " 41\n\n\t42\n",
            "# a note\n41\n42",
        ] {
            assert_eq!(parse(text).unwrap(), b"AB", "{text}");
        }
        assert_eq!(parse("").unwrap(), b"");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        assert_eq!(
            error("41\n4x"),
            "line 2: \"4x\" is not pairs of hexadecimal digits"
        );
        assert_eq!(
            error("414"),
            "line 1: \"414\" is not pairs of hexadecimal digits"
        );
        assert_eq!(
            error("00000000: 4142\n00000004: 43"),
            "line 2: the offset says 4 bytes from the start, but 2 bytes stand before it"
        );
        assert_eq!(
            error("00000010: 4142\n00000000: 43"),
            "line 2: the offset is smaller than the first one"
        );
        assert_eq!(
            error("00000000: 4142\n*\n"),
            "line 2: nothing says how often the row before `*` is repeated"
        );
        assert_eq!(
            error("00000000: 4142\n*\nfffffffffffffff: 43"),
            "line 3: more than 268435456 bytes"
        );
    }

    proptest! {
        #[test]
        fn what_is_dumped_is_read(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let text = |row: &[u8]| -> String {
                let shown = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' };
                row.iter().map(shown).collect()
            };
            let mut xxd = String::new();
            let mut hexdump = String::new();
            for (at, row) in bytes.chunks(16).enumerate() {
                let pairs: Vec<_> = row.chunks(2).map(hex::encode).collect();
                xxd += &format!("{:08x}: {:<39}  {}\n", at * 16, pairs.join(" "), text(row));
                let halves: Vec<_> = row.chunks(8).map(|half| {
                    half.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
                }).collect();
                hexdump += &format!("{:08x}  {:<48}  |{}|\n", at * 16, halves.join("  "), text(row));
            }
            hexdump += &format!("{:08x}\n", bytes.len());
            prop_assert_eq!(parse(&xxd), Ok(bytes.clone()));
            // Of nothing there is no row, and the end alone would be digits.
            if !bytes.is_empty() {
                prop_assert_eq!(parse(&hexdump), Ok(bytes.clone()));
            }
            prop_assert_eq!(parse(&hex::encode(&bytes)), Ok(bytes));
        }

        #[test]
        fn no_text_is_fatal(text: String) {
            let _ = parse(&text);
        }
    }
}
