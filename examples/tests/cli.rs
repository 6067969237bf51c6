//! The binary as people run it: output, exit status, files.

#![cfg(feature = "flex")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use burn::backend::Flex;
use burn_multigpu_examples::checkpoint::{Checkpoint, State};
use burn_multigpu_examples::data::bundled_dir;
use burn_multigpu_examples::models::ModelKind;
use burn_multigpu_examples::numeric::{parameters, relative_difference};
use tempfile::TempDir;

const DEVICES: &str = "flex:0,1";

/// The program in an environment without our variables.
fn multigpu(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_multigpu"));
    command.args(args).env_remove("MULTIGPU_DEVICES");
    command
}

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn run(args: &[&str]) -> Ran {
    ran(multigpu(args).output().expect("the program starts"))
}

impl Ran {
    fn succeeded(self) -> Self {
        self.ended(0)
    }

    fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        self
    }

    fn said(self, text: &str) -> Self {
        assert!(
            self.stderr.contains(text),
            "no `{text}` in: {}",
            self.stderr
        );
        self
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in Unicode")
}

fn state(out: &Path) -> State {
    let file = fs::read(out.join("state.json")).expect("a state");
    serde_json::from_slice(&file).expect("a state")
}

fn values(out: &Path, kind: ModelKind) -> Vec<(String, Vec<f64>)> {
    let checkpoint = Checkpoint::open(out).expect("a folder");
    parameters(
        &checkpoint
            .load_model::<Flex>(kind, 0.0, &Default::default())
            .expect("a model"),
    )
}

/// `train` of a small MLP with dropout into a folder.
fn train(out: &Path, more: &[&str]) -> Command {
    let mut command = multigpu(&[
        "train",
        "--devices",
        DEVICES,
        "--model",
        "mlp",
        "--limit",
        "512",
    ]);
    command.args(["--out", text(out)]).args(more);
    command
}

#[test]
fn help_shows_examples_and_exit_codes() {
    let help = run(&["--help"]).succeeded();
    assert!(help.stdout.contains("multigpu train --devices cuda:0,1"));
    assert!(help.stdout.contains("130  Ctrl-C"));
    for command in ["train", "verify", "bench"] {
        let help = run(&[command, "--help"]).succeeded();
        assert!(help.stdout.contains("Examples:"), "{command}");
    }
    run(&[]).ended(2);
}

#[test]
fn a_wrong_spec_is_misuse() {
    run(&["devices", "--devices", "flex:0,,1"])
        .ended(2)
        .said("malformed device spec");
    run(&["verify", "--devices", "gpu:0"])
        .ended(2)
        .said("unknown backend `gpu`");
    let mut command = multigpu(&["bench"]);
    let output = command.env("MULTIGPU_DEVICES", "flex:x").output();
    ran(output.expect("the program starts"))
        .ended(2)
        .said("MULTIGPU_DEVICES: malformed device spec");
}

#[test]
fn what_is_not_compiled_in_is_named() {
    if !cfg!(feature = "rocm") {
        run(&["devices", "--devices", "rocm:0"])
            .ended(1)
            .said("--features rocm");
    }
}

#[test]
fn a_configuration_is_checked() {
    let dir = folder();
    let file = dir.path().join("run.toml");
    let check = |content: &str, expected: &str| {
        fs::write(&file, content).expect("writing");
        let out = dir.path().join("out");
        let output = train(&out, &["--config", text(&file)]).output();
        ran(output.expect("the program starts"))
            .ended(2)
            .said(expected);
        assert!(
            !out.exists(),
            "nothing is written before the configuration is understood"
        );
    };
    check("batchsize = 3", "unknown field `batchsize`");
    check("batchsize = 3", "run.toml");
    check("batch_size = 0", "batch-size must be at least 1, not 0");
    check("dropout = 1.5", "dropout must be at least 0 and below 1");
    run(&["train", "--config", "no/such.toml"])
        .ended(1)
        .said("no/such.toml");
    run(&["train", "--resume", "--force"]).ended(2);
}

