//! Sequences of packed values.

use std::{array, fmt, iter, ops::Deref, vec};

use crate::Value;

/// Values that need no heap.
const INLINE: usize = 3;

/// A sequence of packed values. Up to three take no heap.
#[derive(Clone)]
pub struct Values<'a>(Repr<'a>);

#[derive(Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "the few values inline are what it is for"
)]
enum Repr<'a> {
    /// The first `len` of these.
    Inline {
        values: [Value<'a>; INLINE],
        len: usize,
    },
    Heap(Vec<Value<'a>>),
}

impl Values<'_> {
    /// The same values, borrowing nothing.
    #[must_use]
    pub fn into_owned(self) -> Values<'static> {
        self.into_iter().map(Value::into_owned).collect()
    }
}

impl Default for Values<'_> {
    fn default() -> Self {
        Self::from_iter([])
    }
}

impl<'a> Deref for Values<'a> {
    type Target = [Value<'a>];

    fn deref(&self) -> &[Value<'a>] {
        match &self.0 {
            Repr::Inline { values, len } => &values[..*len],
            Repr::Heap(values) => values,
        }
    }
}

impl fmt::Debug for Values<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&**self).finish()
    }
}

impl PartialEq for Values<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<'a> FromIterator<Value<'a>> for Values<'a> {
    fn from_iter<I: IntoIterator<Item = Value<'a>>>(values: I) -> Self {
        let mut rest = values.into_iter();
        let mut values = [const { Value::None }; INLINE];
        for (len, place) in values.iter_mut().enumerate() {
            match rest.next() {
                Some(value) => *place = value,
                None => return Self(Repr::Inline { values, len }),
            }
        }
        Self(match rest.next() {
            Some(next) => Repr::Heap(values.into_iter().chain([next]).chain(rest).collect()),
            None => Repr::Inline {
                values,
                len: INLINE,
            },
        })
    }
}

impl<'a> IntoIterator for Values<'a> {
    type Item = Value<'a>;
    type IntoIter = ValuesIter<'a>;

    fn into_iter(self) -> ValuesIter<'a> {
        ValuesIter(match self.0 {
            Repr::Inline { values, len } => Rest::Inline(values.into_iter().take(len)),
            Repr::Heap(values) => Rest::Heap(values.into_iter()),
        })
    }
}

/// The values of a [`Values`], one after the other.
#[derive(Debug, Clone)]
pub struct ValuesIter<'a>(Rest<'a>);

#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "the few values inline are what it is for"
)]
enum Rest<'a> {
    Inline(iter::Take<array::IntoIter<Value<'a>, INLINE>>),
    Heap(vec::IntoIter<Value<'a>>),
}

impl<'a> Iterator for ValuesIter<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        match &mut self.0 {
            Rest::Inline(values) => values.next(),
            Rest::Heap(values) => values.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Rest::Inline(values) => values.size_hint(),
            Rest::Heap(values) => values.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_of_any_length_keeps_its_values() {
        for count in 0..=5 {
            let numbers = || (0..count).map(Value::Int);
            let values = Values::from_iter(numbers());
            assert!(values.iter().cloned().eq(numbers()), "{values:?}");
            let in_heap = matches!(values.0, Repr::Heap(_));
            assert_eq!(in_heap, count > 3, "{count}");
            assert_eq!(values.clone().into_iter().size_hint().0, values.len());
            assert!(values.clone().into_iter().eq(numbers()), "{values:?}");
            assert_ne!(values, numbers().chain([Value::None]).collect());
        }
        let two = Values::from_iter([Value::None, Value::Int(1)]);
        assert_eq!(format!("{two:?}"), "[None, Int(1)]");
        assert_eq!(Values::default().len(), 0);
    }

    /// Compiles only if a longer lifetime may stand for a shorter one.
    #[test]
    fn long_lived_values_pass_for_short_lived_ones() {
        fn shortened<'s>(values: Values<'static>, _: &'s str) -> Values<'s> {
            values
        }
        let text = "short".to_owned();
        let both = [
            shortened(Values::from_iter(["short".into()]), &text),
            Values::from_iter([text.as_str().into()]),
        ];
        assert_eq!(both[0], both[1]);
    }
}
