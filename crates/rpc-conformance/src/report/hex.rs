//! Bytes as rows of hexadecimal digits, and two of them beside each other.

/// Bytes of a row where two are beside each other.
const HALF: usize = 8;
/// Bytes of a row of one alone.
const WHOLE: usize = 16;
/// Rows that are shown before the one with the first difference.
const BEFORE: usize = 2;
/// Rows that are shown.
const ROWS: usize = 12;

/// What was expected and what came.
#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    expected: &'a [u8],
    found: &'a [u8],
    /// Where they differ first.
    pub(crate) difference: Option<usize>,
}

/// A row of both.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) offset: usize,
    pub(crate) expected: &'a [u8],
    pub(crate) found: &'a [u8],
    /// The place of the first difference in this row.
    pub(crate) difference: Option<usize>,
}

impl<'a> Comparison<'a> {
    pub(crate) fn new(expected: &'a [u8], found: &'a [u8]) -> Self {
        let pairs = expected.iter().zip(found);
        let same = pairs.take_while(|(one, other)| one == other).count();
        let is_same = expected.len() == found.len() && same == expected.len();
        Self {
            expected,
            found,
            difference: (!is_same).then_some(same),
        }
    }

    /// The rows around the first difference.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Row<'a>> {
        let count = self.expected.len().max(self.found.len()).div_ceil(HALF);
        let first = self.difference.unwrap_or(0) / HALF;
        let (expected, found, difference) = (self.expected, self.found, self.difference);
        let shown = (first.saturating_sub(BEFORE)..count.max(first + 1)).take(ROWS);
        shown.map(move |row| {
            let offset = row * HALF;
            Row {
                offset,
                expected: part(expected, offset),
                found: part(found, offset),
                difference: difference
                    .and_then(|at| at.checked_sub(offset))
                    .filter(|at| *at < HALF),
            }
        })
    }

    /// The rows as text, with a line that marks the first difference.
    pub(crate) fn lines(&self) -> Vec<String> {
        let width = HALF * 4 + 1;
        let mut lines = vec![format!("        {:<width$}  received", "expected")];
        for row in self.rows() {
            let [expected, found] = [row.expected, row.found].map(|bytes| {
                let digits = digits(bytes);
                format!("{digits:<0$}  {1:<HALF$}", HALF * 3 - 1, characters(bytes))
            });
            let line = format!("{:>6}  {expected}  {found}", row.offset);
            lines.push(line.trim_end().to_owned());
            if let Some(at) = row.difference {
                let under = |at: usize| " ".repeat(at * 3) + "^^";
                let mark = format!("        {:<width$}  {}", under(at), under(at));
                lines.push(mark);
            }
        }
        lines
    }
}

fn part(bytes: &[u8], offset: usize) -> &[u8] {
    let rest = bytes.get(offset..).unwrap_or_default();
    &rest[..rest.len().min(HALF)]
}

/// Some bytes as rows.
pub(crate) fn dump(bytes: &[u8]) -> Vec<String> {
    let rows = bytes.chunks(WHOLE).take(ROWS).enumerate();
    let mut lines: Vec<_> = rows
        .map(|(row, bytes)| {
            let digits = digits(bytes);
            let width = WHOLE * 3 - 1;
            format!(
                "{:>6}  {digits:<width$}  {}",
                row * WHOLE,
                characters(bytes)
            )
        })
        .collect();
    if let Some(more @ 1..) = bytes.len().checked_sub(WHOLE * ROWS) {
        lines.push(format!("        … {more} more bytes"));
    }
    lines
}

pub(crate) fn digits(bytes: &[u8]) -> String {
    let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(" ")
}

pub(crate) fn characters(bytes: &[u8]) -> String {
    let shown = |byte: &u8| match byte.is_ascii_graphic() || *byte == b' ' {
        true => char::from(*byte),
        false => '.',
    };
    bytes.iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_marked() {
        let lines = Comparison::new(b"\x04\0\0\0[0, null]", b"\x04\0\0\0[1, null]").lines();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn of_long_ones_the_rows_around_the_difference_are_shown() {
        let expected = vec![b'a'; 1000];
        let mut found = expected.clone();
        found[500] = b'b';
        let comparison = Comparison::new(&expected, &found);
        assert_eq!(comparison.difference, Some(500));
        let rows: Vec<_> = comparison.rows().collect();
        assert_eq!((rows.len(), rows[0].offset), (ROWS, 480));
        assert_eq!(rows[2].difference, Some(4));
    }

    #[test]
    fn one_may_be_shorter_or_empty() {
        let comparison = Comparison::new(b"12345678", b"");
        assert_eq!(comparison.difference, Some(0));
        let lines = Comparison::new(b"12345678", b"123456789").lines();
        assert_eq!(
            lines[2],
            "     8                                     39                       9"
        );
        assert_eq!(Comparison::new(b"", b"").difference, None);
        assert_eq!(Comparison::new(b"", b"").lines().len(), 2);
    }
}
