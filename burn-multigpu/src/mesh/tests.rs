//! Meshes on the CPU backend, and on a backend that discovery does not know.

use super::base::{Mesh, MeshCore};
use super::spec::MeshSpec;
use crate::Error;
use burn::backend::flex::FlexDevice;
use burn::backend::{Autodiff, Flex};

fn labels(mesh: &Mesh<Flex>) -> Vec<&str> {
    mesh.members().iter().map(|m| m.label.as_str()).collect()
}

#[test]
fn logical_devices() {
    let mesh = Mesh::<Flex>::open("cpu:0,2-3, 0").expect("any number");
    assert_eq!(labels(&mesh), ["flex:0", "flex:2", "flex:3", "flex:0"]);
    let positions: Vec<usize> = mesh.members().iter().map(|m| m.position).collect();
    assert_eq!(positions, [0, 1, 2, 3]);
    assert_eq!(mesh.devices().len(), mesh.len());
    assert_eq!(
        format!("{mesh:?}"),
        r#"Mesh(["flex:0", "flex:2", "flex:3", "flex:0"])"#
    );
    assert_eq!(labels(&Mesh::open("flex").expect("one")), ["flex:0"]);
}

#[test]
fn clones_are_the_same_mesh() {
    fn crosses<T: Send + Sync + 'static>(_: &T) {}
    let mesh = Mesh::<Flex>::open("flex:0,1").expect("two");
    crosses(&mesh);
    assert!(std::sync::Arc::ptr_eq(mesh.core(), mesh.clone().core()));
}

#[test]
fn decorators_have_the_devices_inside() {
    let mesh = Mesh::<Autodiff<Flex>>::open("flex:0,1").expect("two");
    assert_eq!(mesh.members()[1].label, "flex:1");
    let refused = Mesh::<Autodiff<Flex>>::open("cuda");
    assert!(
        matches!(refused, Err(Error::WrongBackend { .. })),
        "{refused:?}"
    );
}

#[test]
fn table_of_members() {
    let mesh = Mesh::<Flex>::open("flex:0,10").expect("two");
    let name = &mesh.members()[0].name;
    let expected = format!(
        "#  device   {:<width$}  memory (GiB)  free (GiB)  bus id\n\
         0  flex:0   {name:<width$}             -           -  -\n\
         1  flex:10  {name:<width$}             -           -  -",
        "name",
        width = name.chars().count().max(4),
    );
    assert_eq!(mesh.to_string(), expected);
}

#[test]
fn specs_of_other_backends() {
    match Mesh::<Flex>::open("wgpu:0") {
        Err(Error::WrongBackend { asked, backend }) => {
            assert_eq!((asked.as_str(), backend.as_str()), ("wgpu", "flex"));
        }
        other => panic!("{other:?}"),
    }
    let refused = Mesh::<Flex>::open("vulkan:0");
    assert!(
        matches!(refused, Err(Error::WrongBackend { .. })),
        "{refused:?}"
    );
}

#[test]
fn no_members() {
    let refused = Mesh::<Flex>::from_devices(Vec::new());
    assert!(matches!(refused, Err(Error::EmptyMesh)), "{refused:?}");
    let refused = MeshCore::<Flex>::new(Vec::new(), Vec::new());
    assert!(matches!(refused, Err(Error::EmptyMesh)));
}

#[test]
fn devices_of_the_caller() {
    let mesh = Mesh::<Flex>::from_devices(vec![FlexDevice; 3]).expect("three");
    assert_eq!(labels(&mesh), ["flex:0"; 3]);
    let mesh = Mesh::<Autodiff<Flex>>::from_devices(vec![FlexDevice]).expect("one");
    assert_eq!(mesh.members()[0].backend, "flex");
}

#[test]
fn from_the_environment() {
    let open = |spec: Option<&str>| {
        Mesh::<Flex>::open_or_all(spec.map(|spec| spec.parse::<MeshSpec>().expect("a spec")))
    };
    assert_eq!(labels(&open(None).expect("all")), ["flex:0"]);
    assert_eq!(labels(&open(Some("flex:1")).expect("one")), ["flex:1"]);
    let text = open(Some("cuda:0")).expect_err("refused").to_string();
    assert!(
        text.starts_with("MULTIGPU_DEVICES: the spec asks for `cuda`"),
        "{text}"
    );
}
