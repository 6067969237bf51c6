//! The command line: what can be asked for, and the exit status that says how it went.
//!
//! Parsing only validates; what a command does is in [`crate::commands`].

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use burn_multigpu::MeshSpec;
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::commands::{self, Outcome};
use crate::config::{ConfigError, FloatKind};
use crate::engine::EngineKind;
use crate::interrupt;
use crate::models::ModelKind;
use crate::optimizer::OptimizerKind;
use crate::ui::{Ui, install_logger};

const EXIT_CODES: &str = "\
Exit status:
  0    done
  1    something failed; stderr says what
  2    the command line, the configuration or the device list cannot be understood
  3    verify: a difference is above its bound
  130  Ctrl-C: stopped after a step and saved";

const EXAMPLES: &str = "\
Examples:
  multigpu train                             the CNN on the bundled digits
  multigpu train --devices cuda:0,1          on two GPUs
  multigpu devices                           what there is to train on
  multigpu verify --devices flex:0,1,2       is it the same as on one device?
  multigpu bench --devices cuda --json       how fast is it?
  multigpu completions bash > /etc/bash_completion.d/multigpu
";

const TRAIN_EXAMPLES: &str = "\
Examples:
  multigpu train --devices cuda:0,1 --batch-size 128 --out digits
  multigpu train --devices cuda:0,1 --batch-size 128 --out digits --resume
  multigpu train --devices cuda:0,1 --engine decorator --model transformer
  multigpu train --config run.toml --epochs 10
  multigpu train --model mlp --limit 1000 --epochs 1
  multigpu train --data ~/mnist              the full MNIST files, gzip or not

The model is DIR/model.mpk, a plain Burn record that a single-device program loads.
Ctrl-C stops after the step and saves; a second one stops at once.";

const VERIFY_EXAMPLES: &str = "\
Examples:
  multigpu verify --devices flex:0,1,2 --batch-size 50
  multigpu verify --devices flex:0,1 --dtype f64 --model mlp --optimizer sgd
  multigpu verify --devices flex:0,1,2 --engine decorator --model cnn-norm
  multigpu verify --devices cuda --steps 20

Bounds: in f64 1e-9; in f32 ten times what one device differs from itself when it takes the
items of a batch in another order, or every item twice, up to the step in question.";

const BENCH_EXAMPLES: &str = "\
Examples:
  multigpu bench --devices cuda --batch-size 1024
  multigpu bench --devices cuda --batch-size 256 --per-member
  multigpu bench --devices flex:0,1 --json > speed.json";

/// Train a network over several devices that act as one.
#[derive(Debug, Parser)]
#[command(name = "multigpu", version, about, after_help = format!("{EXAMPLES}\n{EXIT_CODES}"))]
pub struct Cli {
    /// Show no progress bar and no remarks: one line per epoch, and the results
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Show what the library reports (-vv: in detail)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Train a network on handwritten digits
    #[command(after_help = TRAIN_EXAMPLES)]
    Train(Box<TrainArgs>),
    /// List the devices that there are, and how data moves between them
    Devices(DeviceArgs),
    /// Compare the mesh with one device, step by step
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Measure the throughput of both engines on 1 to N members, and what an operation costs
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(BenchArgs),
    /// Print the completions of a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
}

/// The mesh.
#[derive(Debug, Clone, Args)]
pub struct DeviceArgs {
    /// The devices: cuda (all), cuda:0,1, cuda:0-3, wgpu:0, flex:0,1 (logical CPU devices)
    /// [default: $MULTIGPU_DEVICES, else all CUDA devices, else flex:0,1]
    #[arg(short, long, value_name = "SPEC")]
    pub devices: Option<MeshSpec>,
}

