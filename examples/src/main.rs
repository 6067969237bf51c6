//! The binary `multigpu`; see the library of this package.

use std::process::ExitCode;

fn main() -> ExitCode {
    burn_multigpu_examples::cli::main()
}
