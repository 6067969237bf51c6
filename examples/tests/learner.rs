//! The example `learner` as a process: trained, killed, resumed.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The example beside this test in cargo's folder.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().join("../examples/learner")
}

fn command(out: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(example());
    if !args.contains(&"--limit") {
        command.args(["--limit", "1200"]);
    }
    command
        .args(["--devices", "flex:0,1", "--batch-size", "50"])
        .args(["--out".as_ref(), out.as_os_str()])
        .args(args)
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(out: &Path, args: &[&str]) -> Output {
    let output = command(out, args).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    output
}

/// Every digit of the losses of the last epoch and of the evaluation. The file of the model has
/// parameter ids in it, which every process draws anew.
fn losses(out: &Path) -> Vec<String> {
    ["train/epoch-4", "valid/epoch-4", "test/test/epoch-1"]
        .map(|dir| std::fs::read_to_string(out.join(dir).join("Loss.log")).unwrap())
        .to_vec()
}

/// Two devices, metrics, checkpoints, clipping, a scheduler, evaluation; and a kill -9 in the third
/// epoch, after which the losses are those of an uninterrupted training, to the last digit.
#[test]
fn killed_and_resumed_is_uninterrupted() {
    let whole = tempfile::tempdir().unwrap();
    let output = run(whole.path(), &["--epochs", "4"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in ["flex:1", "Accuracy", "Learning Rate", "model.mpk"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(whole.path().join("valid/epoch-4/Loss.log").is_file());
    assert!(
        whole.path().join("test").is_dir(),
        "the evaluation's metrics"
    );

    let dir = tempfile::tempdir().unwrap();
    let mut child = command(dir.path(), &["--epochs", "4"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let third = dir.path().join("train/epoch-3/Loss.log");
    let deadline = Instant::now() + Duration::from_secs(120);
    while !third.is_file() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(third.is_file(), "it came to its third epoch");
    assert!(!dir.path().join("model.mpk").exists(), "and not to its end");

    let output = run(dir.path(), &["--epochs", "4", "--resume"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("resuming after epoch "), "{text}");
    assert_eq!(losses(whole.path()), losses(dir.path()));
}

/// A small network on very few digits soon gets no better on those that it does not see.
#[test]
fn early_stopping_ends_the_training() {
    let dir = tempfile::tempdir().unwrap();
    run(
        dir.path(),
        &[
            "--epochs",
            "60",
            "--patience",
            "1",
            "--model",
            "mlp",
            "--limit",
            "60",
        ],
    );
    let last = (1..=60).rev().find(|epoch| {
        let epoch = format!("train/epoch-{epoch}");
        dir.path().join(epoch).is_dir()
    });
    assert!(last.unwrap() < 60, "it went on to the end");
}

#[test]
fn what_cannot_be_resumed_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let output = command(dir.path(), &["--resume"]).output().unwrap();
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("holds no checkpoint to resume"), "{error}");
}
