//! The phases of a step: forward and backward on all replicas, reduction, update.

use super::batch::Batch;
use super::engine::{DataParallel, cut};
use super::grads::{self, GradList};
use super::local::{self, Draws, Forward, Local};
use super::reduce::{Reducer, States, To};
use super::replica::{self, Model};
use super::step::{Step, StepOutput};
use crate::error::{Error, Result};
use crate::worker::wait_all;
use burn::module::AutodiffModule;
use burn::optim::{LearningRate, Optimizer};
use burn::tensor::backend::AutodiffBackend;
use std::sync::Arc;

/// Tensors for each member that gets them.
pub(crate) type PerMember<T> = Vec<Option<T>>;

/// What a step leads to: the output, and by member the reduced gradients and running statistics.
pub(super) type Computed<B, T> = (
    StepOutput<B, T>,
    PerMember<GradList<B>>,
    PerMember<States<B>>,
);

impl<B, M, O> DataParallel<B, M, O>
where
    B: AutodiffBackend,
    M: AutodiffModule<B> + 'static,
    O: Clone + Send + 'static,
{
    /// Forward, backward and reduction; the gradients go to the members in `to`.
    pub(super) fn compute<I, T, F>(
        &mut self,
        parts: PerMember<I>,
        function: F,
        to: &[usize],
    ) -> Result<Computed<B, T>>
    where
        I: Batch<B>,
        T: Send + 'static,
        F: Fn(&M, I) -> Step<B, T> + Send + Sync + 'static,
    {
        if let Some(cause) = &self.diverged {
            return Err(Error::Diverged {
                cause: cause.clone(),
            });
        }
        let mut locals = self.run_replicas(parts, function)?;
        let active = || locals.iter().flatten();
        let weights: Vec<f64> = active().map(|local| local.weight).collect();
        let items: Vec<usize> = active().map(|local| local.items).collect();
        let factors = self.reduction.factors(&weights)?;

        let grads = locals
            .iter_mut()
            .map(|l| l.as_mut().map(|l| std::mem::take(&mut l.grads)));
        let grads = self
            .reducer()
            .grads(grads.collect(), &factors, To::Members(to))?;
        let states = locals
            .iter_mut()
            .map(|l| l.as_mut().map(|l| std::mem::take(&mut l.states)));
        let states = self
            .reducer()
            .states(states.collect(), &items, self.running_stats)?;

        let mut output = StepOutput {
            outputs: Vec::new(),
            losses: Vec::new(),
            items: items.iter().sum(),
        };
        for (local, factor) in locals.into_iter().flatten().zip(factors) {
            output.losses.push((factor, local.loss));
            output.outputs.push(local.output);
        }
        Ok((output, grads, states))
    }

    fn run_replicas<I, T, F>(
        &mut self,
        parts: PerMember<I>,
        function: F,
    ) -> Result<PerMember<Local<B, T>>>
    where
        I: Batch<B>,
        T: Send + 'static,
        F: Fn(&M, I) -> Step<B, T> + Send + Sync + 'static,
    {
        let function = Arc::new(function);
        let forward = |member: usize, part: I, draws: Option<Draws>| {
            let (core, own) = (self.mesh.core().clone(), self.replicas[member].clone());
            let function = function.clone();
            move || -> Result<Forward<B, T>> {
                let device = &core.devices[member];
                let transfer = core.transfers.path(0, member);
                local::forward(&own, device, transfer, part, function.as_ref(), draws)
            }
        };
        let backward = |member: usize| {
            let (own, states) = (self.replicas[member].clone(), self.states.clone());
            move |forward: Forward<B, T>| local::backward::<B, M, T>(&own, forward, &states)
        };

        let Some(seed) = self.seed.filter(|_| self.draws != Some(false)) else {
            let jobs = parts.into_iter().enumerate().map(|(member, part)| {
                let job = part.map(|part| (forward(member, part, None), backward(member)));
                move || {
                    job.map(|(forward, backward)| backward(forward()?))
                        .transpose()
                }
            });
            return self.pool.run(jobs);
        };

        // One forward pass at a time; each backward pass runs beside the forward passes after it.
        let probe = self.draws.is_none();
        let mut drew = false;
        let mut failed = None;
        let mut tickets = Vec::new();
        for (member, part) in parts.into_iter().enumerate() {
            let forward = part.filter(|_| failed.is_none()).map(|part| {
                let seed = stream_seed(seed, self.steps, member);
                self.pool
                    .submit(member, forward(member, part, Some(Draws { seed, probe })))
                    .wait()
            });
            let forward = match forward.transpose() {
                Ok(forward) => forward,
                Err(error) => {
                    failed = Some(error);
                    None
                }
            };
            drew |= forward
                .as_ref()
                .is_some_and(|forward| forward.drew == Some(true));
            let backward = backward(member);
            tickets.push(
                self.pool
                    .submit(member, move || forward.map(backward).transpose()),
            );
        }
        let locals = wait_all(tickets);
        if let Some(error) = failed {
            return Err(error);
        }
        let locals = locals?;
        if probe {
            self.draws = Some(drew);
        }
        Ok(locals)
    }

    fn reducer(&self) -> Reducer<'_, B> {
        Reducer {
            mesh: &self.mesh,
            pool: &self.pool,
            bucket_bytes: self.bucket_bytes,
            compression: self.compression,
        }
    }

    /// Gives the replicas the reduced running statistics.
    pub(super) fn apply_states(&self, states: PerMember<States<B>>) -> Result<()> {
        let jobs = states.into_iter().enumerate().map(|(member, values)| {
            let (own, ids) = (self.replicas[member].clone(), self.states.clone());
            move || {
                let Some(values) = values else { return Ok(()) };
                own.with(|model| {
                    replica::apply_states::<B, M>(&model.module, &ids, values);
                    Ok(())
                })
            }
        });
        self.pool.run(jobs).map(|_| ())
    }
}

