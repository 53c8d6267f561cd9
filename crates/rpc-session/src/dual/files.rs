use std::io;
use std::path::Path;
use std::sync::Arc;

use rpc_proto::{Bulk, Packet, Returned, Value, Values};

#[super::only_async]
use super::WriteExt as _;
use super::context::Context;
use super::payload::{Progress, Sink, Source};
use super::value::Output;
use super::{DynRead, DynWrite, File, bisync};
use crate::answer::Answer;
use crate::{SessionError, names};

/// The files in the session's work directory at the server, by names relative to it.
///
/// A progress callback is told the bytes that are done and how many there are in all.
#[derive(Debug, Clone)]
pub struct Files {
    context: Arc<Context>,
}

impl Files {
    pub(in super::super) fn new(context: &Arc<Context>) -> Self {
        Self {
            context: Arc::clone(context),
        }
    }
}

#[bisync]
impl Files {
    /// Makes the file `name` of these bytes.
    ///
    /// # Errors
    /// The server refuses or has no files, or the connection fails.
    pub async fn upload(&self, name: &str, bytes: &[u8]) -> Result<(), SessionError> {
        let args = [name.into(), bytes.into()];
        self.context
            .call_server(names::UPLOAD, &args)
            .await?
            .try_into()
    }

    /// Makes the file `name` of the `nbytes` bytes that `reader` has. They are sent in pieces as they
    /// are read.
    ///
    /// # Errors
    /// As [`Files::upload`]; when `reader` fails or ends early, [`SessionError::File`], and what the
    /// server stored is of that length but worthless. (In the async twin the same holds for a future
    /// that is dropped on the way.)
    pub async fn upload_from(
        &self,
        name: &str,
        nbytes: u64,
        reader: &mut DynRead<'_>,
        progress: Progress<'_>,
    ) -> Result<(), SessionError> {
        let packet = Packet::Call {
            function: self.context.server_function(names::UPLOAD).await?,
            args: Values::from_iter([Value::from(name)]),
            bulk: Some(Bulk::bytes(nbytes)),
        };
        let source = Source::Reader { reader, progress };
        let answer = self.context.link.exchange(&packet, source, Sink::Answer);
        Output::new(&self.context, answer.await?.into_returned()).try_into()
    }