#[test]
fn damaged_data_is_named() {
    let dir = folder();
    for entry in fs::read_dir(bundled_dir()).expect("the bundled digits") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, dir.path().join(path.file_name().expect("a name"))).expect("copying");
    }
    let labels = dir.path().join("train-labels-idx1-ubyte.gz");
    let bytes = fs::read(&labels).expect("reading");
    fs::write(&labels, &bytes[..bytes.len() / 2]).expect("writing");
    let out = dir.path().join("out");
    let train = |expected: &str| {
        let output = train(&out, &["--data", text(dir.path())]).output();
        ran(output.expect("the program starts"))
            .ended(1)
            .said(expected);
    };
    train("train-labels-idx1-ubyte.gz is damaged");
    fs::remove_file(&labels).expect("removing");
    train("no training labels in");
    let images = dir.path().join("train-images-idx3-ubyte.gz");
    fs::copy(images, &labels).expect("copying");
    train("train-labels-idx1-ubyte.gz does not hold labels");
}

#[test]
fn a_resumed_run_is_the_uninterrupted_one() {
    let (parts, whole) = (folder(), folder());
    let in_time = |mut command: Command| ran(command.output().expect("the program starts"));
    let first = in_time(train(parts.path(), &["--epochs", "1"])).succeeded();
    assert!(first.stdout.contains("test accuracy"), "{}", first.stdout);
    assert!(first.stdout.contains("model.mpk"), "{}", first.stdout);
    // Stderr is no terminal here: one line per epoch, no bar.
    assert_eq!(
        first.stderr.matches("epoch 1/1").count(),
        1,
        "{}",
        first.stderr
    );
    assert!(first.stderr.contains("items/s"), "{}", first.stderr);

    // What is there is not overwritten, and only the same run is gone on with.
    in_time(train(parts.path(), &[]))
        .ended(1)
        .said("holds a run already");
    in_time(train(parts.path(), &["--resume", "--batch-size", "32"]))
        .ended(1)
        .said("its batch size is 64, this run's is 32");
    in_time(train(parts.path(), &["--resume", "--seed", "1"]))
        .ended(1)
        .said("its seed is 42, this run's is 1");

    in_time(train(parts.path(), &["--epochs", "2", "--resume"])).succeeded();
    in_time(train(whole.path(), &["--epochs", "2"])).succeeded();
    assert_eq!(state(parts.path()), state(whole.path()));
    assert_eq!(state(parts.path()).history.len(), 2);
    assert_eq!(
        values(parts.path(), ModelKind::Mlp),
        values(whole.path(), ModelKind::Mlp)
    );
    // There is nothing left to do.
    in_time(train(parts.path(), &["--epochs", "2", "--resume"])).succeeded();
    in_time(train(
        parts.path(),
        &["--epochs", "1", "--force", "--optimizer", "sgd", "-q"],
    ))
    .succeeded();
    assert_eq!(state(parts.path()).history.len(), 1);
}

#[test]
fn either_engine_goes_on_with_a_run_of_the_other() {
    let whole = folder();
    let in_time = |mut command: Command| ran(command.output().expect("the program starts"));
    let no_dropout = ["--dropout", "0", "--epochs"];
    in_time(train(whole.path(), &[&no_dropout[..], &["2"]].concat())).succeeded();
    let (kind, loss) = (ModelKind::Mlp, state(whole.path()).history[1].loss);
    for (first, second) in [("decorator", "replica"), ("replica", "decorator")] {
        let parts = folder();
        let args = [&no_dropout[..], &["1", "--engine", first]].concat();
        in_time(train(parts.path(), &args))
            .succeeded()
            .said(&format!("engine {first}: mlp"));
        let args = [&no_dropout[..], &["2", "--engine", second, "--resume"]].concat();
        in_time(train(parts.path(), &args)).succeeded();
        let history = state(parts.path()).history;
        // The same run up to rounding, whose parameters one device loads.
        assert!(
            (history[1].loss / loss - 1.0).abs() < 1e-4,
            "{first}: {history:?}"
        );
        let difference =
            relative_difference(&values(whole.path(), kind), &values(parts.path(), kind));
        assert!(difference < 1e-3, "{first} then {second}: {difference}");
    }
}

/// With dropout as well, whose masks depend on the seed and the step alone.
#[test]
fn the_decorator_goes_on_as_if_it_had_not_been_stopped() {
    let (parts, whole) = (folder(), folder());
    let train = |out: &TempDir, args: &[&str]| {
        let args = [&["--engine", "decorator"], args].concat();
        let output = train(out.path(), &args).output();
        ran(output.expect("the program starts")).succeeded()
    };
    train(&parts, &["--epochs", "1"]);
    train(&parts, &["--epochs", "2", "--resume"]);
    train(&whole, &["--epochs", "2"]);
    assert_eq!(state(parts.path()), state(whole.path()));
    assert_eq!(
        values(parts.path(), ModelKind::Mlp),
        values(whole.path(), ModelKind::Mlp)
    );
}