impl<B, M, O> DataParallel<B, M, O>
where
    B: AutodiffBackend,
    M: AutodiffModule<B> + 'static,
    O: Optimizer<M, B> + 'static,
{
    /// A whole training step over a global batch: forward, backward, reduction, and the optimizer
    /// on every replica.
    ///
    /// ```
    /// # use burn::{backend::{Autodiff, Flex}, nn::LinearConfig, optim::SgdConfig, tensor::Tensor};
    /// # use burn_multigpu::{DataParallel, Mesh, Step};
    /// type B = Autodiff<Flex>;
    /// let mesh = Mesh::<Flex>::open("flex:0,1")?;
    /// let model = LinearConfig::new(2, 1).init::<B>(&mesh.devices()[0]);
    /// let mut engine =
    ///     DataParallel::<B, _>::new(model, &mesh)?.with_optimizer(SgdConfig::new().init());
    /// let x = Tensor::<B, 2>::ones([5, 2], &mesh.devices()[0]); // parts of 3 and 2 items
    /// let out = engine.train_step(0.1, x, |model, x| Step::new(model.forward(x).mean()))?;
    /// assert_eq!(out.items(), 5);
    /// # Ok::<(), burn_multigpu::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::EmptyBatch`], and [`Error::Worker`] with the device and the cause when a replica
    /// fails.
    pub fn train_step<I, T, F>(
        &mut self,
        lr: LearningRate,
        batch: I,
        function: F,
    ) -> Result<StepOutput<B, T>>
    where
        I: Batch<B>,
        T: Send + 'static,
        F: Fn(&M, I) -> Step<B, T> + Send + Sync + 'static,
    {
        let parts = cut::<B, I>(batch, self.mesh.len())?;
        self.train(lr, parts, function)
    }

    /// As [`train_step`](Self::train_step), with one batch per member instead of a global one to
    /// cut; batches may differ in size and be empty.
    ///
    /// # Errors
    ///
    /// As [`train_step`](Self::train_step), and [`Error::MemberCount`] if there is not one batch
    /// per member.
    pub fn train_step_shards<I, T, F>(
        &mut self,
        lr: LearningRate,
        batches: Vec<I>,
        function: F,
    ) -> Result<StepOutput<B, T>>
    where
        I: Batch<B>,
        T: Send + 'static,
        F: Fn(&M, I) -> Step<B, T> + Send + Sync + 'static,
    {
        let parts = self.one_per_member(batches)?;
        self.train(lr, parts, function)
    }

    fn train<I, T, F>(
        &mut self,
        lr: LearningRate,
        parts: PerMember<I>,
        function: F,
    ) -> Result<StepOutput<B, T>>
    where
        I: Batch<B>,
        T: Send + 'static,
        F: Fn(&M, I) -> Step<B, T> + Send + Sync + 'static,
    {
        let all: Vec<usize> = (0..self.mesh.len()).collect();
        let (output, grads, states) = self.compute(parts, function, &all)?;
        let updated = self
            .apply_states(states)
            .and_then(|()| self.update(lr, grads));
        if let Err(error) = updated {
            // Some replicas have made the step and others not.
            self.diverged = Some(error.to_string());
            return Err(error);
        }
        self.steps += 1;
        Ok(output)
    }

    fn update(&self, lr: LearningRate, grads: PerMember<GradList<B>>) -> Result<()> {
        let jobs = grads.into_iter().enumerate().map(|(member, list)| {
            let own = self.replicas[member].clone();
            let optimizer = self.optimizers[member].clone();
            move || {
                let list = list.unwrap_or_default();
                let (grads, ids) = own.with(|model| Ok(grads::put::<B, M>(&model.module, list)))?;
                optimizer.update(|mut optimizer| {
                    let updated = own.update(|Model { module, mut tied }| {
                        let module = optimizer.step(lr, module, grads);
                        // Burn updates a parameter at its first place; the other keeps its tensor.
                        ids.iter().for_each(|id| {
                            tied.remove(id);
                        });
                        (Model { module, tied }, ())
                    });
                    (optimizer, updated)
                })?
            }
        });
        self.pool.run(jobs).map(|_| ())
    }

    /// The state of the optimizer, on the first member's device: the one of a single device.
    ///
    /// # Errors
    ///
    /// [`Error::Diverged`] when the first replica's optimizer is lost.
    pub fn optimizer_record(&self) -> Result<O::Record> {
        self.optimizers[0].with(|optimizer| Ok(optimizer.to_record()))
    }

    /// Loads the state of the optimizer on every replica.
    ///
    /// # Errors
    ///
    /// When a member cannot hold the state.
    pub fn load_optimizer_record(&mut self, record: O::Record) -> Result<()> {
        self.optimizers[0].update(|optimizer| (optimizer.load_record(record), ()))?;
        for member in 1..self.mesh.len() {
            let loaded = self
                .optimizer_record()
                .and_then(|record| {
                    let device = &self.mesh.devices()[member];
                    replica::copy_record::<B, _>(record, member, device)
                })
                .and_then(|record| {
                    self.optimizers[member].update(|optimizer| (optimizer.load_record(record), ()))
                });
            if let Err(error) = loaded {
                self.diverged = Some(error.to_string());
                return Err(error);
            }
        }
        Ok(())
    }
}

/// The seed of one replica in one step: well mixed, so that neighbours share nothing.
/// SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014).
fn stream_seed(seed: u64, step: u64, member: usize) -> u64 {
    let mix = |mut z: u64| {
        z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    mix(mix(mix(seed) ^ step) ^ member as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn streams_do_not_repeat() {
        let seeds: HashSet<u64> = (0..4)
            .flat_map(|seed| (0..100).map(move |step| (seed, step)))
            .flat_map(|(seed, step)| (0..8).map(move |member| stream_seed(seed, step, member)))
            .collect();
        assert_eq!(seeds.len(), 4 * 100 * 8);
    }
}
