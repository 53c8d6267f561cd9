//! The reference's client in sessions of our server.

use super::*;

/// Runs a case on a server of ours without a tracker.
#[track_caller]
fn run(case: &str) {
    let server = Server::start("x1", &[]);
    client(
        case,
        &["--server", &server.addr().to_string(), "--key", "x1"],
    );
}

macro_rules! cases {
    ($($test:ident: $case:literal;)*) => {$(
        #[test]
        fn $test() {
            run($case);
        }
    )*};
}

cases! {
    every_value_comes_back_as_it_went: "values";
    functions_are_found_called_and_returned: "functions";
    exceptions_have_their_text: "exceptions";
    tensors_are_copied_exactly: "tensors";
    a_returned_tensor_is_shared: "returned_tensors";
    owners_of_a_tensor_are_counted: "owners_are_counted";
    files_are_exchanged: "files";
    files_may_lie_in_folders: "folders";
    files_outside_of_the_work_directory_are_refused: "file_names_stay_inside";
    devices_say_whether_they_exist: "devices";
    the_system_library_runs_and_is_timed: "system_library";
    a_session_follows_the_other: "one_session_after_the_other";
    an_unknown_constructor_is_named: "unknown_constructor";
    a_wrong_key_is_refused: "wrong_key";
    a_session_ends_at_its_time_limit: "session_timeout_direct";
}
