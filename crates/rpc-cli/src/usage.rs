//! Wrong usage that shows only when options, environment and files are seen together.

/// A mistake of whoever typed the command; exit status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(String);

/// A [`UsageError`], ready to be returned.
pub(crate) fn wrong_usage(text: impl Into<String>) -> anyhow::Error {
    UsageError(text.into()).into()
}
