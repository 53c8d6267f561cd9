//! Object files and archives become shared libraries, by the compiler of this machine.
#![allow(clippy::unwrap_used)]

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use libloading::{Library, Symbol};
use rpc_runtime::{LinkError, Linker};
use tar::{Builder, EntryType, Header};

const ANSWER: &str = "int answer(void) { return 42; }";

/// A folder with what is linked, and an empty one for what comes of it.
struct Bench {
    input: tempfile::TempDir,
    output: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self {
            input: tempfile::tempdir().unwrap(),
            output: tempfile::tempdir().unwrap(),
        }
    }

    /// The object file of a text in C.
    fn object(&self, text: &str) -> Vec<u8> {
        let source = self.input.path().join("source.c");
        let object = self.input.path().join("source.o");
        fs::write(&source, text).unwrap();
        let mut compiler = Command::new("cc");
        compiler
            .args(["-c", "-fPIC", "-o"])
            .args([&object, &source]);
        assert!(compiler.status().unwrap().success());
        fs::read(object).unwrap()
    }

    fn target(&self) -> PathBuf {
        self.output.path().join("module.so")
    }

    fn link(&self, name: &str, content: &[u8]) -> Result<(), LinkError> {
        let source = self.input.path().join(name);
        fs::write(&source, content).unwrap();
        Linker::find()?.shared_library(&source, &self.target())
    }

    /// Links an archive, and calls a function of the library.
    fn call(&self, archive: &[u8], function: &str) -> i32 {
        self.link("module.tar", archive).unwrap();
        assert_eq!(self.left(), ["module.so"]);
        call(&self.target(), function)
    }

    /// The error, with all its sources, of an archive that leaves nothing.
    fn error(&self, archive: &[u8]) -> String {
        let error = self.link("module.tar", archive).unwrap_err();
        assert_eq!(self.left(), [""; 0]);
        chain(&error)
    }

    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.output.path()).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        entries.map(|entry| name(entry.unwrap())).collect()
    }
}

