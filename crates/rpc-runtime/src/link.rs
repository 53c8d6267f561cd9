//! Shared libraries of what TVM's compilers export as objects.

use std::cell::Cell;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Component, Path, PathBuf, absolute};
use std::process::{Command, ExitStatus, Stdio};

use flate2::bufread::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

/// Makes shared libraries of object files, by a compiler of this machine.
///
/// A compiler of TVM exports a module as a shared library, or, where it has no linker for the machine that
/// will run it, as an object file (`.o`) or as an archive of such (`.tar`). The latter two become a shared
/// library here.
///
/// ```no_run
/// use rpc_runtime::Linker;
///
/// # fn main() -> Result<(), rpc_runtime::LinkError> {
/// let linker = Linker::find()?;
/// linker.shared_library("vadd.tar".as_ref(), "vadd.so".as_ref())?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linker {
    program: PathBuf,
}

/// There is no shared library, and why.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// There is no compiler.
    #[error("no program to link with: looked on the path for {}", .looked_for.join(", "))]
    NoLinker {
        /// What was looked for, the best first.
        looked_for: Vec<String>,
    },
    /// What is to be linked is neither an object file nor an archive.
    #[error("{} is neither an object file (.o) nor an archive of such (.tar)", .path.display())]
    Extension {
        /// What was to be linked.
        path: PathBuf,
    },
    /// A file cannot be read, or an archive is damaged.
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// An archive has an entry that no archive of object files has.
    #[error("the entry {entry:?} of the archive is {what}")]
    Entry {
        /// The entry's name.
        entry: String,
        /// What it is.
        what: &'static str,
    },
    /// An entry of an archive cannot be unpacked.
    #[error("cannot unpack the entry {entry:?} of the archive")]
    Unpack {
        /// The entry's name.
        entry: String,
        /// What is wrong.
        source: io::Error,
    },
    /// An archive has too many entries.
    #[error("the archive has more than {} entries", Linker::MAX_ENTRIES)]
    TooMany,
    /// What is in an archive is too large.
    #[error(
        "the archive up to its entry {entry:?} holds {bytes} bytes, more than {}",
        Linker::MAX_BYTES
    )]
    TooLarge {
        /// The name of the entry with which it is too much.
        entry: String,
        /// The bytes of all entries up to this one.
        bytes: u64,
    },
    /// An archive has nothing that can be linked.
    #[error("there is no object file in {}", .path.display())]
    NoObjects {
        /// The archive.
        path: PathBuf,
    },
    /// The library, or the temporary folder beside it, cannot be written.
    #[error("cannot write {}", .path.display())]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// The linker cannot be run.
    #[error("cannot run {}", .program.display())]
    Run {
        /// The linker.
        program: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// The linker failed.
    #[error("{} failed ({status}): {}", .program.display(), .words.trim_end())]
    Failed {
        /// The linker.
        program: PathBuf,
        /// How it ended.
        status: ExitStatus,
        /// The last of what it wrote to its standard error.
        words: String,
    },
}

/// Compilers of C++ come first: those of C do not know C++'s library.
const PROGRAMS: [&str; 6] = ["c++", "g++", "clang++", "cc", "gcc", "clang"];

/// The extensions of what is linked, or compiled and linked.
const LINKED: [&str; 6] = ["o", "a", "c", "cc", "cpp", "cxx"];

/// How many bytes an archive may have beside the content of an entry: headers, and names that are too long for
/// them. They are held in memory.
const HEADERS: u64 = 1 << 16;

/// How much of a linker's standard error is kept.
const WORDS: usize = 4096;

/// How much of an entry's name is kept in an error, in characters.
const NAME: usize = 200;

impl Linker {
    /// The most entries that an archive may have.
    pub const MAX_ENTRIES: usize = 4096;

    /// The most bytes that the entries of an archive may have together.
    pub const MAX_BYTES: u64 = 4 << 30;

