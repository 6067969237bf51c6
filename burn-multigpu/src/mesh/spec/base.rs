//! A spec: a backend and which of its devices.

use super::parse;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;

/// The environment variable that names the devices of a program whose code names none.
pub const VARIABLE: &str = "MULTIGPU_DEVICES";

/// The most members that a spec may list.
pub const MEMBERS_MAX: usize = 1024;

/// The largest device number: CubeCL keeps it in 16 bits.
pub(super) const INDEX_MAX: usize = u16::MAX as usize;

/// The backends that a spec may name.
pub(super) const BACKENDS: &[&str] = &["cuda", "wgpu", "vulkan", "metal", "rocm", "flex"];

/// Devices as people name them: a backend, and all of its devices or a list of their numbers.
///
/// | spec | devices |
/// |---|---|
/// | `cuda` | all that are visible |
/// | `cuda:1` | the second one |
/// | `cuda:1,3` or `cuda:1,cuda:3` | two of them, in this order |
/// | `cuda:0-3` | four of them |
/// | `cuda:0,0` | the same one twice, as two logical devices |
/// | `flex:0,1` | two logical devices of the CPU |
///
/// Backends are cuda, wgpu, vulkan, metal, rocm (or hip) and flex (or cpu), in any case; blanks
/// between the parts do not matter. Numbers count what is *visible*: for CUDA,
/// `CUDA_VISIBLE_DEVICES` hides devices and renumbers the rest from 0, and `CUDA_DEVICE_ORDER`
/// decides their order (fastest first, unless it is `PCI_BUS_ID`, the order of `nvidia-smi`).
///
/// ```
/// use burn_multigpu::mesh::{Members, MeshSpec};
///
/// let spec: MeshSpec = "CUDA: 0-2, 7".parse()?;
/// assert_eq!(spec.backend(), "cuda");
/// assert_eq!(spec.members(), &Members::Indices(vec![0, 1, 2, 7]));
/// assert_eq!(spec.to_string(), "cuda:0,1,2,7");
///
/// let error = "cuda:0,".parse::<MeshSpec>().unwrap_err();
/// assert!(error.to_string().contains("a device number is missing after this comma"));
/// # Ok::<(), burn_multigpu::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MeshSpec {
    pub(super) backend: &'static str,
    pub(super) members: Members,
}

/// Which devices of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Members {
    /// All that are visible to this process.
    All,
    /// These, in this order; a number that occurs twice stands for two logical devices.
    Indices(Vec<usize>),
}

impl MeshSpec {
    /// A spec from its parts.
    ///
    /// # Errors
    ///
    /// Those of parsing, and [`Error::EmptyMesh`] for an empty list.
    ///
    /// ```
    /// use burn_multigpu::mesh::{Members, MeshSpec};
    ///
    /// let spec = MeshSpec::new("cuda", Members::Indices(vec![1, 3]))?;
    /// assert_eq!(spec.to_string(), "cuda:1,3");
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    pub fn new(backend: &str, members: Members) -> Result<Self> {
        match &members {
            Members::Indices(list) if list.is_empty() => Err(Error::EmptyMesh),
            _ => text(backend, &members).parse(),
        }
    }

    /// All devices of a backend. For backends of other crates too, which no text can name.
    pub(crate) fn all(backend: &'static str) -> Self {
        Self {
            backend,
            members: Members::All,
        }
    }

    /// The spec in [`MULTIGPU_DEVICES`](VARIABLE), or `None` when that is not set.
    ///
    /// # Errors
    ///
    /// [`Error::EmptySpec`] when it is set and empty, and [`Error::Environment`] when it cannot be
    /// read.
    ///
    /// ```
    /// use burn_multigpu::MeshSpec;
    ///
    /// match MeshSpec::from_env()? {
    ///     Some(spec) => println!("on {spec}"),
    ///     None => println!("on all devices"),
    /// }
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    pub fn from_env() -> Result<Option<Self>> {
        Self::from_lookup(|name| std::env::var_os(name))
    }

    /// As [`from_env`](Self::from_env), with the environment given.
    pub(super) fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>> {
        let Some(value) = lookup(VARIABLE) else {
            return Ok(None);
        };
        match value.to_string_lossy().parse() {
            Ok(spec) => Ok(Some(spec)),
            Err(Error::EmptySpec { .. }) => Err(Error::EmptySpec {
                variable: Some(VARIABLE.to_string()),
            }),
            Err(error) => Err(in_variable(error)),
        }
    }

    /// The backend, by its own name: `flex` for `CPU:0`.
    #[must_use]
    pub fn backend(&self) -> &str {
        self.backend
    }

    /// Which of its devices.
    #[must_use]
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Whether this program was built with the backend. For programs that choose the type of their
    /// mesh by the spec.
    ///
    /// # Errors
    ///
    /// [`Error::BackendNotCompiled`], which names the cargo feature.
    ///
    /// ```
    /// use burn_multigpu::MeshSpec;
    ///
    /// let spec: MeshSpec = "flex:0,1".parse()?;
    /// spec.check_compiled()?;
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    pub fn check_compiled(&self) -> Result<()> {
        if compiled(self.backend) {
            return Ok(());
        }
        Err(Error::BackendNotCompiled {
            backend: self.backend.to_string(),
            feature: self.backend.to_string(),
        })
    }
}

/// Says that an error is about the devices in [`VARIABLE`].
pub(in crate::mesh) fn in_variable(error: Error) -> Error {
    Error::Environment {
        variable: VARIABLE.to_string(),
        error: Box::new(error),
    }
}

/// Whether the cargo feature of a backend is on.
pub(crate) fn compiled(backend: &str) -> bool {
    match backend {
        "cuda" => cfg!(feature = "cuda"),
        "wgpu" => cfg!(feature = "wgpu"),
        "vulkan" => cfg!(feature = "vulkan"),
        "metal" => cfg!(feature = "metal"),
        "rocm" => cfg!(feature = "rocm"),
        "flex" => cfg!(feature = "flex"),
        _ => false,
    }
}

fn text(backend: &str, members: &Members) -> String {
    match members {
        Members::All => backend.to_string(),
        Members::Indices(list) => {
            let list: Vec<String> = list.iter().map(usize::to_string).collect();
            format!("{backend}:{}", list.join(","))
        }
    }
}

impl fmt::Display for MeshSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&text(self.backend, &self.members))
    }
}

impl FromStr for MeshSpec {
    type Err = Error;

    fn from_str(spec: &str) -> Result<Self> {
        parse::parse(spec)
    }
}

impl TryFrom<String> for MeshSpec {
    type Error = Error;

    fn try_from(spec: String) -> Result<Self> {
        spec.parse()
    }
}

impl From<MeshSpec> for String {
    fn from(spec: MeshSpec) -> Self {
        spec.to_string()
    }
}