/// Arguments of `train`; those that are given go over the configuration file.
#[derive(Debug, Clone, Args)]
pub struct TrainArgs {
    /// The mesh.
    #[command(flatten)]
    pub mesh: DeviceArgs,
    /// How the mesh is used: a replica on each device, or the mesh as one device of plain Burn
    /// [default: replica]
    #[arg(long)]
    pub engine: Option<EngineKind>,
    /// The network [default: cnn]
    #[arg(short, long)]
    pub model: Option<ModelKind>,
    /// Items of a step, over all devices together [default: 64]
    #[arg(short, long, value_name = "N")]
    pub batch_size: Option<usize>,
    /// How often to go through the digits [default: 6]
    #[arg(short, long, value_name = "N")]
    pub epochs: Option<usize>,
    /// Learning rate [default: 0.002 for adam, 0.1 for sgd]
    #[arg(long)]
    pub lr: Option<f64>,
    /// The optimizer [default: adam]
    #[arg(long)]
    pub optimizer: Option<OptimizerKind>,
    /// Decides parameters, order and dropout: the same seed is the same run [default: 42]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Probability with which a hidden activation is dropped [default: 0.25]
    #[arg(long, value_name = "P")]
    pub dropout: Option<f64>,
    /// Element type; f64 where the backend has it [default: f32]
    #[arg(long)]
    pub dtype: Option<FloatKind>,
    /// Folder of MNIST files in the IDX format, gzip or not [default: the bundled digits]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Train and test on the first N digits only
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Folder for the model and the checkpoint [default: multigpu-run]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with the run in the folder
    #[arg(short, long, conflicts_with = "force")]
    pub resume: bool,
    /// Replace the run in the folder
    #[arg(long)]
    pub force: bool,
    /// A TOML file with any of these settings (batch_size = 64, ...); flags go over it
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Arguments of `verify`.
#[derive(Debug, Clone, Args)]
pub struct VerifyArgs {
    /// The mesh.
    #[command(flatten)]
    pub mesh: DeviceArgs,
    /// How the mesh is used: a replica on each device, or the mesh as one device of plain Burn
    #[arg(long, default_value_t)]
    pub engine: EngineKind,
    /// The network
    #[arg(short, long, default_value_t)]
    pub model: ModelKind,
    /// The optimizer
    #[arg(long, default_value_t)]
    pub optimizer: OptimizerKind,
    /// Items of a step, over all devices together
    #[arg(short, long, value_name = "N", default_value_t = 64, value_parser = at_least_one)]
    pub batch_size: usize,
    /// How many steps
    #[arg(short, long, value_name = "N", default_value_t = 100, value_parser = at_least_one)]
    pub steps: usize,
    /// Learning rate [default: 0.0004 for adam, 0.02 for sgd]
    #[arg(long)]
    pub lr: Option<f64>,
    /// Decides parameters and order
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
    /// Element type; f64 where the backend has it
    #[arg(long, default_value_t)]
    pub dtype: FloatKind,
    /// Folder of MNIST files [default: the bundled digits]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Use the first N digits only
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub limit: Option<usize>,
    /// Print every number as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench`.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// The mesh.
    #[command(flatten)]
    pub mesh: DeviceArgs,
    /// The network
    #[arg(short, long, default_value_t)]
    pub model: ModelKind,
    /// The optimizer
    #[arg(long, default_value_t)]
    pub optimizer: OptimizerKind,
    /// Items of a step, over all devices together
    #[arg(short, long, value_name = "N", default_value_t = 256, value_parser = at_least_one)]
    pub batch_size: usize,
    /// Let the batch grow with the mesh: --batch-size is that of each member
    #[arg(long)]
    pub per_member: bool,
    /// Steps of a timed block
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = at_least_one)]
    pub steps: usize,
    /// Timed blocks, of which the median counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least_one)]
    pub blocks: usize,
    /// Steps before the first block
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub warmup: usize,
    /// Element type; f64 where the backend has it
    #[arg(long, default_value_t)]
    pub dtype: FloatKind,
    /// Folder of MNIST files [default: the bundled digits]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(value) => Ok(value),
        Err(_) => Err("is not a whole number".to_owned()),
    }
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    install_logger(cli.verbose);
    let ui = Ui::new(cli.quiet);
    let result = match cli.command {
        Command::Train(args) => commands::train(*args, ui),
        Command::Devices(args) => commands::devices(args, ui),
        Command::Verify(args) => commands::verify(args, ui),
        Command::Bench(args) => commands::bench(args, ui),
        Command::Completions { shell } => completions(shell),
    };
    match result {
        Ok(outcome) => ExitCode::from(match outcome {
            Outcome::Done => 0,
            Outcome::AboveBound => 3,
            Outcome::Interrupted => interrupt::EXIT_CODE,
        }),
        Err(error) => {
            ui.line(format_args!("error: {}", message(&error)));
            ExitCode::from(if is_misuse(&error) { 2 } else { 1 })
        }
    }
}

fn completions(shell: Shell) -> anyhow::Result<Outcome> {
    // clap_complete panics when it cannot write, as to a pipe that has been closed.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "multigpu", &mut script);
    std::io::stdout().write_all(&script).ok();
    Ok(Outcome::Done)
}

/// The error and its causes, without those that say what was said before.
fn message(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Whether the user asked for something that cannot be understood, other than something that failed.
fn is_misuse(error: &anyhow::Error) -> bool {
    use burn_multigpu::Error;
    let spec = error.downcast_ref::<Error>().is_some_and(|error| {
        matches!(
            error,
            Error::MalformedSpec { .. }
                | Error::EmptySpec { .. }
                | Error::UnknownBackend { .. }
                | Error::MixedBackends { .. }
                | Error::Environment { .. }
        )
    });
    let config = error
        .downcast_ref::<ConfigError>()
        .is_some_and(|error| !matches!(error, ConfigError::Read { .. }));
    spec || config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn specs_are_read_when_the_command_line_is() {
        let parse = |spec: &str| Cli::try_parse_from(["multigpu", "devices", "-d", spec]);
        assert!(parse("cuda:0-3").is_ok());
        let message = parse("cuda:0,,1")
            .expect_err("a malformed spec")
            .to_string();
        assert!(message.contains("malformed device spec"), "{message}");
    }

    #[test]
    fn causes_are_said_once() {
        let inner = anyhow::anyhow!("no space left");
        let error = inner.context("cannot write model.mpk").context("not saved");
        assert_eq!(
            message(&error),
            "not saved: cannot write model.mpk: no space left"
        );
        let error = anyhow::anyhow!("boom").context("it went boom");
        assert_eq!(message(&error), "it went boom");
    }

    #[test]
    fn misuse_is_told_from_failure() {
        let spec = "nonsense:".parse::<MeshSpec>().expect_err("no spec");
        assert!(is_misuse(
            &anyhow::Error::from(spec).context("in the configuration")
        ));
        let value = ConfigError::Value {
            key: "lr",
            expected: "a number",
            found: "x".into(),
        };
        assert!(is_misuse(&value.into()));
        assert!(!is_misuse(&anyhow::anyhow!("the disk is full")));
    }
}
