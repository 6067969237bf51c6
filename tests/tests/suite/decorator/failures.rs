//! What a program sees when a member fails.

use super::{A, M, open};
use burn::tensor::{Int, Tensor, TensorData};
use burn_multigpu_tests::within;
use std::time::Duration;

/// Indices of seven items, of which one that is far outside is in the part of member 1.
fn one_bad_index(device: &burn_multigpu::MeshDevice<burn::backend::Flex>) -> Tensor<M, 2, Int> {
    let indices = TensorData::new(vec![0i64, 1, 0, 999, 1, 0, 1], [7, 1]);
    Tensor::from_data(indices, device)
}

#[test]
fn a_panic_of_one_member_is_an_error_that_names_it() {
    within(20, || {
        let mesh = open("flex:0,1,2");
        let device = mesh.device();
        let fine = Tensor::<M, 1>::from_floats([1.0, 2.0], &device) * 2.0;
        let values = Tensor::<M, 2>::ones([7, 2], &device);
        let gathered = values.gather(1, one_bad_index(&device));
        // Everything after it is queued as if nothing had happened, exchanges included.
        let sum = gathered.clone().sum_dim(0) * 3.0;
        let error = sum.try_into_data().unwrap_err().to_string();
        assert!(
            error.contains("member 1 (flex:1) failed in BaseFloat::Gather"),
            "{error}"
        );
        assert!(error.contains("open it anew"), "{error}");
        // The mesh has stopped, and says so at every read and sync.
        let error = fine.try_into_data().unwrap_err().to_string();
        assert!(error.contains("member 1 (flex:1)"), "{error}");
        let error = <M as burn::tensor::backend::Backend>::sync(&device).unwrap_err();
        assert!(error.to_string().contains("member 1 (flex:1)"), "{error}");
        drop((gathered, mesh, device));

        let again = open("flex:0,1,2");
        let x = Tensor::<M, 1>::from_floats([1.0, 2.0], &again.device());
        assert_eq!(x.sum().into_scalar(), 3.0);
    });
}

#[test]
fn a_failure_in_the_backward_pass_reaches_the_reader() {
    within(20, || {
        let mesh = open("flex:0,1");
        let device = mesh.device();
        let w = Tensor::<A, 2>::ones([3, 2], &device).require_grad();
        let x = Tensor::<A, 2>::from_inner(Tensor::from_data(
            TensorData::new(vec![0.5f32; 21], [7, 3]),
            &device,
        ));
        let bad = Tensor::<A, 2, Int>::from_inner(one_bad_index(&device));
        let loss = x.matmul(w.clone()).gather(1, bad).sum();
        let grads = loss.backward();
        let grad = w.grad(&grads).unwrap();
        let error = grad.try_into_data().unwrap_err().to_string();
        assert!(error.contains("failed in BaseFloat::"), "{error}");
    });
}

#[test]
fn shapes_that_do_not_fit_are_refused_where_they_are_made() {
    let mesh = open("flex:0,1");
    let x = Tensor::<M, 2>::ones([4, 3], &mesh.device());
    let made =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| x.clone().matmul(x.clone())));
    assert!(made.is_err(), "as on any backend");
    assert_eq!(x.sum().into_scalar(), 12.0, "and the mesh goes on");
}

/// A product that takes a second or so stands for a device that hangs.
#[test]
fn a_member_that_does_not_answer_in_time_is_named() {
    within(60, || {
        let mesh = open("flex:0,1");
        let device = mesh.device();
        let a = Tensor::<M, 2>::ones([3000, 3000], &device);
        let fine = a.clone().slice([0..1, 0..2]).sum();
        assert_eq!(fine.into_scalar(), 2.0);
        mesh.set_timeout(Some(Duration::from_millis(1))).unwrap();
        let product = a.clone().matmul(a.clone()).matmul(a.clone());
        let error = product.sum().try_into_data().unwrap_err().to_string();
        assert!(
            error.contains("has not answered for 0.001 s; it is at BaseFloat::")
                || error.contains("has not answered for 0.001 s; it is at Float::"),
            "{error}"
        );
        // The mesh has stopped.
        let error = a.try_into_data().unwrap_err().to_string();
        assert!(error.contains("The mesh has stopped"), "{error}");
    });
}
