use std::borrow::Cow;

use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde::de::value::{Error, StrDeserializer};

use crate::results::Played;
use crate::stage::Chunking;

/// A list that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ListError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
}

/// The entries of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List(Vec<Entry>);

/// One line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// As it is written, with all but version and reason.
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) chunking: Option<Chunking>,
    pub(crate) check: Option<String>,
    pub(crate) until: Option<String>,
    pub(crate) reason: String,
    pub(crate) line: usize,
}

impl List {
    /// Reads the text of a list.
    ///
    /// # Errors
    /// A line is no entry, or two entries are about the same.
    pub fn parse(text: &str) -> Result<Self, ListError> {
        let mut entries: Vec<Entry> = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let entry = Entry::parse(text, line).map_err(|problem| ListError { line, problem })?;
            if let Some(other) = entries.iter().find(|other| other.overlaps(&entry)) {
                let problem = format!("{} is in line {} already", entry.name, other.line);
                return Err(ListError { line, problem });
            }
            entries.push(entry);
        }
        Ok(Self(entries))
    }

    /// The ids in it.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| crate::ids::current(&entry.id))
    }

    /// What the list says of a case as a whole.
    #[must_use]
    pub fn reason(&self, id: &str) -> Option<&str> {
        let id = crate::ids::current(id);
        let entry = self.0.iter().find(|entry| entry.id == id)?;
        Some(&entry.reason)
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.0
    }
}

impl Entry {
    fn parse(text: &str, line: usize) -> Result<Self, String> {
        let (subject, reason) = text
            .split_once(':')
            .ok_or("an entry is ID: REASON; there is no colon")?;
        let reason = reason.trim();
        if reason.is_empty() {
            return Err("the reason is missing".to_owned());
        }
        let words: Vec<_> = subject.split_whitespace().collect();
        let (name, until) = match words[..] {
            [name] => (name, None),
            [name, "until", version] => (name, Some(version.to_owned())),
            _ => return Err(format!("{subject:?} is not ID or ID until VERSION")),
        };
        // One that has no number would be over for every version.
        if let Some(version) = until.as_ref().filter(|version| !has_number(version)) {
            return Err(format!(
                "{version:?} is no version: it begins with no number"
            ));
        }
        let (id, chunking, check) = parts(name)?;
        Ok(Self {
            name: name.to_owned(),
            id: crate::ids::current(id).to_owned(),
            chunking: chunking.map(way).transpose()?,
            check: check.map(|check| decoded(check).into_owned()),
            until,
            reason: reason.to_owned(),
            line,
        })
    }

    /// Whether both may be about the same failure.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        fn meet<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        self.id == other.id
            && meet(self.chunking.as_ref(), other.chunking.as_ref())
            && meet(self.check.as_ref(), other.check.as_ref())
    }

    /// Whether it is about this playing of a case, whatever the check.
    pub(crate) fn is_about(&self, played: &Played) -> bool {
        let (id, chunking) = played.key();
        self.id == id && self.chunking.is_none_or(|own| own == chunking)
    }

    /// Whether it is about what did not hold.
    pub(crate) fn excuses(&self, played: &Played) -> bool {
        let failed = played.failed_check().map(|check| check.name.as_str());
        self.is_about(played) && (self.check.is_none() || self.check.as_deref() == failed)
    }

    /// Whether it says nothing of a peer of this version any more.
    pub(crate) fn is_over(&self, version: Option<&str>) -> bool {
        let (Some(until), Some(version)) = (&self.until, version) else {
            return false;
        };
        numbers(version) >= numbers(until)
    }
}

/// `ID[chunking=HOW].CHECK`, of which all but the id may be missing.
fn parts(name: &str) -> Result<(&str, Option<&str>, Option<&str>), String> {
    // What is varied stands behind the id; the name of a check may have brackets of its own.
    let (id, behind) = name.split_at(name.find(['[', '.']).unwrap_or(name.len()));
    let (chunking, behind) = match behind.strip_prefix('[') {
        None => (None, behind),
        Some(rest) => {
            let (axis, behind) = rest.split_once(']').ok_or("a ] is missing")?;
            let chunking = axis
                .strip_prefix("chunking=")
                .ok_or("only chunking may stand in [ ]")?;
            (Some(chunking), behind)
        }
    };
    let rest = match behind {
        "" => None,
        behind => Some(
            behind
                .strip_prefix('.')
                .ok_or("a check begins with a full stop")?,
        ),
    };
    match id.is_empty() || check_is_empty(rest) {
        true => Err(format!("{name:?} is not ID or ID.CHECK")),
        false => Ok((id, chunking, rest)),
    }
}

