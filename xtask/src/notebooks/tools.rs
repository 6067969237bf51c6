//! Python, nbclient and the kernel: what there is, what is missing, how to get it.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a notebook. Of the packages of Jupyter this is all that running without a browser needs.
const PACKAGE: &str = "nbclient>=0.10,<1";
const EXECUTE: &str = include_str!("execute.py");

/// What runs notebooks, all of it below `target/notebooks`.
pub(super) struct Tools {
    /// The interpreter that has nbclient.
    python: PathBuf,
    script: PathBuf,
    /// Where Jupyter finds the kernel.
    jupyter: PathBuf,
    /// Where cells are compiled, with what they depend on: kept from notebook to notebook.
    evcxr: PathBuf,
    folder: PathBuf,
}

impl Tools {
    /// Finds the kernel and Python, and makes the rest.
    pub(super) fn find(root: &Path) -> Result<Self> {
        let folder = root.join("target/notebooks");
        let make = |name: &str| -> Result<PathBuf> {
            let path = folder.join(name);
            fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
            Ok(path)
        };
        let tools = Self {
            python: folder.join("venv/bin/python"),
            script: make("")?.join("execute.py"),
            jupyter: make("jupyter")?,
            evcxr: make("evcxr")?,
            folder: folder.clone(),
        };
        tools.install_kernel()?;
        tools.install_client()?;
        fs::write(&tools.script, EXECUTE).context("cannot write execute.py")?;
        // The versions that everything else is tested with.
        fs::copy(root.join("Cargo.lock"), tools.evcxr.join("Cargo.lock"))
            .context("cannot copy Cargo.lock")?;
        Ok(tools)
    }

    fn install_kernel(&self) -> Result<()> {
        let mut install = Command::new("evcxr_jupyter");
        install.arg("--install").env("JUPYTER_PATH", &self.jupyter);
        match install.output() {
            Err(_) => bail!(
                "evcxr_jupyter, the kernel of Rust notebooks, is not in the PATH. Install it (some \
                 seven minutes on two cores; without --locked it does not compile):\n  \
                 cargo install evcxr_jupyter --locked"
            ),
            Ok(output) if !output.status.success() => bail!(
                "evcxr_jupyter cannot register its kernel: {}",
                String::from_utf8_lossy(&output.stderr)
            ),
            Ok(_) => Ok(()),
        }
    }

    fn install_client(&self) -> Result<()> {
        let ready = Command::new(&self.python)
            .args(["-c", "import nbclient"])
            .output();
        if ready.is_ok_and(|output| output.status.success()) {
            return Ok(());
        }
        let venv = self.folder.join("venv");
        let mut make = Command::new("python3");
        make.args(["-m", "venv", "--clear"]).arg(&venv);
        match make.output() {
            Err(_) => bail!(
                "python3, which runs Jupyter, is not in the PATH. Install it (Debian):\n  \
                 apt-get install python3 python3-venv"
            ),
            Ok(output) if !output.status.success() => bail!(
                "python3 makes no virtual environment; its module venv is a package of its own. \
                 Install it (Debian):\n  apt-get install python3-venv\n{}",
                String::from_utf8_lossy(&output.stdout)
            ),
            Ok(_) => {}
        }
        let mut pip = Command::new(&self.python);
        pip.args(["-m", "pip", "install", "--quiet", PACKAGE]);
        let status = pip.status().context("pip could not be started")?;
        if !status.success() {
            bail!(
                "pip cannot install `{PACKAGE}` into {}: {status}",
                venv.display()
            );
        }
        Ok(())
    }

    /// Runs a notebook in a folder; returns the file that holds it with its outputs.
    pub(super) fn execute(&self, notebook: &Path, folder: &Path) -> Result<PathBuf> {
        let name = notebook.file_name().context("a notebook has a name")?;
        let result = self.folder.join(name);
        let mut python = Command::new(&self.python);
        python
            .arg(&self.script)
            .arg(notebook)
            .arg(folder)
            .arg(&result);
        python.env("JUPYTER_PATH", &self.jupyter);
        python.env("EVCXR_TMPDIR", &self.evcxr);
        let status = python.status().context("python could not be started")?;
        if !status.success() {
            bail!("{} could not be run: {status}", notebook.display());
        }
        Ok(result)
    }
}
