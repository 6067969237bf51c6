//! Forwarding of operations to the router.

use burn_router::BackendRouter;

use crate::backend::MeshChannel;

/// The backend that operations are forwarded to. Its tensors are those of
/// [`MultiGpu`](super::MultiGpu), of the same client, so that they pass as they are.
pub(super) type Router<B> = BackendRouter<MeshChannel<B>>;

/// Implements the listed methods of an operations trait by those of the [`Router`], inside of an
/// `impl` for a `MultiGpu<B>`.
///
/// Results that are generic in the backend, such as `MaxPool2dWithIndices<Self>`, are other types
/// there and cannot be listed.
macro_rules! forward {
    ($ops:ident: $(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $out:ty;)*) => {
        $(
            fn $name($($arg: $ty),*) -> $out {
                <Router<B> as $ops<Router<B>>>::$name($($arg),*)
            }
        )*
    };
}

pub(super) use forward;
