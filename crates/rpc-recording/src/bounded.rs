//! Lists of a file, which has more of them than memory should hold if somebody means it ill.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

use crate::MAX_MESSAGES;

/// Reads a list of at most [`MAX_MESSAGES`].
pub(crate) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(List {
        most: MAX_MESSAGES,
        of: PhantomData,
    })
}

struct List<T> {
    most: usize,
    of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {}", self.most)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            if list.len() == self.most {
                return Err(A::Error::invalid_length(self.most + 1, &self));
            }
            list.push(item);
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_an_end() {
        let read = |text: &str| {
            let of = PhantomData::<u8>;
            serde_json::Deserializer::from_str(text).deserialize_seq(List { most: 3, of })
        };
        assert_eq!(read("[1, 2, 3]").unwrap(), [1, 2, 3]);
        let endless = format!("[{}", "1,".repeat(1000));
        assert_eq!(
            read(&endless).unwrap_err().to_string(),
            "invalid length 4, expected a list of at most 3 at line 1 column 9"
        );
    }
}