    /// The program that `CXX` names in the environment, or the first of `c++`, `g++`, `clang++`, `cc`, `gcc` and
    /// `clang` on the path.
    ///
    /// # Errors
    /// [`LinkError::NoLinker`]: there is no such program.
    pub fn find() -> Result<Self, LinkError> {
        Self::find_in(env::var_os("CXX"), env::var_os("PATH"))
    }

    fn find_in(named: Option<OsString>, path: Option<OsString>) -> Result<Self, LinkError> {
        let programs = match named.filter(|named| !named.is_empty()) {
            Some(named) => vec![named],
            None => PROGRAMS.map(OsString::from).to_vec(),
        };
        let here = env::current_dir().unwrap_or_default();
        let found = |program| which::which_in(program, path.as_ref(), &here).ok();
        let program = programs.iter().find_map(found);
        program
            .map(Self::with_program)
            .ok_or_else(|| LinkError::NoLinker {
                looked_for: programs.iter().map(|p| p.display().to_string()).collect(),
            })
    }

    /// This program, which takes the options of `cc`.
    #[must_use]
    pub fn with_program(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
        }
    }

    /// Makes the shared library `target` of `source`: an object file (`.o`) or an archive (`.tar`), with gzip or
    /// without.
    ///
    /// What is linked of an archive are its object files (`.o`, `.a`) and sources in C and C++ (`.c`, `.cc`,
    /// `.cpp`, `.cxx`) in all its folders, in their order. Other files in it are ignored. A compiler of C++ takes
    /// a `.c` for C++ as well. An archive may be a stranger's: nothing in it decides what is written where, and
    /// no name in it is an option of the linker. The library has the stranger's code all the same.
    ///
    /// The library is written beside `target` and gets its name at the end: what has that name is whole. Nothing
    /// else remains.
    ///
    /// # Errors
    /// `source` is something else, cannot be read, is damaged, or is beyond [`Linker::MAX_ENTRIES`] or
    /// [`Linker::MAX_BYTES`]; the linker fails; `target` cannot be written.
    pub fn shared_library(&self, source: &Path, target: &Path) -> Result<(), LinkError> {
        // An absolute path is no option of the linker, whatever its name.
        let source = absolute(source).map_err(reading(source))?;
        let target = absolute(target).map_err(writing(target))?;
        let kind = source.extension().and_then(OsStr::to_str);
        if !matches!(kind, Some("o" | "tar")) {
            return Err(LinkError::Extension { path: source });
        }
        let file = File::open(&source).map_err(reading(&source))?;
        let folder = tempfile::Builder::new()
            .prefix(".link-")
            .tempdir_in(target.parent().unwrap_or(&target))
            .map_err(writing(&target))?;
        let objects = match kind {
            Some("tar") => unpack(file, &source, folder.path())?,
            _ => vec![source],
        };
        let library = folder.path().join("library");
        self.run(&objects, &library)?;
        fs::rename(&library, &target).map_err(writing(&target))
    }

    fn run(&self, objects: &[PathBuf], library: &Path) -> Result<(), LinkError> {
        let (status, words) = self.outcome(objects, library).map_err(|source| {
            let program = self.program.clone();
            LinkError::Run { program, source }
        })?;
        match status.success() {
            true => Ok(()),
            false => Err(LinkError::Failed {
                program: self.program.clone(),
                status,
                words: String::from_utf8_lossy(&words).into_owned(),
            }),
        }
    }

    fn outcome(&self, objects: &[PathBuf], library: &Path) -> io::Result<(ExitStatus, Vec<u8>)> {
        let mut command = Command::new(&self.program);
        command.args(["-shared", "-fPIC"]);
        if cfg!(target_os = "macos") {
            // Symbols of TVM's runtime are known when the library is loaded, which is the rule elsewhere.
            command.args(["-undefined", "dynamic_lookup"]);
        }
        command.arg("-o").arg(library).args(objects);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut linker = command.stderr(Stdio::piped()).spawn()?;
        let words = linker.stderr.take().map(last_words).transpose();
        let status = linker.wait()?;
        Ok((status, words?.unwrap_or_default()))
    }
}

