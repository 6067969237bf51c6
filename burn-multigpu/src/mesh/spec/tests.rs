use super::base::{BACKENDS, INDEX_MAX, in_variable};
use super::{MEMBERS_MAX, Members, MeshSpec, VARIABLE, compiled};
use crate::Error;
use proptest::prelude::*;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, StrDeserializer};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;

#[test]
fn what_people_type() {
    let check = |spec: &str, canonical: &str| {
        let parsed: MeshSpec = spec.parse().unwrap_or_else(|e| panic!("{spec}: {e}"));
        assert_eq!(parsed.to_string(), canonical, "{spec}");
    };
    check("cuda", "cuda");
    check(" cuda ", "cuda");
    check("cuda:0", "cuda:0");
    check("cuda:0,1", "cuda:0,1");
    check("cuda:1,3", "cuda:1,3");
    check("cuda:3,1", "cuda:3,1");
    check("cuda:0-3", "cuda:0,1,2,3");
    check("cuda:2-2", "cuda:2");
    check("cuda:0-1,4-5,7", "cuda:0,1,4,5,7");
    check("cuda:0,cuda:1", "cuda:0,1");
    check("cuda:0-1,CUDA:3", "cuda:0,1,3");
    check("cuda:0,0", "cuda:0,0");
    check("cuda : 0 , 1 - 2\t", "cuda:0,1,2");
    check("Cuda:007", "cuda:7");
    check("cuda:65535", "cuda:65535");
    check("flex:0,1", "flex:0,1");
    check("cpu", "flex");
    check("CPU:0,flex:1", "flex:0,1");
    check("hip:1", "rocm:1");
    check("WGPU", "wgpu");
    check("vulkan:0", "vulkan:0");
    check("metal", "metal");
    check("cuda:0-1023", &{
        let all: Vec<String> = (0..1024).map(|i| i.to_string()).collect();
        format!("cuda:{}", all.join(","))
    });
}

#[test]
fn refusals_point_at_the_character() {
    let check = |spec: &str, at: usize, what: &str| match spec.parse::<MeshSpec>() {
        Err(Error::MalformedSpec {
            spec: shown,
            position,
            reason,
        }) => {
            assert_eq!(
                (shown.as_str(), position, reason.as_str()),
                (spec, at, what)
            );
        }
        other => panic!("{spec}: {other:?}"),
    };
    check("cuda:", 4, "a device number is missing after this colon");
    check("cuda:  ", 4, "a device number is missing after this colon");
    check("cuda:0,", 6, "a device number is missing after this comma");
    check("cuda:0, ", 6, "a device number is missing after this comma");
    check("cuda:0-", 6, "a device number is missing after this dash");
    check(
        "cuda:0,cuda:",
        11,
        "a device number is missing after this colon",
    );
    check("cuda:,1", 5, "a device number is missing before this comma");
    check(
        "cuda:0,,1",
        7,
        "a device number is missing before this comma",
    );
    check(
        "cuda:0-,1",
        7,
        "a device number is missing before this comma",
    );
    check("cuda:-1", 5, "a device number cannot be negative");
    check("cuda:0--1", 7, "a device number cannot be negative");
    check("cuda:x", 5, "a device number is expected here, not `x`");
    check("cuda:all", 5, "a device number is expected here, not `all`");
    check(
        "cuda:0,cuda",
        7,
        "a device number is expected here, not `cuda`",
    );
    check(
        "cuda:0-cuda:3",
        7,
        "a device number is expected here, not `c`",
    );
    check("cuda:*", 5, "a device number is expected here, not `*`");
    check("cuda::0", 5, "a device number is expected here, not `:`");
    check("cuda:1a", 6, "`a` cannot be part of a device number");
    check("cuda:0x1", 6, "`x` cannot be part of a device number");
    check("cuda:0,1_000", 8, "`_` cannot be part of a device number");
    check("cuda:65536", 5, "device numbers go up to 65535");
    check(
        "cuda:0,99999999999999999999999",
        7,
        "device numbers go up to 65535",
    );
    check("cuda:3-0", 5, "the range 3-0 runs backwards; write `0-3`");
    check("cuda:0-1024", 5, "a mesh has at most 1024 members");
    check("cuda:0-1022,7,7", 14, "a mesh has at most 1024 members");
    check(
        "cuda:0..3",
        6,
        "a range is written with a dash, as in `0-3`",
    );
    check(
        "cuda:0 1",
        7,
        "after a device number comes a comma, not `1`",
    );
    check(
        "cuda:0;1",
        6,
        "after a device number comes a comma, not `;`",
    );
    check(
        "cuda:0:1",
        6,
        "after a device number comes a comma, not `:`",
    );
    check(
        "cuda:0-1-2",
        8,
        "after a device number comes a comma, not `-`",
    );
    check("cuda 0", 5, "after the backend comes a colon, not `0`");
    check("cuda@0", 4, "after the backend comes a colon, not `@`");
    check(
        "cuda,",
        4,
        "`cuda` alone means all its devices, so no list can follow",
    );
    check(
        "cuda,wgpu",
        4,
        "`cuda` alone means all its devices, so no list can follow",
    );
    check("0,1", 0, "a backend must come before the device numbers");
    check(":0", 0, "the backend before this colon is missing");
    check(" ,cuda", 1, "a spec begins with a backend, not `,`");
}

