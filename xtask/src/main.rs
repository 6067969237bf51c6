//! The project's own commands: `cargo xtask check`, `cargo xtask test`, `cargo xtask book`,
//! `cargo xtask notebooks`, `cargo xtask gpu`.
//!
//! Everything is built with the release profile, so that Burn is built once.

mod book;
mod notebooks;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use std::ffi::OsStr;
use std::process::Command;
use std::time::Instant;

/// Checks, tests and benchmarks of burn-multigpu.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Formatting, links, lints, documentation and licences; the cheapest first.
    Check,
    /// All tests that run without a GPU; the software Vulkan device stands in for one
    /// (Debian: apt-get install mesa-vulkan-drivers).
    Test,
    /// Runs the notebooks in examples/notebooks top to bottom and compares what they print with what
    /// they were saved with.
    Notebooks {
        /// Save what they print now.
        #[arg(long)]
        bless: bool,
        /// Only those whose name has this in it.
        #[arg(long)]
        only: Option<String>,
    },
    /// The book: checks its links and those of the READMEs, and builds it with mdBook. Its code is
    /// part of the tests.
    Book {
        /// Only check the links.
        #[arg(long)]
        links: bool,
    },
    /// On a machine with an NVIDIA card: correctness on `cuda:0` and `cuda:0,0`, then throughput.
    Gpu {
        /// Only build what the run needs, on a machine without a card.
        #[arg(long)]
        build: bool,
        /// Only run what was built.
        #[arg(long, conflicts_with = "build")]
        run: bool,
    },
}

fn main() -> Result<()> {
    match Cli::parse().task {
        Task::Check => check(),
        Task::Test => test(),
        Task::Notebooks { bless, only } => notebooks::notebooks(bless, only.as_deref()),
        Task::Book { links } => book::book(links),
        Task::Gpu { build, run } => {
            if !run {
                gpu_build()?;
            }
            if !build {
                gpu_run()?;
            }
            Ok(())
        }
    }
}

fn check() -> Result<()> {
    cargo(["fmt", "--all", "--check"])?;
    book::book(true)?;
    cargo([
        "clippy",
        "--release",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ])?;
    let mut doc = command([
        "doc",
        "--release",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ]);
    // Links to private items are wanted: the pages are for those who work on the crate, too.
    doc.env(
        "RUSTDOCFLAGS",
        "-D warnings -A rustdoc::private-intra-doc-links",
    );
    run(doc)?;
    if Command::new("cargo-deny")
        .arg("--version")
        .output()
        .is_err()
    {
        cargo(["install", "cargo-deny", "--locked", "--quiet"])?;
    }
    cargo([
        "deny",
        "--workspace",
        "check",
        "licenses",
        "bans",
        "sources",
    ])
}

fn test() -> Result<()> {
    cargo(["test", "--release", "--workspace", "--no-fail-fast"])
}

fn gpu_build() -> Result<()> {
    cargo(["build", "--release", "--bin", "multigpu"])?;
    cargo([
        "test",
        "--release",
        "-p",
        "burn-multigpu-tests",
        "--features",
        "gpu",
        "--test",
        "suite",
        "--no-run",
    ])
}

fn gpu_run() -> Result<()> {
    let suite = newest("target/release/deps", "suite-")?;
    let mut tests = Command::new(suite);
    tests.args(["cuda::", "--test-threads=1"]);
    run(tests)?;
    for args in [
        &["devices"][..],
        &["verify", "--devices", "cuda:0", "--steps", "50"],
        &[
            "verify",
            "--devices",
            "cuda:0,0",
            "--model",
            "cnn",
            "--steps",
            "50",
        ],
        &[
            "verify",
            "--engine",
            "decorator",
            "--devices",
            "cuda:0,0",
            "--model",
            "transformer",
            "--steps",
            "50",
        ],
        &[
            "train",
            "--devices",
            "cuda:0,0",
            "--epochs",
            "2",
            "--out",
            "target/gpu-run",
        ],
        &["bench", "--devices", "cuda:0,0", "--model", "cnn"],
    ] {
        let mut multigpu = Command::new("target/release/multigpu");
        multigpu.args(args);
        run(multigpu)?;
    }
    Ok(())
}

/// The newest file in a folder whose name starts like this and has no ending.
fn newest(folder: &str, start: &str) -> Result<std::path::PathBuf> {
    std::fs::read_dir(folder)
        .with_context(|| format!("{folder} is missing: run `cargo xtask gpu --build` first"))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            name.starts_with(start) && path.extension().is_none()
        })
        .max_by_key(|path| path.metadata().and_then(|meta| meta.modified()).ok())
        .with_context(|| format!("no {start}* in {folder}: run `cargo xtask gpu --build` first"))
}

fn cargo<const N: usize>(args: [&str; N]) -> Result<()> {
    run(command(args))
}

fn command<const N: usize>(args: [&str; N]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args);
    command
}

fn run(mut command: Command) -> Result<()> {
    let line = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ");
    eprintln!("\n> {line}");
    let start = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("`{line}` could not be started"))?;
    eprintln!("> {:.0} s", start.elapsed().as_secs_f64());
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}