    /// Uploads the file at `path` under its own name, and gives that back.
    ///
    /// # Errors
    /// As [`Files::upload_from`], and [`SessionError::File`] when there is no such file.
    pub async fn upload_file(
        &self,
        path: &Path,
        progress: Progress<'_>,
    ) -> Result<String, SessionError> {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(SessionError::BadOption(format!(
                "{} has no name to upload it under",
                path.display()
            )));
        };
        self.upload_file_as(path, name, progress).await?;
        Ok(name.to_owned())
    }

    /// Uploads the file at `path` under another name.
    ///
    /// # Errors
    /// As [`Files::upload_file`].
    pub async fn upload_file_as(
        &self,
        path: &Path,
        name: &str,
        progress: Progress<'_>,
    ) -> Result<(), SessionError> {
        let failed = |source| file_failed(path, source);
        let mut file = File::open(path).await.map_err(failed)?;
        let nbytes = file.metadata().await.map_err(failed)?.len();
        self.upload_from(name, nbytes, &mut file, progress).await
    }

    /// The bytes of the file `name`.
    ///
    /// # Errors
    /// There is no such file, the server has no files, or the connection fails.
    pub async fn download(&self, name: &str) -> Result<Vec<u8>, SessionError> {
        let args = [name.into()];
        self.context
            .call_server(names::DOWNLOAD, &args)
            .await?
            .try_into()
    }

    /// Writes the bytes of the file `name` to `writer`, in pieces as they come, and says how many.
    ///
    /// # Errors
    /// As [`Files::download`]; when `writer` fails, [`SessionError::File`].
    pub async fn download_to(
        &self,
        name: &str,
        writer: &mut DynWrite<'_>,
        progress: Progress<'_>,
    ) -> Result<u64, SessionError> {
        let packet = Packet::Call {
            function: self.context.server_function(names::DOWNLOAD).await?,
            args: Values::from_iter([Value::from(name)]),
            bulk: None,
        };
        let mut nbytes = 0;
        let mut counting = |done, total| {
            nbytes = total;
            progress(done, total);
        };
        let sink = Sink::Writer {
            writer: &mut *writer,
            progress: &mut counting,
        };
        let answer = self
            .context
            .link
            .exchange(&packet, Source::Memory(&[]), sink)
            .await?;
        match answer {
            Answer::Done => Ok(nbytes),
            // A small file comes with the answer.
            Answer::Returned(Returned::Value(Value::Bytes(bytes))) => {
                let failed = |source| file_failed(Path::new(name), source);
                writer.write_all(&bytes).await.map_err(failed)?;
                writer.flush().await.map_err(failed)?;
                let nbytes = bytes.len() as u64;
                progress(nbytes, nbytes);
                Ok(nbytes)
            }
            Answer::Returned(other) => Err(SessionError::WrongType {
                expected: "bytes",
                // What it holds is freed with it.
                found: Output::new(&self.context, other).kind(),
            }),
            other => unreachable!("the result of a call was due, not {other:?}"),
        }
    }

    /// Downloads the file `name` to `path`, which is there only once it is whole, and says how many
    /// bytes it has. What is there and is no plain file (a pipe, a device) is written to instead.
    ///
    /// # Errors
    /// As [`Files::download_to`].
    pub async fn download_file(
        &self,
        name: &str,
        path: &Path,
        progress: Progress<'_>,
    ) -> Result<u64, SessionError> {
        let failed = |source| file_failed(path, source);
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            let mut file = File::create(path).await.map_err(failed)?;
            return self.download_to(name, &mut file, progress).await;
        }
        let (part, part_path) = part_of(path).map_err(failed)?;
        #[allow(
            clippy::useless_conversion,
            reason = "one of the twins has another kind of file"
        )]
        let mut part = File::from(part);
        let nbytes = self.download_to(name, &mut part, progress).await?;
        part.sync_all().await.map_err(failed)?;
        let put_in_place = part_path.persist(path);
        put_in_place.map_err(|error| failed(error.error))?;
        Ok(nbytes)
    }

    /// Removes the file `name`. That there is none is no error.
    ///
    /// # Errors
    /// The server has no files, or the connection fails.
    pub async fn remove(&self, name: &str) -> Result<(), SessionError> {
        self.context
            .call_server(names::REMOVE, &[name.into()])
            .await?
            .try_into()
    }

    /// The files in the directory `name` (`""` is the work directory), as the server names them: those
    /// of the reference give whole paths.
    ///
    /// # Errors
    /// [`SessionError::NoFunction`] when the server cannot list files (the reference's Python server
    /// cannot); there is no such directory; the connection fails.
    pub async fn list(&self, name: &str) -> Result<Vec<String>, SessionError> {
        let listed = self
            .context
            .call_server(names::LIST, &[name.into()])
            .await?;
        let listed: String = listed.try_into()?;
        let names = listed.split(',').filter(|name| !name.is_empty());
        Ok(names.map(str::to_owned).collect())
    }

    /// Has the server link the uploaded file `name` (an object file or an archive of them) into a
    /// library, and gives that library's bytes.
    ///
    /// # Errors
    /// The server cannot link, there is no such file, or the connection fails.
    pub async fn link_and_download(&self, name: &str) -> Result<Vec<u8>, SessionError> {
        let args = [name.into()];
        self.context
            .call_server(names::DOWNLOAD_LINKED, &args)
            .await?
            .try_into()
    }
}

/// A file beside `path`, for what is to become it; removed when it does not.
fn part_of(path: &Path) -> io::Result<(std::fs::File, tempfile::TempPath)> {
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    let mut part = tempfile::Builder::new();
    part.prefix(&name).suffix(".part");
    // As any file that a program makes.
    #[cfg(unix)]
    part.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let part = part.tempfile_in(directory.unwrap_or(Path::new(".")))?;
    Ok(part.into_parts())
}

fn file_failed(path: &Path, source: std::io::Error) -> SessionError {
    SessionError::File {
        path: path.display().to_string(),
        source: Arc::new(source),
    }
}

/// The file as this twin has it.
#[super::only_async]
pub(super) fn adopted(file: std::fs::File) -> File {
    File::from_std(file)
}

/// The file as this twin has it.
#[super::only_sync]
pub(super) fn adopted(file: std::fs::File) -> File {
    file
}