#[test]
fn a_model_that_is_of_no_run_is_not_replaced() {
    let out = folder();
    let model = out.path().join("model.mpk");
    fs::write(&model, "somebody's").expect("writing");
    let train = |args: &[&str]| {
        let args = [&["--epochs", "1"], args].concat();
        ran(train(out.path(), &args)
            .output()
            .expect("the program starts"))
    };
    train(&[]).ended(1).said("model.mpk is there already");
    train(&["--resume"])
        .ended(1)
        .said("holds no training run to resume");
    assert_eq!(fs::read(&model).expect("reading"), b"somebody's");
    train(&["--force"]).succeeded();
    assert_eq!(state(out.path()).history.len(), 1);
}

/// Waits until the program says something that contains the text.
#[cfg(unix)]
fn wait_for(child: &mut std::process::Child, expected: &str) -> String {
    use std::io::{BufRead, BufReader};
    let stderr = child.stderr.take().expect("a pipe");
    let mut lines = BufReader::new(stderr).lines();
    let mut said = String::new();
    for line in &mut lines {
        let line = line.expect("text");
        said.push_str(&line);
        if line.contains(expected) {
            // Go on reading, so that the program can go on writing.
            std::thread::spawn(move || lines.for_each(drop));
            return said;
        }
    }
    panic!("`{expected}` was never said: {said}");
}

#[cfg(unix)]
fn interrupt(child: &std::process::Child) {
    let status = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(status.expect("kill starts").success());
}

