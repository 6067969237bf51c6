//! The texts of this module's errors that need more than a line.

use std::fmt::Write;

/// Longer specs are shown as the part around the fault.
const WINDOW: usize = 72;

/// The spec, a caret under the character, and what is accepted.
pub(crate) fn malformed(spec: &str, position: usize, reason: &str) -> String {
    // A tab or a line break would move the caret.
    let shown: Vec<char> = spec
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let start = if shown.len() > WINDOW {
        position.saturating_sub(WINDOW / 2)
    } else {
        0
    };
    let end = shown.len().min(start + WINDOW);
    let before = if start > 0 { "..." } else { "" };
    let after = if end < shown.len() { "..." } else { "" };
    let part: String = shown[start.min(end)..end].iter().collect();
    let caret = before.len() + position.saturating_sub(start) + 1;
    format!(
        "malformed device spec: {reason}\n  {before}{part}{after}\n  {:>caret$}\n\
         accepted are for example `cuda` (all its devices), `cuda:1`, `cuda:0,1` and `cuda:0-3`",
        '^'
    )
}

pub(crate) fn empty_spec(variable: Option<&str>) -> String {
    match variable {
        Some(variable) => format!(
            "{variable} is set and empty; unset it to take all visible devices, or name devices, \
             for example {variable}=cuda:0,1"
        ),
        None => "the device spec is empty; name a backend (`cuda`: all its devices) or devices \
                 (`cuda:0,1`)"
            .to_string(),
    }
}

pub(crate) fn wrong_backend(asked: &str, backend: &str) -> String {
    format!(
        "the spec asks for `{asked}`, and this is a mesh of `{backend}` devices; \
         open a `Mesh::<{}>`, or ask for `{backend}:0`",
        type_name(asked)
    )
}

/// The name that Burn gives a backend's type.
fn type_name(backend: &str) -> String {
    let mut chars = backend.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}

pub(crate) fn no_such_device(
    backend: &str,
    index: usize,
    count: usize,
    visible: Option<&str>,
) -> String {
    let mut text = format!("there is no device {backend}:{index}: ");
    let _ = match count {
        0 => write!(text, "none is visible"),
        1 => write!(text, "1 device is visible, {backend}:0"),
        _ => write!(
            text,
            "{count} devices are visible, {backend}:0 to {backend}:{}",
            count - 1
        ),
    };
    if let (Some(variable), Some(value)) = (visibility_variable(backend), visible) {
        let _ = write!(
            text,
            " ({variable}={value} hides the others, and those it shows are counted from 0)"
        );
    }
    text + "; `multigpu devices` lists them"
}

pub(crate) fn no_devices(backend: &str, visible: Option<&str>) -> String {
    let hint = match (visibility_variable(backend), visible) {
        (Some(variable), Some(value)) if value.trim().is_empty() => {
            format!("{variable} is set and empty, which hides all of them: unset it")
        }
        (Some(variable), Some(value)) => {
            format!("{variable}={value} may hide them: unset it, or name devices that are there")
        }
        _ => match backend {
            "cuda" => "`nvidia-smi -L` lists what the driver sees".to_string(),
            "rocm" => "`rocminfo` lists what the driver sees".to_string(),
            "wgpu" => "install the Vulkan driver of the GPU, or a software one (Debian and \
                       Ubuntu: mesa-vulkan-drivers)"
                .to_string(),
            _ => "`multigpu devices` lists what each backend sees".to_string(),
        },
    };
    format!("no {backend} device is visible to this process; {hint}")
}

/// The variable by which a driver hides and renumbers devices.
pub(crate) fn visibility_variable(backend: &str) -> Option<&'static str> {
    match backend {
        "cuda" => Some("CUDA_VISIBLE_DEVICES"),
        "rocm" => Some("HIP_VISIBLE_DEVICES"),
        _ => None,
    }
}

