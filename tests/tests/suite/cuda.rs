//! The engine and the collectives on NVIDIA cards: `cargo xtask gpu`.

use crate::device::{collectives, convolutions_with_batch_norm_train, trains_as_one_device};
use burn::backend::Cuda;
use burn_multigpu::Mesh;

/// Logical devices of the first card.
fn mesh(members: usize) -> Mesh<Cuda> {
    Mesh::open(&format!("cuda:{}", vec!["0"; members].join(","))).expect("an NVIDIA card")
}

#[test]
fn collectives_run_in_kernels() {
    collectives::<Cuda>(mesh);
}

#[test]
fn the_engine_trains_as_one_device() {
    for members in [1, 2, 3] {
        let mesh = mesh(members);
        trains_as_one_device(&mesh);
        assert_eq!(mesh.stats().collectives.host_sums, 0);
    }
}

#[test]
fn convolutions_with_batch_norm() {
    convolutions_with_batch_norm_train(&mesh(2));
}

#[test]
fn all_cards_train_as_one_device() {
    let mesh = Mesh::<Cuda>::open("cuda").expect("an NVIDIA card");
    eprintln!("{mesh}\n{}", mesh.transfers());
    trains_as_one_device(&mesh);
}
