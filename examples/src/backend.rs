//! From the name of a backend in a spec to its type: the one place where the program names Burn's
//! backends.

use burn::tensor::backend::AutodiffBackend;
use burn_multigpu::MeshSpec;
use burn_multigpu::backend::InnerBackend;

/// What the program trains on: autodiff over a backend that meshes are made of, be it for replicas
/// or inside [`MultiGpu`](burn_multigpu::MultiGpu).
pub trait TrainBackend: AutodiffBackend<InnerBackend: InnerBackend> {}

impl<B: AutodiffBackend<InnerBackend: InnerBackend>> TrainBackend for B {}

/// Something to do on whichever backend a spec names.
pub trait Task {
    /// What comes of it.
    type Output;

    /// Does it.
    ///
    /// # Errors
    ///
    /// Whatever goes wrong.
    fn run<B: TrainBackend>(self, spec: &MeshSpec) -> anyhow::Result<Self::Output>;
}

/// Does something on the backend that a spec names.
///
/// # Errors
///
/// [`burn_multigpu::Error::BackendNotCompiled`] when this program was built without it, and those of
/// the task.
pub fn dispatch<T: Task>(spec: &MeshSpec, task: T) -> anyhow::Result<T::Output> {
    spec.check_compiled()?;
    match spec.backend() {
        #[cfg(feature = "flex")]
        "flex" => task.run::<burn::backend::Autodiff<burn::backend::Flex>>(spec),
        #[cfg(feature = "cuda")]
        "cuda" => task.run::<burn::backend::Autodiff<burn::backend::Cuda>>(spec),
        #[cfg(feature = "wgpu")]
        "wgpu" | "vulkan" | "metal" => {
            task.run::<burn::backend::Autodiff<burn::backend::Wgpu>>(spec)
        }
        #[cfg(feature = "rocm")]
        "rocm" => task.run::<burn::backend::Autodiff<burn::backend::Rocm>>(spec),
        other => Err(burn_multigpu::Error::BackendNotCompiled {
            backend: other.to_owned(),
            feature: other.to_owned(),
        }
        .into()),
    }
}

/// The backends that this program was built with, by the names that specs use, GPUs first.
pub fn compiled() -> Vec<&'static str> {
    // `vulkan` and `metal` are other names of devices that `wgpu` lists as well.
    let known = [
        ("cuda", cfg!(feature = "cuda")),
        ("rocm", cfg!(feature = "rocm")),
        ("wgpu", cfg!(feature = "wgpu")),
        ("flex", cfg!(feature = "flex")),
    ];
    known
        .into_iter()
        .filter_map(|(name, there)| there.then_some(name))
        .collect()
}

/// The spec to use when nobody named one: `MULTIGPU_DEVICES`, or all CUDA devices where there are
/// some, or two logical devices of the CPU (in a program built without Flex, all devices of the last
/// of its backends).
///
/// # Errors
///
/// When the variable is set and cannot be read.
pub fn default_spec() -> Result<MeshSpec, burn_multigpu::Error> {
    if let Some(spec) = MeshSpec::from_env()? {
        return Ok(spec);
    }
    #[cfg(feature = "cuda")]
    if <burn::backend::Cuda as burn_multigpu::MeshBackend>::discover().is_ok() {
        return "cuda".parse();
    }
    match compiled().last() {
        // A program built for one kind of GPU says what is wrong with that one.
        Some(&backend) if backend != "flex" => backend.parse(),
        _ => "flex:0,1".parse(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_multigpu::MeshBackend;

    struct Name;

    impl Task for Name {
        type Output = &'static str;

        fn run<B: TrainBackend>(self, _spec: &MeshSpec) -> anyhow::Result<Self::Output> {
            Ok(B::InnerBackend::spec_name())
        }
    }

    #[test]
    fn a_name_leads_to_its_backend() {
        for name in ["cuda", "rocm", "wgpu", "flex"] {
            let spec = name.parse().expect("a spec");
            match dispatch(&spec, Name) {
                Ok(reached) => {
                    assert_eq!(reached, name);
                    assert!(compiled().contains(&name));
                }
                Err(error) => {
                    assert!(!compiled().contains(&name));
                    let message = error.to_string();
                    assert!(message.contains(&format!("--features {name}")), "{message}");
                }
            }
        }
    }
}
