//! Random programs on a mesh give what one device gives.
//!
//! `MULTIGPU_PROGRAMS` sets how many (20000 for a long run), `MULTIGPU_SEED` where to start: with
//! the seed that a failure prints and `MULTIGPU_PROGRAMS=1` it runs that program alone.

use burn::backend::autodiff::checkpoint::strategy::{
    BalancedCheckpointing, CheckpointStrategy, NoCheckpointing,
};
use burn::backend::{Autodiff, Flex};
use burn::tensor::backend::Backend;
use burn::tensor::ops::{BoolTensor, FloatTensor, IntTensor};
use burn::tensor::{Bool, Int, Tensor, TensorPrimitive};
use burn_multigpu::backend::{self, OperationCounts, operation_names};
use burn_multigpu::{Mesh, MultiGpu};
use burn_multigpu_tests::programs::{
    Hint, Outcome, Program, Value, infer, interpret::Read, rng::Rng, run, shrink::shrink,
};
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
    bucket_bytes: usize,
}

#[test]
fn random_programs_give_what_one_device_gives() {
    use_f64();
    let (first, programs) = (
        number("MULTIGPU_SEED", 0),
        number("MULTIGPU_PROGRAMS", 2000),
    );
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
                let programs = running
                    .values()
                    .map(|seed| format!("MULTIGPU_SEED={seed}\n{}", Program::random(*seed)));
                panic!(
                    "one of these hangs:\n{}",
                    programs.collect::<Vec<_>>().join("\n")
                );
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // Other seeds may well have no program with the rarest of them.
    if first == 0 && programs >= 2000 {
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
                bucket_bytes: rng.pick(&[1, 300, 25 << 20, 25 << 20]),
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
    let small = if plain(&program).is_ok() {
        shrink(program, fails)
    } else {
        program
    };
    let now = compare(&small, setting, &open(setting.members)).unwrap_or_default();
    format!(
        "{setting:?}: {difference}\nMULTIGPU_PROGRAMS=1 MULTIGPU_SEED={seed} runs it; \
         a smaller program also fails:\n{small}{now}"
    )
}

fn open(members: usize) -> Mesh<Flex> {
    let devices = (0..members)
        .map(|_| burn::backend::flex::FlexDevice)
        .collect();
    Mesh::<Flex>::from_devices(devices).unwrap()
}

/// What differs between a mesh and one device.
fn compare(program: &Program, setting: Setting, mesh: &Mesh<Flex>) -> Option<String> {
    let own = match plain(program) {
        Ok(outcome) => outcome,
        Err(text) => return Some(format!("one device cannot run it: {text}")),
    };
    mesh.set_bucket_bytes(setting.bucket_bytes).unwrap();
    let other = if !program.autodiff {
        caught(|| {
            infer::<MultiGpu<Flex>>(program, &mesh.device(), |value, hint| match value.clone() {
                Value::Float(tensor) => tell(mesh, &float::<MultiGpu<Flex>>(tensor), hint),
                Value::Int(tensor) => tell(mesh, &int::<MultiGpu<Flex>>(tensor), hint),
                Value::Bool(tensor) => tell(mesh, &bool::<MultiGpu<Flex>>(tensor), hint),
            })
        })
    } else if setting.checkpointing {
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
    if program.autodiff {
        caught(|| run::<Plain>(program, &Default::default(), |_, _| {}))
    } else {
        caught(|| infer::<Flex>(program, &Default::default(), |_, _| {}))
    }
}

fn on_mesh<C: CheckpointStrategy>(program: &Program, mesh: &Mesh<Flex>) -> Result<Outcome, String> {
    caught(|| {
        run::<OnMesh<C>>(program, &mesh.device(), |value, hint| match value.clone() {
            Value::Float(tensor) => tell(mesh, &float::<OnMesh<C>>(tensor), hint),
            Value::Int(tensor) => tell(mesh, &int::<OnMesh<C>>(tensor), hint),
            Value::Bool(tensor) => tell(mesh, &bool::<OnMesh<C>>(tensor), hint),
        })
    })
}

fn tell(mesh: &Mesh<Flex>, tensor: &impl backend::OnMesh<Flex>, hint: Hint) {
    match hint {
        Hint::Shard(dim) => mesh.shard(tensor, dim),
        Hint::Replicate => mesh.replicate(tensor),
    }
}

// The mesh looks at a tensor's own rank, not at the one that the type says.

fn float<B: Backend>(tensor: FloatTensor<B>) -> Tensor<B, 1> {
    Tensor::from_primitive(TensorPrimitive::Float(tensor))
}

fn int<B: Backend>(tensor: IntTensor<B>) -> Tensor<B, 1, Int> {
    Tensor::from_primitive(tensor)
}

fn bool<B: Backend>(tensor: BoolTensor<B>) -> Tensor<B, 1, Bool> {
    Tensor::from_primitive(tensor)
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
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is no number")),
        Err(_) => default,
    }
}

/// Operations that no program meets, and why.
const NOT_MET: &[(&str, &[&str])] = &[
    (
        "its values are not those of another draw, or not defined",
        &[
            "Float::Random",
            "NumericFloat::IntRandom",
            "NumericInt::IntRandom",
            "BaseFloat::Empty",
            "BaseInt::Empty",
            "BaseBool::Empty",
        ],
    ),
    ("quantized", &["Float::Quantize", "Float::Dequantize"]),
    (
        "Flex has none",
        &[
            "BaseInt::GatherNd",
            "BaseInt::ScatterNd",
            "NumericFloat::ArgTopK",
            "NumericInt::ArgTopK",
            "Module::CtcLossBackward",
        ],
    ),
    (
        "Flex makes of bools what it cannot use",
        &[
            "BaseBool::Gather",
            "BaseBool::GatherNd",
            "BaseBool::Scatter",
            "BaseBool::ScatterNd",
            "BaseBool::Select",
            "BaseBool::SelectAssign",
        ],
    ),
    (
        "nothing in Burn's tensors asks for it",
        &[
            "BaseBool::Cast",
            "NumericFloat::Powi",
            "Init",
            "Custom",
            "Drop",
        ],
    ),
];

/// So that the programs do not lose operations without a word.
fn check_coverage(counts: &Counts) {
    let runs = |counts: &OperationCounts| counts.sharded + counts.replicated + counts.fallbacks;
    let met = |name: &str| counts.get(name).is_some_and(|counts| runs(counts) > 0);
    let excused = |name: &str| NOT_MET.iter().any(|(_, names)| names.contains(&name));
    let missing: Vec<_> = operation_names()
        .iter()
        .filter(|name| !met(name) && !excused(name))
        .collect();
    assert!(missing.is_empty(), "no program has {missing:?}");
    for (why, names) in NOT_MET {
        let found: Vec<_> = names.iter().filter(|name| met(name)).collect();
        assert!(found.is_empty(), "{why}, yet some programs have {found:?}");
    }

    let all: u64 = counts.values().map(runs).sum();
    let sharded: u64 = counts.values().map(|counts| counts.sharded).sum();
    let parts = sharded as f64 / all as f64;
    eprintln!("{sharded} of {all} operations ran in parts, {parts:.2}");
    assert!(
        parts > 0.4,
        "of {all} operations only {sharded} ran in parts"
    );
}

#[test]
fn a_wrong_value_is_seen() {
    use_f64();
    let mut seen = [0; 4];
    for seed in 0..60 {
        let program = Program::random(seed);
        let own = plain(&program).unwrap();
        assert_eq!(
            own.difference(&plain(&program).unwrap(), program.bound()),
            None
        );
        let wrong = |change: &dyn Fn(&mut Outcome) -> Option<()>| {
            let mut other = plain(&program).unwrap();
            let changed = change(&mut other).is_some();
            assert_eq!(own.difference(&other, program.bound()).is_some(), changed);
            usize::from(changed)
        };
        let off = |read: Option<&mut Read>| {
            let values = &mut read?.values;
            let largest = values.iter().map(|value| value.abs()).fold(1.0, f64::max);
            values[0] += 1e-4 * largest;
            Some(())
        };
        seen[0] += wrong(&|other| off(other.outputs.first_mut().map(|output| &mut output.1)));
        seen[1] += wrong(&|other| {
            other.loss += 1e-4 * own.loss.abs().max(1.0);
            Some(())
        });
        seen[2] += wrong(&|other| off(other.grads.first_mut()?.1.as_mut()));
        seen[3] += wrong(&|other| other.grads.first_mut()?.1.take().map(drop));
    }
    assert!(seen.iter().all(|seen| *seen > 10), "{seen:?}");
}
