//! The functions on files, for any session that has a work directory.

use rpc_proto::{BulkKind, Returned, Value};

#[super::super::only_async]
use super::super::WriteExt as _;
use super::super::files::adopted;
use super::super::payload::{PIECE, ended_early, read_piece};
use super::super::{DynRead, DynWrite, bisync};
use super::session::{BulkArgument, CallResult};
use crate::{Exception, FileFunction, NewFile, WorkDir};

/// Does what a client asks of its files. Large files are written and read in pieces while they travel.
///
/// # Errors
/// Wrong arguments, a name that does not stay inside, and whatever can go wrong with a file. A file that
/// is not complete does not stay.
#[bisync]
pub async fn call_file_function(
    function: FileFunction,
    files: &WorkDir,
    args: &[Value<'_>],
    bulk: Option<BulkArgument<'_>>,
) -> Result<CallResult, Exception> {
    let (name, rest) = function.file_name(args)?;
    if function == FileFunction::Upload {
        upload(files, name, rest, bulk).await?;
        return Ok(CallResult::Value(Returned::Value(Value::None)));
    }
    function.no_more(1, rest)?;
    if bulk.is_some() {
        return Err(function.wrong(1, "no argument", "a large one"));
    }
    let value = match function {
        FileFunction::Download => return download(files, name).await,
        FileFunction::List => FileFunction::listing(files, name)?.into(),
        FileFunction::Path => files.path_of(name)?.to_string_lossy().into_owned().into(),
        FileFunction::Remove => {
            files.remove(name)?;
            Value::None
        }
        FileFunction::Upload => unreachable!("it is done above"),
    };
    Ok(CallResult::Value(Returned::Value(value)))
}

#[bisync]
async fn upload(
    files: &WorkDir,
    name: &str,
    rest: &[Value<'_>],
    bulk: Option<BulkArgument<'_>>,
) -> Result<(), Exception> {
    const FUNCTION: FileFunction = FileFunction::Upload;
    match (rest, bulk) {
        ([], Some(BulkArgument { nbytes, data, .. })) => store(files, name, nbytes, data).await,
        ([Value::Bytes(bytes)], None) => {
            store(files, name, bytes.len() as u64, &mut &**bytes).await
        }
        ([Value::Str(text)], None) => {
            store(files, name, text.len() as u64, &mut text.as_bytes()).await
        }
        ([], None) => Err(FUNCTION.wrong(1, "bytes", "no argument")),
        ([Value::Bytes(_) | Value::Str(_), _, ..], _) | ([_], Some(_)) => {
            Err(FUNCTION.wrong(2, "no argument", "one"))
        }
        ([other, ..], _) => Err(FUNCTION.wrong(1, "bytes", other.kind())),
    }
}

/// Makes a file of the `nbytes` bytes of `data`.
#[bisync]
async fn store(
    files: &WorkDir,
    name: &str,
    nbytes: u64,
    data: &mut DynRead<'_>,
) -> Result<(), Exception> {
    let new = files.create(name)?;
    let mut file = adopted(new.writer()?);
    let written = copy(data, nbytes, &new, &mut file).await;
    // Before the file goes away, or gets its name.
    drop(file);
    written?;
    new.commit()
}

#[bisync]
async fn copy(
    data: &mut DynRead<'_>,
    nbytes: u64,
    new: &NewFile,
    file: &mut DynWrite<'_>,
) -> Result<(), Exception> {
    let most = usize::try_from(nbytes).unwrap_or(PIECE).min(PIECE);
    let mut piece = vec![0; most];
    let mut left = nbytes;
    while left > 0 {
        let count = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        if read_piece(data, &mut piece[..count]).await? < count {
            return Err(ended_early(nbytes).into());
        }
        let written = file.write_all(&piece[..count]).await;
        written.map_err(|error| new.failed(&error))?;
        left -= count as u64;
    }
    // The async file says only here whether the last write went well.
    file.flush().await.map_err(|error| new.failed(&error))
}

#[bisync]
async fn download(files: &WorkDir, name: &str) -> Result<CallResult, Exception> {
    let (file, nbytes) = files.open(name)?;
    let mut file = adopted(file);
    let kind = BulkKind::Bytes;
    if nbytes > PIECE as u64 {
        let data = Box::new(file);
        return Ok(CallResult::Bulk { kind, nbytes, data });
    }
    let mut bytes = vec![0; usize::try_from(nbytes).unwrap_or(PIECE)];
    let count = read_piece(&mut file, &mut bytes).await?;
    bytes.truncate(count);
    Ok(CallResult::Value(Returned::Value(bytes.into())))
}