#[test]
fn other_refusals() {
    for empty in ["", "  ", "\n\t"] {
        let error = empty.parse::<MeshSpec>();
        assert!(
            matches!(error, Err(Error::EmptySpec { variable: None })),
            "{error:?}"
        );
    }
    for (spec, unknown) in [
        ("gpu:0", "gpu"),
        ("cuda0", "cuda0"),
        ("cuda:0,CuDaa:1", "CuDaa"),
    ] {
        match spec.parse::<MeshSpec>() {
            Err(Error::UnknownBackend { name, known }) => {
                assert_eq!((name.as_str(), known), (unknown, BACKENDS));
            }
            other => panic!("{spec}: {other:?}"),
        }
    }
    match "hip:0,wgpu:1".parse::<MeshSpec>() {
        Err(Error::MixedBackends { first, second }) => {
            assert_eq!((first.as_str(), second.as_str()), ("rocm", "wgpu"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn from_parts() {
    let spec = MeshSpec::new("cpu", Members::Indices(vec![0, 1])).expect("two devices");
    assert_eq!(spec.to_string(), "flex:0,1");
    assert_eq!(
        MeshSpec::new("cuda", Members::All).expect("all").members(),
        &Members::All
    );
    let refused =
        |backend, list| MeshSpec::new(backend, Members::Indices(list)).expect_err("refused");
    assert!(matches!(refused("cuda", vec![]), Error::EmptyMesh));
    assert!(matches!(
        refused("gpu", vec![0]),
        Error::UnknownBackend { .. }
    ));
    assert!(matches!(
        refused("cuda", vec![INDEX_MAX + 1]),
        Error::MalformedSpec { .. }
    ));
    assert!(matches!(
        refused("cuda", vec![0; MEMBERS_MAX + 1]),
        Error::MalformedSpec { .. }
    ));
}

#[test]
fn from_the_environment() {
    let read = |value: Option<&str>| {
        MeshSpec::from_lookup(|name| {
            assert_eq!(name, "MULTIGPU_DEVICES");
            value.map(OsString::from)
        })
    };
    assert_eq!(read(None).expect("not set"), None);
    let spec = read(Some("flex:0,1")).expect("two devices").expect("set");
    assert_eq!(spec.to_string(), "flex:0,1");
    for empty in ["", " "] {
        match read(Some(empty)) {
            Err(Error::EmptySpec { variable }) => assert_eq!(variable.as_deref(), Some(VARIABLE)),
            other => panic!("{other:?}"),
        }
    }
    let error = read(Some("cuda:0,")).expect_err("refused").to_string();
    assert!(
        error.starts_with("MULTIGPU_DEVICES: malformed device spec"),
        "{error}"
    );
    assert!(matches!(
        in_variable(Error::EmptyMesh),
        Error::Environment { .. }
    ));
}

#[test]
fn backends_of_this_build() {
    let flex: MeshSpec = "flex".parse().expect("flex");
    assert_eq!(flex.check_compiled().is_ok(), cfg!(feature = "flex"));
    // No single build has all of Metal, ROCm and Vulkan.
    for name in BACKENDS.iter().filter(|name| !compiled(name)) {
        match MeshSpec::all(name).check_compiled() {
            Err(Error::BackendNotCompiled { backend, feature }) => {
                assert_eq!((backend.as_str(), feature.as_str()), (*name, *name));
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

struct AsSerialized(MeshSpec);

impl std::fmt::Display for AsSerialized {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.serialize(f)
    }
}

#[test]
fn serialized_as_a_string() {
    let read = |text: &'static str| {
        let text: StrDeserializer<'_, ValueError> = text.into_deserializer();
        MeshSpec::deserialize(text)
    };
    let spec = read("cuda:0-1").expect("two devices");
    assert_eq!(AsSerialized(spec).to_string(), "cuda:0,1");
    let error = read("cuda:").expect_err("refused").to_string();
    assert!(error.contains("missing after this colon"), "{error}");
}

fn any_spec() -> impl Strategy<Value = MeshSpec> {
    let members = prop_oneof![
        Just(Members::All),
        prop::collection::vec(0..=INDEX_MAX, 1..20).prop_map(Members::Indices),
    ];
    (prop::sample::select(BACKENDS), members)
        .prop_map(|(backend, members)| MeshSpec { backend, members })
}

/// Strings that come close to being specs, and strings that do not.
fn any_text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "cuda", "wgpu", "flex", "cpu", "gpu", "é", ":", ",", "-", "0", "1", "17", "70000", " ", "x",
    ]);
    prop_oneof![
        any::<String>(),
        prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat()),
    ]
}

proptest! {
    #[test]
    fn displayed_and_read_back(spec in any_spec()) {
        prop_assert_eq!(spec.to_string().parse::<MeshSpec>().expect("canonical"), spec);
    }

    #[test]
    fn any_text_is_read_or_refused(text in any_text()) {
        match text.parse::<MeshSpec>() {
            Ok(spec) => {
                prop_assert_eq!(spec.to_string().parse::<MeshSpec>().expect("canonical"), spec);
            }
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                if let Error::MalformedSpec { spec, position, .. } = error {
                    prop_assert!(position < spec.chars().count(), "{} in {:?}", position, spec);
                    prop_assert_eq!(spec, text);
                }
            }
        }
    }
}