fn reading(path: &Path) -> impl FnOnce(io::Error) -> LinkError {
    let path = path.to_owned();
    |source| LinkError::Read { path, source }
}

fn writing(path: &Path) -> impl FnOnce(io::Error) -> LinkError {
    let path = path.to_owned();
    |source| LinkError::Write { path, source }
}

/// Reads all, and keeps the end.
fn last_words(mut from: impl Read) -> io::Result<Vec<u8>> {
    let mut words = Vec::new();
    let mut buffer = [0; WORDS];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(words),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        words.extend_from_slice(&buffer[..read]);
        words.drain(..words.len().saturating_sub(WORDS));
    }
}

/// Unpacks what is to be linked, and returns the files in their order.
fn unpack(file: File, path: &Path, folder: &Path) -> Result<Vec<PathBuf>, LinkError> {
    let meter = Meter::default();
    meter.allowance.set(HEADERS);
    let reader = Metered {
        from: decompressed(file).map_err(reading(path))?,
        meter: &meter,
    };
    let mut archive = Archive::new(reader);
    let mut objects = Vec::new();
    let mut bytes = 0_u64;
    for (index, entry) in archive.entries().map_err(reading(path))?.enumerate() {
        if index == Linker::MAX_ENTRIES {
            return Err(LinkError::TooMany);
        }
        let mut entry = entry.map_err(reading(path))?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let is_file = is_file(&entry, &name)?;
        bytes = bytes.saturating_add(entry.size());
        if bytes > Linker::MAX_BYTES {
            let entry = shortened(&name);
            return Err(LinkError::TooLarge { entry, bytes });
        }
        meter.allowance.set(entry.size());
        let object = is_file.then(|| name_of_object(index, &name)).flatten();
        let object = object.map(|object| folder.join(object));
        take(&mut entry, object.as_deref()).map_err(|source| {
            let entry = shortened(&name);
            LinkError::Unpack { entry, source }
        })?;
        objects.extend(object);
        meter.allowance.set(HEADERS);
    }
    meter.allowance.set(Linker::MAX_BYTES);
    finish(archive.into_inner(), &meter).map_err(reading(path))?;
    match objects.is_empty() {
        true => Err(LinkError::NoObjects { path: path.into() }),
        false => Ok(objects),
    }
}

/// TVM compresses its archives with gzip, and names them `.tar` all the same.
fn decompressed(file: File) -> io::Result<Box<dyn Read>> {
    let mut file = BufReader::new(file);
    match file.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        true => Ok(Box::new(MultiGzDecoder::new(file))),
        false => Ok(Box::new(file)),
    }
}

/// Whether the entry is a file: if not, it is of no consequence.
fn is_file<R: Read>(entry: &Entry<'_, R>, name: &str) -> Result<bool, LinkError> {
    let refused = |what| {
        let entry = shortened(name);
        Err(LinkError::Entry { entry, what })
    };
    let is_inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(name).components().all(is_inside) {
        return refused("outside of its folder");
    }
    match entry.header().entry_type() {
        // Before there was a type for folders, they had a name like this.
        EntryType::Regular | EntryType::Continuous => Ok(!name.ends_with('/')),
        EntryType::Directory | EntryType::XGlobalHeader => Ok(false),
        EntryType::Link => refused("a hard link"),
        EntryType::Symlink => refused("a symbolic link"),
        EntryType::Char | EntryType::Block => refused("a device"),
        EntryType::Fifo => refused("a fifo"),
        _ => refused("neither a file nor a folder"),
    }
}

/// The name that an entry gets in the folder, if it is linked: of its own name there is only what lets a person
/// know it again.
fn name_of_object(index: usize, name: &str) -> Option<String> {
    let name = Path::new(name);
    let extension = name.extension()?;
    let extension = LINKED.into_iter().find(|linked| *linked == extension)?;
    let stem = name.file_stem()?.to_string_lossy();
    let is_plain = |character: &char| character.is_ascii_alphanumeric() || *character == '_';
    let stem: String = stem.chars().filter(is_plain).take(NAME).collect();
    Some(format!("{index}-{stem}.{extension}"))
}