/// The text of [`Error::Metric`](crate::Error::Metric).
#[cfg(all(feature = "evcxr", feature = "train"))]
pub(crate) fn no_such_metric(name: &str, known: &[String]) -> String {
    match known {
        [] => format!("there is no metric `{name}`: no training has begun with this history"),
        known => format!(
            "there is no metric `{name}`; the training has {}",
            known.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::Error;

    fn check(error: Error, expected: &str) {
        assert_eq!(error.to_string(), expected);
    }

    fn s(text: &str) -> String {
        text.to_string()
    }

    #[test]
    fn malformed_points_at_the_character() {
        check(
            Error::MalformedSpec {
                spec: s("cuda:0,"),
                position: 6,
                reason: s("a device number is missing after this comma"),
            },
            "malformed device spec: a device number is missing after this comma\n  \
             cuda:0,\n        ^\n\
             accepted are for example `cuda` (all its devices), `cuda:1`, `cuda:0,1` and `cuda:0-3`",
        );
    }

    #[test]
    fn malformed_keeps_the_caret_in_place() {
        // (spec, position): the caret is under the character at that position, even if a tab or a
        // line break comes before it, or the spec is too long to be shown whole.
        let long = format!("cuda:{}x,{}", "0,".repeat(200), "1,".repeat(200));
        for (spec, position) in [("cuda:\t0\n,x", 8), ("x", 0), (&long, 405), ("é:x", 2)] {
            let text = Error::MalformedSpec {
                spec: s(spec),
                position,
                reason: s("r"),
            }
            .to_string();
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines.len(), 4, "{text}");
            let column = lines[2].chars().position(|c| c == '^').expect("a caret");
            assert_eq!(
                lines[1].chars().nth(column),
                spec.chars().nth(position),
                "{text}"
            );
            assert!(lines[1].chars().count() <= super::WINDOW + 8, "{text}");
        }
    }

    #[test]
    fn empty() {
        check(
            Error::EmptySpec { variable: None },
            "the device spec is empty; name a backend (`cuda`: all its devices) or devices \
             (`cuda:0,1`)",
        );
        check(
            Error::EmptySpec {
                variable: Some(s("MULTIGPU_DEVICES")),
            },
            "MULTIGPU_DEVICES is set and empty; unset it to take all visible devices, or name \
             devices, for example MULTIGPU_DEVICES=cuda:0,1",
        );
        check(
            Error::EmptyMesh,
            "a mesh has at least one device, and the list of devices is empty",
        );
    }

    #[test]
    fn backends() {
        check(
            Error::UnknownBackend {
                name: s("gpu"),
                known: &["cuda", "flex"],
            },
            "unknown backend `gpu`; known are cuda, flex (also `cpu` for flex and `hip` for rocm)",
        );
        check(
            Error::BackendNotCompiled {
                backend: s("cuda"),
                feature: s("cuda"),
            },
            "this program was built without the `cuda` backend; rebuild it with --features cuda",
        );
        check(
            Error::WrongBackend {
                asked: s("cuda"),
                backend: s("flex"),
            },
            "the spec asks for `cuda`, and this is a mesh of `flex` devices; \
             open a `Mesh::<Cuda>`, or ask for `flex:0`",
        );
        check(
            Error::MixedBackends {
                first: s("cuda"),
                second: s("wgpu"),
            },
            "a mesh has devices of one backend, and this spec names `cuda` and `wgpu`; \
             open one mesh for each",
        );
        check(
            Error::Environment {
                variable: s("MULTIGPU_DEVICES"),
                error: Box::new(Error::EmptyMesh),
            },
            "MULTIGPU_DEVICES: a mesh has at least one device, and the list of devices is empty",
        );
    }

    #[test]
    fn devices_that_are_not_there() {
        let missing = |count, visible: Option<&str>| Error::NoSuchDevice {
            backend: s("cuda"),
            index: 3,
            count,
            visible: visible.map(s),
        };
        check(
            missing(1, None),
            "there is no device cuda:3: 1 device is visible, cuda:0; `multigpu devices` lists them",
        );
        check(
            missing(2, Some("1,3")),
            "there is no device cuda:3: 2 devices are visible, cuda:0 to cuda:1 \
             (CUDA_VISIBLE_DEVICES=1,3 hides the others, and those it shows are counted from 0); \
             `multigpu devices` lists them",
        );
        check(
            Error::NotVisible {
                backend: s("wgpu"),
                device: s("DiscreteGpu(7)"),
                count: 2,
            },
            "`DiscreteGpu(7)` is not among the 2 wgpu devices that are visible; \
             `multigpu devices` lists them",
        );
        check(
            Error::NoDriver {
                backend: s("cuda"),
                reason: s("it is not there"),
            },
            "the cuda driver cannot be used: it is not there",
        );
    }

    #[test]
    fn no_devices_at_all() {
        let none = |backend: &str, visible: Option<&str>| Error::NoDevices {
            backend: s(backend),
            visible: visible.map(s),
        };
        check(
            none("cuda", Some("")),
            "no cuda device is visible to this process; CUDA_VISIBLE_DEVICES is set and empty, \
             which hides all of them: unset it",
        );
        check(
            none("cuda", Some("7")),
            "no cuda device is visible to this process; CUDA_VISIBLE_DEVICES=7 may hide them: \
             unset it, or name devices that are there",
        );
        check(
            none("cuda", None),
            "no cuda device is visible to this process; `nvidia-smi -L` lists what the driver sees",
        );
        check(
            none("wgpu", None),
            "no wgpu device is visible to this process; install the Vulkan driver of the GPU, or a \
             software one (Debian and Ubuntu: mesa-vulkan-drivers)",
        );
        check(
            none("rocm", None),
            "no rocm device is visible to this process; `rocminfo` lists what the driver sees",
        );
    }

    #[test]
    fn errors_cross_threads() {
        fn crosses<T: Send + Sync + 'static>() {}
        crosses::<Error>();
    }
}
