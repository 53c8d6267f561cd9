use rpc_proto::Value;

use super::WorkDir;
use crate::{Exception, names};

/// A function on the files of a session, which clients know by name.
///
/// It is not a [`LocalFunction`](crate::LocalFunction), since large files are written and read while
/// they travel. Every session can offer it: `call_file_function`, in both twins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileFunction {
    /// Makes a file of bytes.
    Upload,
    /// The bytes of a file.
    Download,
    /// Removes a file; that there is none is no error.
    Remove,
    /// The paths of what is in a directory, each with a comma behind it.
    List,
    /// The path of a file.
    Path,
}

impl FileFunction {
    /// The function that clients know by this name.
    ///
    /// ```
    /// use rpc_session::FileFunction;
    ///
    /// let upload = FileFunction::named("tvm.rpc.server.upload");
    /// assert_eq!(upload, Some(FileFunction::Upload));
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            names::UPLOAD => Self::Upload,
            names::DOWNLOAD => Self::Download,
            names::REMOVE => Self::Remove,
            names::LIST => Self::List,
            names::WORK_PATH => Self::Path,
            _ => return None,
        })
    }

    /// The name that clients know it by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Upload => names::UPLOAD,
            Self::Download => names::DOWNLOAD,
            Self::Remove => names::REMOVE,
            Self::List => names::LIST,
            Self::Path => names::WORK_PATH,
        }
    }

    /// The name of the file, and what comes behind it.
    pub(crate) fn file_name<'v>(
        self,
        args: &'v [Value<'_>],
    ) -> Result<(&'v str, &'v [Value<'v>]), Exception> {
        match args {
            [Value::Str(name), rest @ ..] => Ok((name, rest)),
            [other, ..] => Err(self.wrong(0, "the name of a file", other.kind())),
            [] => Err(self.wrong(0, "the name of a file", "no argument")),
        }
    }

    /// The function has no more arguments than it has to have.
    pub(crate) fn no_more(self, index: usize, rest: &[Value<'_>]) -> Result<(), Exception> {
        match rest {
            [] => Ok(()),
            [other, ..] => Err(self.wrong(index, "no argument", other.kind())),
        }
    }

    pub(crate) fn wrong(self, index: usize, expected: &str, found: &str) -> Exception {
        Exception::new(
            "TypeError",
            format!(
                "argument #{index} of {}: expected {expected}, found {found}",
                self.name()
            ),
        )
    }

    /// What [`FileFunction::List`] gives: whole paths, as from the reference's server.
    pub(crate) fn listing(files: &WorkDir, name: &str) -> Result<String, Exception> {
        let mut listed = String::new();
        for path in files.list(name)? {
            listed.push_str(&path.to_string_lossy());
            listed.push(',');
        }
        Ok(listed)
    }
}