#[cfg(unix)]
fn exit_code(mut child: std::process::Child) -> Option<i32> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status.code();
        }
        if begin.elapsed() > Duration::from_secs(60) {
            child.kill().expect("a child");
            panic!("the program did not stop");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_and_the_run_goes_on() {
    let out = folder();
    let args = ["--epochs", "100000", "--batch-size", "8"];
    let mut command = train(out.path(), &args);
    let mut child = command
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    wait_for(&mut child, "epoch 1/");
    interrupt(&child);
    assert_eq!(exit_code(child), Some(130));
    let stopped = state(out.path());
    assert!(stopped.global_step > 0);

    // To the end of the next epoch, and compared with a run that was never stopped.
    let epochs = (stopped.epoch + 1).to_string();
    let last = ["--epochs", &epochs, "--batch-size", "8"];
    let output = train(out.path(), &last).arg("--resume").output();
    ran(output.expect("the program starts"))
        .succeeded()
        .said("resuming after");
    let whole = folder();
    let output = train(whole.path(), &last).output();
    ran(output.expect("the program starts")).succeeded();
    assert_eq!(state(out.path()), state(whole.path()));
    assert_eq!(
        values(out.path(), ModelKind::Mlp),
        values(whole.path(), ModelKind::Mlp)
    );
}

#[test]
fn verify_compares_and_prints() {
    let args = [
        "verify",
        "--devices",
        "flex:0,1,2",
        "--batch-size",
        "50",
        "--steps",
        "5",
    ];
    let f32 = run(&[&args[..], &["--model", "cnn", "--optimizer", "sgd"]].concat()).succeeded();
    assert!(f32.stdout.contains("d gradients"), "{}", f32.stdout);
    assert!(f32.stdout.contains("rounding (l, g, p)"), "{}", f32.stdout);
    assert!(f32.stdout.contains("within the bounds"), "{}", f32.stdout);

    let f64 = [&args[..], &["--model", "mlp", "--dtype", "f64", "--json"]].concat();
    let report: serde_json::Value =
        serde_json::from_str(&run(&f64).succeeded().stdout).expect("JSON");
    assert_eq!(report["steps"].as_array().map(Vec::len), Some(5));
    assert_eq!(report["dtype"], "f64");
    let difference = report["steps"][4]["mesh"]["gradients"]
        .as_f64()
        .expect("a number");
    assert!(difference > 0.0 && difference < 1e-9, "{difference}");
    assert_eq!(report["engine"], "replica");
    assert_eq!(report["replicas_equal"], true);
    run(&["verify", "--steps", "0"])
        .ended(2)
        .said("must be at least 1");
    for lr in ["0", "-1", "inf", "NaN"] {
        run(&["verify", &format!("--lr={lr}")])
            .ended(2)
            .said("lr must be a finite number above 0");
    }
}

#[test]
fn verify_compares_the_decorator() {
    let args = [
        "verify",
        "--engine",
        "decorator",
        "--devices",
        "flex:0,1,2",
        "--batch-size",
        "50",
        "--steps",
        "3",
    ];
    for model in ["mlp", "cnn", "cnn-norm", "transformer"] {
        for dtype in ["f32", "f64"] {
            let args = [&args[..], &["--model", model, "--dtype", dtype, "--json"]].concat();
            let report: serde_json::Value =
                serde_json::from_str(&run(&args).succeeded().stdout).expect("JSON");
            assert_eq!(report["engine"], "decorator");
            assert!(report["replicas_equal"].is_null());
            assert_eq!(report["steps"].as_array().map(Vec::len), Some(3));
        }
    }
    let table = run(&args).succeeded();
    assert!(
        table.stdout.contains("engine decorator: cnn"),
        "{}",
        table.stdout
    );
    assert!(
        table.stdout.contains("within the bounds"),
        "{}",
        table.stdout
    );
}

#[test]
fn bench_prints_json_and_nothing_else() {
    let args = [
        "--devices",
        "flex:0,1",
        "--model",
        "mlp",
        "--batch-size",
        "32",
        "--steps",
        "2",
    ];
    let args = [&["bench", "--blocks", "3", "--warmup", "1"], &args[..]].concat();
    let json = run(&[&args[..], &["--json", "--per-member"]].concat()).succeeded();
    let report: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert!(report["plain"]["items_per_second"].as_f64() > Some(0.0));
    let mesh = report["mesh"].as_array().expect("a list");
    let rows: Vec<_> = mesh
        .iter()
        .map(|row| {
            (
                row["engine"].as_str(),
                row["members"].as_u64(),
                row["batch_size"].as_u64(),
            )
        })
        .collect();
    let (replica, decorator) = (Some("replica"), Some("decorator"));
    assert_eq!(
        rows,
        [
            (replica, Some(1), Some(32)),
            (replica, Some(2), Some(64)),
            (decorator, Some(1), Some(32)),
            (decorator, Some(2), Some(64)),
        ]
    );
    assert_eq!(mesh[1]["blocks"].as_array().map(Vec::len), Some(3));
    let operations = &report["operations"];
    assert!(operations["plain_microseconds"].as_f64() > Some(0.0));
    assert_eq!(operations["mesh"].as_array().map(Vec::len), Some(2));

    let table = run(&args).succeeded();
    for text in [
        "replica, mesh of 2",
        "decorator, mesh of 2",
        "efficiency",
        "cost of an operation",
    ] {
        assert!(table.stdout.contains(text), "{text}: {}", table.stdout);
    }
}

#[test]
fn devices_are_listed() {
    let some = run(&["devices", "--devices", "flex:0-2"]).succeeded();
    assert!(some.stdout.contains("flex:2"), "{}", some.stdout);
    let mut command = multigpu(&["devices"]);
    command.env("CUDA_VISIBLE_DEVICES", "7");
    let all = ran(command.output().expect("the program starts")).succeeded();
    assert!(all.stdout.contains("flex:0"), "{}", all.stdout);
    assert!(all.stdout.contains("without --devices:"), "{}", all.stdout);
    assert!(
        all.stdout.contains("CUDA_VISIBLE_DEVICES=7"),
        "{}",
        all.stdout
    );
    if cfg!(feature = "cuda") {
        assert!(all.stdout.contains("NCCL"), "{}", all.stdout);
    }
    let mut command = multigpu(&["devices"]);
    command.env("MULTIGPU_DEVICES", "flex:0,1,2");
    let named = ran(command.output().expect("the program starts")).succeeded();
    assert!(
        named.stdout.contains("without --devices: flex:0,1,2"),
        "{}",
        named.stdout
    );
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run(&["completions", shell]).succeeded().stdout;
        assert!(script.contains("multigpu"), "{shell}");
        assert!(script.contains("verify"), "{shell}");
    }
}

/// Fusion has no f64, whatever the device has.
#[cfg(all(feature = "wgpu", feature = "fusion"))]
#[test]
fn an_element_type_that_is_not_there_is_refused() {
    // Without a Vulkan driver (mesa-vulkan-drivers has a software one) that is what is said.
    let refused = run(&[
        "verify",
        "--devices",
        "wgpu:0",
        "--dtype",
        "f64",
        "--steps",
        "1",
    ])
    .ended(1);
    let expected = ["does not compute in f64", "no wgpu device", "wgpu driver"];
    assert!(
        expected.iter().any(|text| refused.stderr.contains(text)),
        "{}",
        refused.stderr
    );
}
