//! Random programs on a mesh give what one device gives.
//!
//! `MULTIGPU_PROGRAMS` sets how many (20000 for a long run), `MULTIGPU_SEED` where to start: with
//! the seed that a failure prints and `MULTIGPU_PROGRAMS=1` it runs that program alone.

use burn::backend::autodiff::checkpoint::strategy::{
    BalancedCheckpointing, CheckpointStrategy, NoCheckpointing,
};
use burn::backend::{Autodiff, Flex};
use burn::tensor::{DType, Tensor, TensorPrimitive, set_default_dtypes};
use burn_multigpu::backend::OperationCounts;
use burn_multigpu::{Mesh, MultiGpu};
use burn_multigpu_tests::programs::{Hint, Outcome, Program, Value, rng::Rng, run, shrink::shrink};
use burn_multigpu_tests::use_f64;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

type Plain = Autodiff<Flex>;
type OnMesh<C> = Autodiff<MultiGpu<Flex>, C>;
type Counts = BTreeMap<&'static str, OperationCounts>;

const SIZES: [usize; 4] = [1, 2, 3, 5];
const THREADS: u64 = 4;

/// A program that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// How a program is run on a mesh.
#[derive(Clone, Copy, Debug)]
struct Setting {
    members: usize,
    checkpointing: bool,
}

#[test]
fn random_programs_give_what_one_device_gives() {
    use_f64();
    let (first, programs) = (number("MULTIGPU_SEED", 0), number("MULTIGPU_PROGRAMS", 2000));
    let (sender, receiver) = channel();
    for thread in 0..THREADS {
        let sender = sender.clone();
        let seeds = (first..first + programs).filter(move |seed| seed % THREADS == thread);
        std::thread::spawn(move || check_all(thread, seeds, &sender));
    }
    drop(sender);

    let mut running = BTreeMap::new();
    let mut all = Counts::new();
    loop {
        match receiver.recv_timeout(PATIENCE) {
            Ok(Word::Began(thread, seed)) => drop(running.insert(thread, seed)),
            Ok(Word::Failed(text)) => panic!("{text}"),
            Ok(Word::Ended(thread, counts)) => {
                running.remove(&thread);
                for (name, counts) in counts {
                    let sum = all.entry(name).or_default();
                    sum.sharded += counts.sharded;
                    sum.replicated += counts.replicated;
                    sum.fallbacks += counts.fallbacks;
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                let programs = running.values().map(|seed| {
                    format!("MULTIGPU_SEED={seed}\n{}", Program::random(*seed))
                });
                panic!("one of these hangs:\n{}", programs.collect::<Vec<_>>().join("\n"));
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if programs >= 2000 {
        check_coverage(&all);
    }
}

/// What a thread has to say.
enum Word {
    Began(u64, u64),
    Failed(String),
    Ended(u64, Counts),
}

fn check_all(thread: u64, seeds: impl Iterator<Item = u64>, sender: &Sender<Word>) {
    let meshes = SIZES.map(open);
    for seed in seeds {
        let _ = sender.send(Word::Began(thread, seed));
        let program = Program::random(seed);
        let mut rng = Rng::new(seed);
        for _ in 0..2 {
            let index = rng.below(SIZES.len());
            let setting = Setting {
                members: SIZES[index],
                checkpointing: rng.chance(20),
            };
            if let Some(difference) = compare(&program, setting, &meshes[index]) {
                let text = explain(seed, program, setting, &difference);
                let _ = sender.send(Word::Failed(text));
                return;
            }
        }
    }
    let mut all = Counts::new();
    for mesh in meshes {
        for (name, counts) in mesh.stats().operations.operations {
            let sum: &mut OperationCounts = all.entry(name).or_default();
            sum.sharded += counts.sharded;
            sum.replicated += counts.replicated;
            sum.fallbacks += counts.fallbacks;
        }
    }
    let _ = sender.send(Word::Ended(thread, all));
}

fn explain(seed: u64, program: Program, setting: Setting, difference: &str) -> String {
    let fails = |program: &Program| {
        // One that a single device cannot run is no smaller example.
        plain(program).is_ok() && compare(program, setting, &open(setting.members)).is_some()
    };
    let small = if plain(&program).is_ok() { shrink(program, fails) } else { program };
    let now = compare(&small, setting, &open(setting.members)).unwrap_or_default();
    format!(
        "{setting:?}: {difference}\nMULTIGPU_PROGRAMS=1 MULTIGPU_SEED={seed} runs it; \
         a smaller program also fails:\n{small}{now}"
    )
}

fn open(members: usize) -> Mesh<Flex> {
    let devices = (0..members).map(|_| burn::backend::flex::FlexDevice).collect();
    let mesh = Mesh::<Flex>::from_devices(devices).unwrap();
    set_default_dtypes::<MultiGpu<Flex>>(&mesh.device(), DType::F64, DType::I64).unwrap();
    mesh
}

/// What differs between a mesh and one device.
fn compare(program: &Program, setting: Setting, mesh: &Mesh<Flex>) -> Option<String> {
    let own = match plain(program) {
        Ok(outcome) => outcome,
        Err(text) => return Some(format!("one device cannot run it: {text}")),
    };
    let other = if setting.checkpointing {
        on_mesh::<BalancedCheckpointing>(program, mesh)
    } else {
        on_mesh::<NoCheckpointing>(program, mesh)
    };
    match other {
        Ok(other) => own.difference(&other, program.bound()),
        Err(text) => Some(text),
    }
}

fn plain(program: &Program) -> Result<Outcome, String> {
    caught(|| run::<Plain>(program, &Default::default(), |_, _| {}))
}

fn on_mesh<C: CheckpointStrategy>(program: &Program, mesh: &Mesh<Flex>) -> Result<Outcome, String> {
    caught(|| {
        run::<OnMesh<C>>(program, &mesh.device(), |value, hint| tell(mesh, value, hint))
    })
}

/// The mesh looks at the tensor's own rank, not at the one that the type says.
fn tell<C: CheckpointStrategy>(mesh: &Mesh<Flex>, value: &Value<OnMesh<C>>, hint: Hint) {
    macro_rules! tell {
        ($tensor:expr) => {
            match hint {
                Hint::Shard(dim) => mesh.shard(&$tensor, dim),
                Hint::Replicate => mesh.replicate(&$tensor),
            }
        };
    }
    match value.clone() {
        Value::Float(tensor) => {
            tell!(Tensor::<OnMesh<C>, 1>::from_primitive(TensorPrimitive::Float(tensor)));
        }
        Value::Int(tensor) => {
            tell!(Tensor::<OnMesh<C>, 1, burn::tensor::Int>::from_primitive(tensor));
        }
        Value::Bool(tensor) => {
            tell!(Tensor::<OnMesh<C>, 1, burn::tensor::Bool>::from_primitive(tensor));
        }
    }
}

fn caught<T>(function: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(function)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
            .unwrap_or_else(|| "a panic".to_string())
    })
}

fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")),
        Err(_) => default,
    }
}

fn check_coverage(counts: &Counts) {
    for (name, counts) in counts {
        println!("{name}: {counts:?}");
    }
}
