//! The command line of xtask. With an integration test cargo also builds the program itself beside the unit tests, with
//! the same features: `make test` runs that one (`target/debug/xtask`) instead of compiling the crates a second time.

use std::process::{Command, Output};

fn xtask(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(words).output().expect("xtask runs")
}

#[test]
fn an_unknown_command_has_status_2_and_the_usage() {
    for words in [&[][..], &["no-such-command"], &["generate", "--no-such-option"]] {
        let ended = xtask(words);
        assert_eq!(ended.status.code(), Some(2), "{words:?}");
        assert!(ended.stdout.is_empty(), "{words:?}");
        let message = String::from_utf8(ended.stderr).expect("UTF-8");
        assert!(message.contains("generate"), "{words:?}: {message}");
    }
}
