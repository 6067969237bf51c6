//! `multigpu devices`

use burn_multigpu::{Mesh, MeshSpec};

use super::Outcome;
use crate::backend::{Task, TrainBackend, compiled, default_spec, dispatch};
use crate::cli::DeviceArgs;
use crate::ui::Ui;

/// Lists the devices of a spec, or of every backend that this program was built with.
///
/// # Errors
///
/// When a spec was given and cannot be opened. Backends that were not asked for and are not there
/// are listed as such.
pub fn devices(args: DeviceArgs, ui: Ui) -> anyhow::Result<Outcome> {
    if let Some(spec) = args.devices {
        ui.result(dispatch(&spec, Describe)?);
    } else {
        for name in compiled() {
            let spec: MeshSpec = name.parse()?;
            ui.result(name);
            match dispatch(&spec, Describe) {
                Ok(text) => ui.result(indented(&text)),
                Err(error) => ui.result(indented(&error.to_string())),
            }
            ui.result("");
        }
        environment(ui);
    }
    Ok(Outcome::Done)
}

struct Describe;

impl Task for Describe {
    type Output = String;

    fn run<B: TrainBackend>(self, spec: &MeshSpec) -> anyhow::Result<String> {
        let mesh = Mesh::<B::InnerBackend>::open_spec(spec)?;
        Ok(format!(
            "{mesh}\n{}",
            mesh.transfers().to_string().trim_end()
        ))
    }
}

/// What decides which devices there are and which are taken.
fn environment(ui: Ui) {
    #[cfg(feature = "cuda")]
    {
        let found = |there| if there { "found" } else { "not found" };
        let libraries = burn_multigpu::mesh::cuda_libraries();
        ui.result(format_args!(
            "CUDA libraries: driver {}, NVRTC {}, NCCL {}",
            found(libraries.driver),
            found(libraries.nvrtc),
            found(libraries.nccl)
        ));
    }
    let variables = [
        "CUDA_VISIBLE_DEVICES",
        "CUDA_DEVICE_ORDER",
        "HIP_VISIBLE_DEVICES",
        burn_multigpu::mesh::VARIABLE,
    ];
    for name in variables {
        if let Some(value) = std::env::var_os(name) {
            ui.result(format_args!("{name}={}", value.to_string_lossy()));
        }
    }
    match default_spec() {
        Ok(spec) => ui.result(format_args!("without --devices: {spec}")),
        Err(error) => ui.result(format_args!("without --devices: {error}")),
    }
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}
