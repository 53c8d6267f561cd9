//! Files in the session's work directory.

use std::fs;
use std::io::Cursor;

use rpc_session::{SessionError, args};
use rpc_tests::modules::VADD;
use tempfile::TempDir;

use super::bench::{describe, open};
use super::{bisync, case};
use crate::support::{message, pattern};

/// Several pieces, and one that is not full.
const LARGE: usize = (3 << 20) + 1;

#[bisync]
#[case]
async fn bytes_are_uploaded_and_downloaded() {
    let session = open().await;
    let files = session.files();
    for nbytes in [0, 1, 7, 8, 4095, 4096, LARGE] {
        let bytes = pattern(nbytes, 1);
        files.upload("bytes", &bytes).await.unwrap();
        let back = files.download("bytes").await.unwrap();
        assert!(back == bytes, "{nbytes} bytes came back changed");
    }
}

#[bisync]
#[case]
async fn a_file_is_uploaded_under_its_name() {
    let session = open().await;
    let path = VADD.shared_library();
    let name = session.files().upload_file(&path, &mut |_, _| {}).await;
    assert_eq!(name.unwrap(), "vadd.so");
    let back = session.files().download("vadd.so").await.unwrap();
    assert!(back == fs::read(&path).unwrap(), "the library changed");
}

#[bisync]
#[case]
async fn progress_ends_at_the_total() {
    let session = open().await;
    let files = session.files();
    let bytes = pattern(LARGE, 2);
    let total = LARGE as u64;

    let mut uploaded = Vec::new();
    let mut reader = Cursor::new(bytes.clone());
    files
        .upload_from("large", total, &mut reader, &mut |done, of| {
            uploaded.push((done, of));
        })
        .await
        .unwrap();
    assert_progress(&uploaded, total);

    let mut downloaded = Vec::new();
    let mut writer = Cursor::new(Vec::new());
    let nbytes = files
        .download_to("large", &mut writer, &mut |done, of| {
            downloaded.push((done, of));
        })
        .await
        .unwrap();
    assert_eq!(nbytes, total);
    assert_progress(&downloaded, total);
    assert!(writer.into_inner() == bytes, "the bytes changed");
}

#[track_caller]
fn assert_progress(steps: &[(u64, u64)], total: u64) {
    assert!(steps.len() > 1, "{steps:?}");
    assert!(steps.iter().all(|&(_, of)| of == total), "{steps:?}");
    assert!(steps.is_sorted_by(|(a, _), (b, _)| a < b), "{steps:?}");
    assert_eq!(steps.last(), Some(&(total, total)));
}

#[bisync]
#[case]
async fn a_file_is_downloaded_whole_or_not_at_all() {
    let session = open().await;
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("here");
    let names = || {
        let entries = fs::read_dir(directory.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        names.collect::<Vec<_>>()
    };

    let error = session
        .files()
        .download_file("missing", &path, &mut |_, _| {})
        .await
        .unwrap_err();
    assert!(message(&error).contains("Cannot open"), "{error}");
    assert_eq!(names(), [""; 0]);

    let bytes = pattern(LARGE, 3);
    session.files().upload("there", &bytes).await.unwrap();
    let nbytes = session
        .files()
        .download_file("there", &path, &mut |_, _| {})
        .await
        .unwrap();
    assert_eq!(nbytes, LARGE as u64);
    assert_eq!(names(), ["here"]);
    assert!(fs::read(&path).unwrap() == bytes, "the bytes changed");
}

#[bisync]
#[case]
async fn a_removed_file_is_gone_and_a_missing_one_is_removed_already() {
    let session = open().await;
    let files = session.files();
    files.upload("file", b"content").await.unwrap();
    files.remove("file").await.unwrap();
    files.remove("file").await.unwrap();

    let error = files.download("file").await.unwrap_err();
    let said = message(&error);
    assert!(
        said.contains("Cannot open") && said.ends_with("/file"),
        "{said}"
    );
    assert!(!error.is_fatal());
}

#[bisync]
#[case]
async fn a_server_that_cannot_list_files_is_named_as_such() {
    let session = open().await;
    let error = session.files().list("").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server has no function \"tvm.rpc.server.listdir\": it cannot list files \
         (TVM's own Python server cannot)"
    );
    assert!(matches!(error, SessionError::NoFunction { .. }));
}

#[bisync]
#[case]
async fn a_reader_that_ends_early_leaves_the_session_in_step() {
    let session = open().await;
    let mut short = Cursor::new(vec![1; LARGE / 2]);
    let error = session
        .files()
        .upload_from("short", LARGE as u64, &mut short, &mut |_, _| {})
        .await
        .unwrap_err();
    assert!(matches!(error, SessionError::File { .. }), "{error:?}");
    assert!(!error.is_fatal());
    assert_eq!(describe(&session, args![1]).await, "int 1");
    // Announced with its length, so it has that length.
    let stored = session.files().download("short").await.unwrap();
    assert_eq!(stored.len(), LARGE);
}

#[bisync]
#[case]
async fn a_local_file_that_is_not_there_is_an_error_of_this_end() {
    let session = open().await;
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("missing.so");
    let error = session
        .files()
        .upload_file(&path, &mut |_, _| {})
        .await
        .unwrap_err();
    assert!(
        matches!(&error, SessionError::File { path, .. } if path.ends_with("missing.so")),
        "{error:?}"
    );
}