fn chain(error: &(dyn Error + 'static)) -> String {
    let texts = std::iter::successors(Some(error), |&error| error.source());
    texts
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

fn call(library: &Path, function: &str) -> i32 {
    // SAFETY: the library has no code that runs when it is loaded, and its functions are of this type.
    unsafe {
        let library = Library::new(library).unwrap();
        let function: Symbol<'_, unsafe extern "C" fn() -> i32> =
            library.get(function.as_bytes()).unwrap();
        function()
    }
}

/// A header of a file with this name, whatever the name.
fn header(name: &[u8], size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

fn of_type(kind: EntryType, name: &[u8], size: u64) -> Header {
    let mut header = header(name, size);
    header.set_entry_type(kind);
    // Of a sparse file; of no meaning to the others.
    header.as_gnu_mut().unwrap().realsize = *b"00000000000\0";
    header.set_cksum();
    header
}

fn archive(entries: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, content) in entries {
        let header = header(name, content.len() as u64);
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn archive_of(header: &Header) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    builder.append(header, &[][..]).unwrap();
    builder.into_inner().unwrap()
}

fn zipped(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn an_object_file_is_linked_alone() {
    let bench = Bench::new();
    // What is there already is replaced, and undefined symbols are for the loader.
    fs::write(bench.target(), "old").unwrap();
    let text = "int later(void); int not_now(void) { return later(); }";
    bench.link("module.o", &bench.object(text)).unwrap();
    bench.link("-odd,name.o", &bench.object(ANSWER)).unwrap();
    assert_eq!(bench.left(), ["module.so"]);
    assert_eq!(call(&bench.target(), "answer"), 42);
}

#[test]
fn the_objects_of_an_archive_find_each_other() {
    let bench = Bench::new();
    let outer = "int answer(void); int next(void) { return answer() + 1; }";
    let (inner, outer) = (bench.object(ANSWER), bench.object(outer));
    let same_name = archive(&[(b"./a/lib0.o", &inner), (b"./b/lib0.o", &outer)]);
    assert_eq!(bench.call(&same_name, "next"), 43);
    let twice = archive(&[(b"lib0.o", &inner), (b"lib0.o", &outer)]);
    assert_eq!(bench.call(&twice, "next"), 43);
}

#[test]
fn an_archive_is_compressed_or_not() {
    let bench = Bench::new();
    let plain = archive(&[(b"lib0.o", &bench.object(ANSWER))]);
    assert_eq!(bench.call(&zipped(&plain), "answer"), 42);
    // As one of many members, of which gzip makes one text.
    let (first, second) = plain.split_at(700);
    let parts = [zipped(first), zipped(second)].concat();
    assert_eq!(bench.call(&parts, "answer"), 42);
}

#[test]
fn names_are_of_no_consequence() {
    let bench = Bench::new();
    let object = bench.object(ANSWER);
    let long = format!("{}/{}.o", "folder".repeat(50), "file".repeat(80));
    let mut builder = Builder::new(Vec::new());
    builder
        .append_data(&mut header(b"", object.len() as u64), long, &object[..])
        .unwrap();
    assert_eq!(bench.call(&builder.into_inner().unwrap(), "answer"), 42);
    let odd: [&[u8]; 6] = [
        b"-Wl,--version.o",
        b"--help.o",
        b"@lib.o",
        b"gr\xf6\xdfe \xff.o",
        b"a\nb;c'd\"$(e).o",
        b".o.o",
    ];
    for name in odd {
        assert_eq!(bench.call(&archive(&[(name, &object)]), "answer"), 42);
    }
}

#[test]
fn sources_are_compiled_and_other_files_ignored() {
    let bench = Bench::new();
    let other = b"int answer(void); int other(void) { return answer() - 1; }";
    let c = format!(
        "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n{}\n#ifdef __cplusplus\n}}\n#endif\n",
        String::from_utf8_lossy(other)
    );
    let cpp = "extern \"C\" { int answer(); int third() { return answer() / 2; } }";
    let entries: [(&[u8], &[u8]); 6] = [
        (b"README", b"not C"),
        (b"src/devc.c", c.as_bytes()),
        (b"src/devc.cc", cpp.as_bytes()),
        (b"lib0.o", &bench.object(ANSWER)),
        (b"lib0.o.txt", b"no object"),
        (b"folder.o/", b""),
    ];
    assert_eq!(bench.call(&archive(&entries), "other"), 41);
    assert_eq!(call(&bench.target(), "third"), 21);
}

#[test]
fn folders_and_remarks_are_passed_over() {
    let bench = Bench::new();
    let object = bench.object(ANSWER);
    let mut builder = Builder::new(Vec::new());
    for header in [
        of_type(EntryType::Directory, b"./", 0),
        of_type(EntryType::XGlobalHeader, b"pax_global_header", 0),
    ] {
        builder.append(&header, &[][..]).unwrap();
    }
    builder
        .append(&header(b"./lib0.o", object.len() as u64), &object[..])
        .unwrap();
    assert_eq!(bench.call(&builder.into_inner().unwrap(), "answer"), 42);
}

#[test]
fn what_is_neither_file_nor_folder_is_refused() {
    let bench = Bench::new();
    let kinds = [
        (EntryType::Link, "a hard link"),
        (EntryType::Symlink, "a symbolic link"),
        (EntryType::Char, "a device"),
        (EntryType::Block, "a device"),
        (EntryType::Fifo, "a fifo"),
        (EntryType::GNUSparse, "neither a file nor a folder"),
        (EntryType::new(b'V'), "neither a file nor a folder"),
    ];
    for (kind, what) in kinds {
        for name in ["lib0.o", "README"] {
            let error = bench.error(&archive_of(&of_type(kind, name.as_bytes(), 0)));
            let expected = format!("the entry {name:?} of the archive is {what}");
            assert_eq!(error, expected);
        }
    }
}

#[test]
fn names_outside_of_the_folder_are_refused() {
    let bench = Bench::new();
    for name in [
        "../lib0.o",
        "a/../../lib0.o",
        "/tmp/lib0.o",
        "..",
        "/README",
    ] {
        let error = bench.error(&archive(&[(name.as_bytes(), b"")]));
        let expected = format!("the entry {name:?} of the archive is outside of its folder");
        assert_eq!(error, expected);
    }
}

#[test]
fn too_much_is_refused_before_it_is_taken() {
    let bench = Bench::new();
    let large = archive_of(&header(b"lib0.o", Linker::MAX_BYTES + 1));
    let error = bench.error(&large);
    let expected =
        "the archive up to its entry \"lib0.o\" holds 4294967297 bytes, more than 4294967296";
    assert_eq!(error, expected);
    // The sum counts, and so does what is not unpacked.
    let mut builder = Builder::new(Vec::new());
    builder.append(&header(b"README", 1), &b"x"[..]).unwrap();
    let full = header(b"lib0.o", Linker::MAX_BYTES);
    builder.append(&full, &[][..]).unwrap();
    assert_eq!(bench.error(&builder.into_inner().unwrap()), expected);
    for (size, what) in [(1 << 62, "more than 4294967296"), (u64::MAX, "overflow")] {
        let error = bench.error(&archive_of(&header(b"README", size)));
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn too_many_entries_are_refused() {
    let bench = Bench::new();
    let many = vec![(&b"README"[..], &b""[..]); Linker::MAX_ENTRIES];
    let error = bench.error(&archive(&many));
    assert!(error.starts_with("there is no object file in "), "{error}");
    let more = vec![(&b"README"[..], &b""[..]); Linker::MAX_ENTRIES + 1];
    let error = bench.error(&archive(&more));
    assert_eq!(error, "the archive has more than 4096 entries");
}

#[test]
fn a_name_without_end_is_refused() {
    let bench = Bench::new();
    for kind in [EntryType::GNULongName, EntryType::XHeader] {
        let mut builder = Builder::new(Vec::new());
        let name = vec![b'x'; 1 << 20];
        builder
            .append(&of_type(kind, b"long", name.len() as u64), &name[..])
            .unwrap();
        builder.append(&header(b"lib0.o", 0), &[][..]).unwrap();
        let error = bench.error(&builder.into_inner().unwrap());
        assert!(
            error.ends_with("too much that belongs to no entry"),
            "{error}"
        );
    }
}

#[test]
fn a_truncated_archive_is_an_error() {
    let bench = Bench::new();
    let object = bench.object(ANSWER);
    let whole = archive(&[(b"lib0.o", &object)]);
    let end = whole.len() - 1024;
    // Within the header, the content, what fills the block, and between the entry and the end.
    for length in [0, 100, 512, 600, 512 + object.len(), end - 1, end] {
        let error = bench.error(&whole[..length]);
        let is_named = ["truncated", "EOF", "entire block"];
        assert!(
            is_named.iter().any(|n| error.contains(n)),
            "{length}: {error}"
        );
    }
    let zipped = zipped(&whole);
    for length in [1, 5, 100, zipped.len() - 8, zipped.len() - 1] {
        assert!(!bench.error(&zipped[..length]).is_empty());
    }
}

#[test]
fn a_damaged_archive_is_an_error() {
    let bench = Bench::new();
    let error = bench.error(&[b'x'; 2048]);
    assert!(error.contains("cannot read "), "{error}");
    let mut zipped = zipped(&archive(&[(b"lib0.o", &bench.object(ANSWER))]));
    let check_sum = zipped.len() - 8;
    zipped[check_sum] ^= 1;
    let error = bench.error(&zipped);
    assert!(error.contains("checksum"), "{error}");
}

#[test]
fn an_archive_without_objects_is_an_error() {
    let bench = Bench::new();
    for entries in [&[][..], &[(&b"README"[..], &b"no object"[..])]] {
        let error = bench.error(&archive(entries));
        assert!(error.starts_with("there is no object file in "), "{error}");
    }
}

#[test]
fn the_words_of_the_linker_are_in_the_error() {
    let bench = Bench::new();
    let garbage = [7; 3000];
    let error = bench.error(&archive(&[(b"a/lib0.o", &garbage)]));
    assert!(error.contains("failed (exit status: 1)"), "{error}");
    assert!(error.contains("0-lib0.o"), "{error}");
    let error = bench.link("module.o", &garbage).unwrap_err();
    assert!(error.to_string().contains("module.o"), "{error}");
    // A compiler that has much to say is cut short.
    let wrong = "#error wrong\n".repeat(2000);
    let error = bench.link("m.tar", &archive(&[(b"devc.c", wrong.as_bytes())]));
    let Err(LinkError::Failed { words, .. }) = error else {
        panic!("{error:?}")
    };
    assert_eq!(words.len(), 4096);
    assert_eq!(bench.left(), [""; 0]);
}

#[test]
fn what_is_there_stays_when_the_linker_fails() {
    let bench = Bench::new();
    fs::write(bench.target(), "old").unwrap();
    bench.link("module.o", b"garbage").unwrap_err();
    assert_eq!(bench.left(), ["module.so"]);
    assert_eq!(fs::read(bench.target()).unwrap(), b"old");
}

#[test]
fn a_linker_that_is_not_there_is_an_error() {
    let bench = Bench::new();
    let source = bench.input.path().join("module.o");
    fs::write(&source, bench.object(ANSWER)).unwrap();
    let program = bench.input.path().join("no-linker");
    let linker = Linker::with_program(&program);
    let error = linker.shared_library(&source, &bench.target()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot run {}", program.display())
    );
    assert!(error.source().is_some());
    assert_eq!(bench.left(), [""; 0]);
}

#[test]
fn other_files_and_places_are_errors() {
    let bench = Bench::new();
    for name in ["module.so", "module", "module.tar.gz", "module.O", ".o"] {
        let error = bench.link(name, b"").unwrap_err();
        assert!(matches!(error, LinkError::Extension { .. }), "{error}");
    }
    let linker = Linker::find().unwrap();
    for name in ["none.o", "none.tar"] {
        let missing = bench.input.path().join(name);
        let error = linker
            .shared_library(&missing, &bench.target())
            .unwrap_err();
        assert!(matches!(error, LinkError::Read { .. }), "{error}");
    }
    let source = bench.input.path().join("module.o");
    fs::write(&source, bench.object(ANSWER)).unwrap();
    let nowhere = bench.output.path().join("none/module.so");
    let error = linker.shared_library(&source, &nowhere).unwrap_err();
    assert!(matches!(error, LinkError::Write { .. }), "{error}");
    assert_eq!(bench.left(), [""; 0]);
}