/// A way to cut what is sent, by the name that it has in reports.
fn way(name: &str) -> Result<Chunking, String> {
    let name: StrDeserializer<'_, Error> = name.into_deserializer();
    Chunking::deserialize(name).map_err(|error| error.to_string())
}

/// The name of a check as it stands in an entry: what would end it there is written as `%` and two
/// hexadecimal digits for each byte.
pub(crate) fn encoded(check: &str) -> String {
    let mut encoded = String::with_capacity(check.len());
    for c in check.chars() {
        if matches!(c, ':' | '%') || c.is_whitespace() || c.is_control() {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                encoded.push_str(&format!("%{byte:02x}"));
            }
        } else {
            encoded.push(c);
        }
    }
    encoded
}

/// The name of a check that stands so in an entry.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return text.into();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let mut byte = [0];
        let digits = behind.get(..2).filter(|_| first == b'%');
        match digits.map(|digits| hex::decode_to_slice(digits, &mut byte)) {
            Some(Ok(())) => {
                bytes.extend(byte);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    // What is no text is no name that a check has.
    String::from_utf8(bytes).map_or_else(|_| text.into(), Cow::Owned)
}

fn check_is_empty(check: Option<&str>) -> bool {
    check.is_some_and(str::is_empty)
}

fn has_number(version: &str) -> bool {
    let version = version.trim_start_matches('v');
    version.starts_with(|first: char| first.is_ascii_digit())
}

/// The numbers of a version, up to the first part that is none.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.trim_start_matches('v').split(['.', '-', '+']);
    let mut numbers: Vec<_> = parts.map_while(|part| part.parse().ok()).collect();
    // 0.28 and 0.28.0 are the same.
    while numbers.last() == Some(&0) {
        numbers.pop();
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_parts() {
        let text = "\n# a note\nTRK-PUT-003: why: so\n\
                    SRV-COPY-004[chunking=bytes].ack until 0.28 : because\n";
        let list = List::parse(text).unwrap();
        let [plain, full] = list.entries() else {
            panic!("{list:?}")
        };
        assert_eq!(
            (plain.id.as_str(), plain.reason.as_str()),
            ("TRK-PUT-003", "why: so")
        );
        assert_eq!(
            (&plain.chunking, &plain.check, &plain.until),
            (&None, &None, &None)
        );
        assert_eq!((full.id.as_str(), full.line), ("SRV-COPY-004", 4));
        assert_eq!(full.chunking, Some(Chunking::Bytes));
        assert_eq!(full.check.as_deref(), Some("ack"));
        assert_eq!(full.until.as_deref(), Some("0.28"));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, problem) in [
            (
                "TRK-PUT-003",
                "line 1: an entry is ID: REASON; there is no colon",
            ),
            ("\nTRK-PUT-003:  ", "line 2: the reason is missing"),
            (
                "TRK-PUT-003 since 3: x",
                "line 1: \"TRK-PUT-003 since 3\" is not ID or ID until VERSION",
            ),
            (
                "TRK-PUT-003 until then: x",
                "line 1: \"then\" is no version: it begins with no number",
            ),
            (
                "TRK-PUT-003.: x",
                "line 1: \"TRK-PUT-003.\" is not ID or ID.CHECK",
            ),
            (".a: x", "line 1: \".a\" is not ID or ID.CHECK"),
            ("A[chunking=bytes: x", "line 1: a ] is missing"),
            (
                "A[dialect=ffi]: x",
                "line 1: only chunking may stand in [ ]",
            ),
            (
                "B: x\nA[chunking=byte]: x",
                "line 2: unknown variant `byte`, expected one of `whole`, `bytes`, `random`, `coalesced`",
            ),
            ("A: x\nA.b: y", "line 2: A.b is in line 1 already"),
            (
                "A[chunking=bytes].c: x\nA.c: y",
                "line 2: A.c is in line 1 already",
            ),
        ] {
            assert_eq!(List::parse(text).unwrap_err().to_string(), problem);
        }
        for text in [
            "A.a: x\nA.b: y",
            "A[chunking=bytes]: x\nA[chunking=random]: y",
        ] {
            assert_eq!(List::parse(text).unwrap().entries().len(), 2);
        }
    }

    #[test]
    fn an_entry_is_over_from_its_version_on() {
        let list = List::parse("A until 0.28: x").unwrap();
        let is_over = |version| list.entries()[0].is_over(version);
        assert!(!is_over(None));
        for (version, over) in [
            ("0.27.0.post1", false),
            ("0.28", true),
            ("0.28.0", true),
            ("v0.28.1", true),
            ("0.3", false),
            ("1", true),
        ] {
            assert_eq!(is_over(Some(version)), over, "{version}");
        }
    }
}
