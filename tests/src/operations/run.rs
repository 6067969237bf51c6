//! Runs all cases in all modes, on meshes of several sizes, against one device.

use super::case::Case;
use super::compare::difference;
use super::devices::{OnMesh, One};
use super::place::{Inputs, MODES, Mode, takes_operations};
use burn::tensor::{DType, TensorData};
use burn_multigpu::backend::InnerBackend;
use burn_multigpu::{Mesh, MultiGpu};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a case may take: one takes a second.
const PATIENCE: Duration = Duration::from_secs(120);

/// After so many failures a case is given up.
const FAILURES_MAX: usize = 4;

/// What running all cases showed.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What was not as on one device.
    pub failures: Vec<String>,
    /// How many cases there are.
    pub cases: usize,
    /// How often a case was run on a mesh.
    pub runs: usize,
    /// By operation, the cases that it is part of, with the number of operations that each has.
    pub met: BTreeMap<&'static str, Vec<(&'static str, usize)>>,
    /// The operations that ran in parts, each member on its own.
    pub in_parts: BTreeSet<&'static str>,
}

/// A case on one device, and the same on a mesh.
struct Pair<B: InnerBackend> {
    one: Case<One<B>>,
    mesh: fn(&OnMesh<B>) -> Vec<TensorData>,
}

/// Runs all cases on meshes of these numbers of members, all of them this device.
pub fn run<B: InnerBackend>(device: &B::Device, members: &[usize]) -> Report {
    let on_mesh = super::all::<MultiGpu<B>, OnMesh<B>>();
    let pairs = super::all::<B, One<B>>()
        .into_iter()
        .zip(on_mesh)
        .map(|(one, mesh)| Pair {
            one,
            mesh: mesh.run,
        });
    let mut report = Report::default();
    for pair in pairs {
        report.cases += 1;
        let (device, members) = (device.clone(), members.to_vec());
        let name = pair.one.name;
        let at = Arc::new(Mutex::new(String::new()));
        let (sender, receiver) = channel();
        let where_it_is = at.clone();
        let thread = std::thread::spawn(move || {
            let _ = sender.send(run_case(&pair, &device, &members, &where_it_is));
        });
        match receiver.recv_timeout(PATIENCE) {
            Ok(of_case) => report.add(name, of_case),
            Err(RecvTimeoutError::Timeout) => {
                let at = at.lock().unwrap_or_else(PoisonError::into_inner);
                report.failures.push(format!("{name}: hangs in {at}"));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let panic = thread.join().err().map(|panic| message(panic.as_ref()));
                report.failures.push(format!("{name}: {panic:?}"));
            }
        }
    }
    report
}

impl Report {
    fn add(&mut self, name: &'static str, case: OfCase) {
        self.failures.extend(case.failures);
        self.runs += case.runs;
        self.in_parts.extend(case.in_parts);
        let operations = case.met.len();
        for operation in case.met {
            self.met
                .entry(operation)
                .or_default()
                .push((name, operations));
        }
    }
}

/// What a case showed.
#[derive(Default)]
struct OfCase {
    failures: Vec<String>,
    runs: usize,
    met: BTreeSet<&'static str>,
    in_parts: BTreeSet<&'static str>,
}

fn run_case<B: InnerBackend>(
    pair: &Pair<B>,
    device: &B::Device,
    members: &[usize],
    at: &Mutex<String>,
) -> OfCase {
    let mut found = OfCase::default();
    let dtypes: &[DType] = match pair.one.doubles {
        true => &[DType::F32, DType::F64],
        false => &[DType::F32],
    };
    let open = |members: usize| Mesh::<B>::from_devices(vec![device.clone(); members]);
    let mut meshes: Vec<Option<Mesh<B>>> = members.iter().map(|_| None).collect();
    for &mode in MODES {
        for &dtype in dtypes {
            let one = One::new(Inputs::new(mode, dtype), device.clone());
            let want = match catch_unwind(AssertUnwindSafe(|| (pair.one.run)(&one))) {
                Ok(want) => want,
                Err(panic) => {
                    let panic = message(panic.as_ref());
                    let text = format!(
                        "{}: one device panics ({mode:?}, {dtype:?}): {panic}",
                        pair.one.name
                    );
                    found.failures.push(text);
                    return found;
                }
            };
            for (slot, &members) in meshes.iter_mut().zip(members) {
                for keep in [false, true] {
                    // A mesh of one has no layouts.
                    if keep && dtype == DType::F64 || members == 1 && mode != MODES[0] {
                        continue;
                    }
                    let place = format!(
                        "{} on {members} members, {mode:?}, {dtype:?}{}",
                        pair.one.name,
                        if keep { ", inputs kept" } else { "" }
                    );
                    at.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .clone_from(&place);
                    let mesh = match slot.take().map_or_else(|| open(members), Ok) {
                        Ok(mesh) => mesh,
                        Err(error) => {
                            found.failures.push(format!("{place}: {error}"));
                            return found;
                        }
                    };
                    found.runs += 1;
                    match on_mesh(pair, &mesh, Inputs::new(mode, dtype), keep, &want) {
                        Ok(()) => {
                            note(&mut found, &mesh, mode);
                            *slot = Some(mesh);
                        }
                        // What failed may have stopped the mesh.
                        Err(text) => found.failures.push(format!("{place}: {text}")),
                    }
                    if found.failures.len() >= FAILURES_MAX {
                        return found;
                    }
                }
            }
        }
    }
    found
}

fn on_mesh<B: InnerBackend>(
    pair: &Pair<B>,
    mesh: &Mesh<B>,
    inputs: Inputs,
    keep: bool,
    want: &[TensorData],
) -> Result<(), String> {
    let other = mesh.take(1).map_err(|error| error.to_string())?;
    let place = OnMesh::new(inputs, mesh, &other, keep);
    let done = catch_unwind(AssertUnwindSafe(|| ((pair.mesh)(&place), place.kept())));
    let (got, kept) = done.map_err(|panic| message(panic.as_ref()))?;
    if got.len() != want.len() {
        return Err(format!("{} results for {}", got.len(), want.len()));
    }
    for (index, (want, got)) in want.iter().zip(&got).enumerate() {
        if let Some(text) = difference(want, got) {
            return Err(format!("result {index}: {text}"));
        }
    }
    for (index, (now, first)) in kept.iter().enumerate() {
        if let Some(text) = difference(first, now) {
            return Err(format!("input {index} has changed: {text}"));
        }
    }
    Ok(())
}

/// Notes the operations that a case is made of, without those that its inputs take.
fn note<B: InnerBackend>(found: &mut OfCase, mesh: &Mesh<B>, mode: Mode) {
    for (&name, counts) in &mesh.stats().operations.operations {
        if counts.sharded > 0 {
            found.in_parts.insert(name);
        }
        // Others have counts of what was moved for them only.
        let ran = counts.sharded + counts.replicated + counts.fallbacks > 0;
        if ran && !takes_operations(mode) {
            found.met.insert(name);
        }
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
        .unwrap_or_else(|| "a panic without a message".to_string())
}