fn shortened(name: &str) -> String {
    name.chars().take(NAME).collect()
}

/// Reads the entry to its end, and writes it to the file if there is one.
fn take<R: Read>(entry: &mut Entry<'_, R>, object: Option<&Path>) -> io::Result<()> {
    let taken = match object {
        Some(object) => io::copy(entry, &mut File::create_new(object)?)?,
        None => io::copy(entry, &mut io::sink())?,
    };
    match taken == entry.size() {
        true => Ok(()),
        false => Err(truncated()),
    }
}

/// Sees that the archive has an end: an archive that was cut between two entries has none.
fn finish(mut rest: Metered<'_>, meter: &Meter) -> io::Result<()> {
    if meter.is_at_end.get() {
        return Err(truncated());
    }
    // What comes after the end is of no interest, but the check sum of gzip stands there.
    io::copy(&mut rest, &mut io::sink())?;
    Ok(())
}

fn truncated() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the archive is truncated")
}

/// How far an archive may be read, and whether it was read to its end.
#[derive(Default)]
struct Meter {
    allowance: Cell<u64>,
    is_at_end: Cell<bool>,
}

/// An archive that is read as far as is allowed: the reader of archives takes a name of any length into memory.
struct Metered<'a> {
    from: Box<dyn Read>,
    meter: &'a Meter,
}

impl Read for Metered<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        let allowance = self.meter.allowance.get();
        if allowance == 0 {
            return Err(io::Error::other("too much that belongs to no entry"));
        }
        let read = (&mut self.from).take(allowance).read(into)?;
        self.meter.is_at_end.set(read == 0);
        self.meter.allowance.set(allowance - read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_program_is_the_only_one() {
        let path = env::var_os("PATH");
        let compiler = Linker::find_in(None, path.clone()).unwrap();
        assert!(compiler.program.is_absolute());
        let named = |name: &str| Linker::find_in(Some(name.into()), path.clone());
        assert_eq!(named("").unwrap(), compiler);
        assert!(named("cc").unwrap().program.ends_with("cc"));
        let error = named("no-such-compiler").unwrap_err();
        let expected = "no program to link with: looked on the path for no-such-compiler";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn without_a_program_all_names_are_in_the_error() {
        let empty = tempfile::tempdir().unwrap();
        let error = Linker::find_in(None, Some(empty.path().into())).unwrap_err();
        let LinkError::NoLinker { looked_for } = error else {
            panic!("{error:?}")
        };
        assert_eq!(looked_for, PROGRAMS);
    }

    #[test]
    fn the_end_of_a_long_talk_is_kept() {
        let talk = [vec![b'a'; 3 * WORDS], b"end".to_vec()].concat();
        let words = last_words(&talk[..]).unwrap();
        assert_eq!(words, talk[talk.len() - WORDS..]);
        assert_eq!(last_words(&b"short"[..]).unwrap(), b"short");
    }

    #[test]
    fn a_name_in_the_folder_is_plain() {
        let name = |name: &str| name_of_object(7, name);
        assert_eq!(name("a/lib0.o").as_deref(), Some("7-lib0.o"));
        assert_eq!(name("-Wl,x y.o").as_deref(), Some("7-Wlxy.o"));
        assert_eq!(name("größe\u{fffd}.cc").as_deref(), Some("7-gre.cc"));
        assert_eq!(name("...o").as_deref(), Some("7-.o"));
        for other in ["o", ".o", "a.h", "a.O", "a.o.txt", ""] {
            assert_eq!(name(other), None, "{other}");
        }
        let long = name(&format!("{}.o", "x".repeat(4096))).unwrap();
        assert!(long.len() < 255);
    }
}
