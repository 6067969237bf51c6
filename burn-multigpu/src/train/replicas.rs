//! A step over all members: forward and backward, reduction, update.

use super::loader::Loaded;
use super::member::{Local, Member, floats};
use super::placement::{OptimizerPlacement, owners};
use super::records::{RecordOps, optimizer_record};
use super::strategy::Settings;
use super::{MemberBackend, TrainInput, TrainOutput, ValidInput, ValidOutput};
use crate::collective::Transfer;
use crate::data_parallel::parts::{
    GradList, PerMember, Reducer, Replica, States, To, apply_states, copies, copy_record, join,
    running_states, take_states,
};
use crate::data_parallel::{Batch, Gather};
use crate::error::{Error, Result};
use crate::mesh::Mesh;
use crate::worker::WorkerPool;
use burn::module::{AutodiffModule, Module, ParamId};
use burn::optim::LearningRate;
use burn::train::metric::store::EventStoreClient;
use burn::train::{InferenceStep, Learner, LearningComponentsTypes};
use burn_backend::TensorMetadata;
use std::sync::Arc;

/// The replicas of a learner's model and their optimizers.
pub(super) struct Replicas<LC: LearningComponentsTypes> {
    mesh: Mesh<MemberBackend<LC>>,
    pool: WorkerPool,
    members: Vec<Replica<Member<LC>>>,
    settings: Settings<LC>,
    states: Arc<Vec<ParamId>>,
    /// Which member updates each float parameter, by its place; none where all update all.
    owners: Option<Vec<usize>>,
}

impl<LC: LearningComponentsTypes + 'static> Replicas<LC> {
    /// Copies the learner to the members.
    pub(super) fn new(
        mut learner: Learner<LC>,
        mesh: &Mesh<MemberBackend<LC>>,
        settings: Settings<LC>,
        store: &EventStoreClient,
    ) -> Result<Self> {
        let mut pool = WorkerPool::spawn(mesh.members().iter().map(|m| m.label.clone()))?;
        pool.set_timeout(settings.timeout);
        let devices = mesh.devices();
        // Draws parameters that are still lazy: each clone of one would draw values of its own.
        learner.fork(&devices[0]);
        let models = copies::<LC::Backend, _>(mesh, &pool, learner.model())?;
        let states = Arc::new(running_states::<LC::Backend, _>(&models[0].module));
        let owners = place::<LC>(mesh, &settings, &learner)?;
        let updates = |member: usize| owners.as_ref().is_none_or(|o| o.contains(&member));
        let slots = floats::<LC::Backend, _>(&learner.model());

        // Backwards, since all clones of a learner share their model's running statistics, which end
        // on the first device then.
        let mut learners: Vec<Option<Learner<LC>>> = Vec::new();
        for (member, device) in devices.iter().enumerate().rev() {
            if member > 0 && !updates(member) {
                learners.push(None);
                continue;
            }
            let mut record = optimizer_record(&learner, store)?;
            if let (Some(owners), Some(ops)) = (&owners, settings.records) {
                // Other members have the rest.
                let mine = slots.iter().zip(owners).filter(|(_, o)| **o == member);
                let mine: Vec<ParamId> = mine.map(|((id, _), _)| *id).collect();
                (ops.retain)(&mut record, &|id| mine.contains(&id));
            }
            let mut copy = learner.clone();
            if member > 0 {
                copy.fork(device);
                // With memory of its own: see `replica::own`.
                record = copy_record::<LC::Backend, _>(record, member, device)?;
            }
            copy.load_optim(record);
            learners.push(Some(copy));
        }
        learner.fork(&devices[0]);
        let members = models.into_iter().zip(learners.into_iter().rev());
        let members = members.map(|(model, learner)| Replica::new(Member::new(learner, model)));
        Ok(Self {
            members: members.collect(),
            mesh: mesh.clone(),
            pool,
            settings,
            states,
            owners,
        })
    }

    /// Forward and backward over a batch; with `update`, also the reduction of all gradients since
    /// the last update, and the optimizer. The joined output, and the learning rate.
    pub(super) fn train_step(
        &self,
        batch: Loaded<TrainInput<LC>>,
        accumulates: bool,
        update: bool,
    ) -> Result<(TrainOutput<LC>, LearningRate)>
    where
        TrainInput<LC>: Batch<LC::Backend>,
        TrainOutput<LC>: Gather<LC::Backend>,
    {
        let Loaded {
            parts,
            items,
            weights,
            ..
        } = batch;
        let factors = self.settings.reduction.factors(&weights)?;
        let mut next = factors.iter();
        let jobs = parts.into_iter().enumerate().map(|(member, part)| {
            let (own, states) = (self.members[member].clone(), self.states.clone());
            let factor = part.as_ref().and_then(|_| next.next().copied());
            move || -> Result<(Option<Local<LC>>, Option<LearningRate>)> {
                let rate = own.update(Member::begin)?;
                let Some(part) = part else {
                    return Ok((None, rate));
                };
                let mut local = own.with(|own| own.step(part, &states))?;
                if accumulates && let Some(grads) = local.grads.take() {
                    let factor = factor.unwrap_or(1.0);
                    own.update(|own| (own.accumulate(grads, factor), ()))?;
                }
                Ok((Some(local), rate))
            }
        });
        let (mut locals, rates): (PerMember<Local<LC>>, Vec<_>) =
            self.pool.run(jobs)?.into_iter().unzip();
        let rate = rates.into_iter().flatten().next().unwrap_or_default();

        self.reduce_states(&mut locals, &items)?;
        if update {
            let (grads, factors) = match accumulates {
                false => {
                    let grads = locals.iter_mut().map(|l| l.as_mut()?.grads.take());
                    (grads.collect(), factors)
                }
                true => {
                    let jobs = self.members.iter().map(|own| {
                        let own = own.clone();
                        move || own.update(Member::take_pending)
                    });
                    let grads = self.pool.run(jobs)?;
                    // Weighted when they were added up.
                    let factors = vec![1.0; grads.iter().flatten().count()];
                    (grads, factors)
                }
            };
            self.update(grads, &factors)?;
        }
        let outputs = locals.into_iter().enumerate();
        let outputs = outputs.filter_map(|(member, local)| Some((member, local?.output)));
        let joined = join::<_, LC::Backend, _>(&self.mesh, &self.pool, outputs.collect(), weights)?;
        Ok((joined, rate))
    }

    /// Forgets gradients that have not led to an update.
    pub(super) fn forget_pending(&self) -> Result<()> {
        let forget = |own: &Replica<Member<LC>>| own.update(|own| (own.take_pending().0, ()));
        self.members.iter().try_for_each(forget)
    }

    fn reducer(&self) -> Reducer<'_, LC::Backend> {
        Reducer {
            mesh: &self.mesh,
            pool: &self.pool,
            bucket_bytes: self.settings.bucket_bytes,
            compression: self.settings.compression,
        }
    }

    fn reduce_states(&self, locals: &mut PerMember<Local<LC>>, items: &[usize]) -> Result<()> {
        let states = locals
            .iter_mut()
            .map(|local| Some(std::mem::take(&mut local.as_mut()?.states)));
        let rule = self.settings.running_stats;
        let states = self.reducer().states(states.collect(), items, rule)?;
        let jobs = states.into_iter().enumerate().map(|(member, values)| {
            let (own, ids) = (self.members[member].clone(), self.states.clone());
            move || {
                let Some(values) = values else { return Ok(()) };
                own.with(|own| {
                    apply_states::<LC::Backend, _>(&own.model.module, &ids, values);
                    Ok(())
                })
            }
        });
        self.pool.run(jobs).map(|_| ())
    }

    fn update(&self, grads: PerMember<GradList<LC::Backend>>, factors: &[f64]) -> Result<()> {
        let all: Vec<usize> = (0..self.mesh.len()).collect();
        let to = match &self.owners {
            None => To::Members(&all),
            Some(owners) => To::Owners(owners),
        };
        let reduced = self.reducer().grads(grads, factors, to)?;
        let sharded = self.owners.is_some();
        let jobs = reduced.into_iter().enumerate().map(|(member, grads)| {
            let (own, states) = (self.members[member].clone(), self.states.clone());
            move || {
                let Some(grads) = grads else { return Ok(None) };
                own.update(|own| match own.update(grads) {
                    (own, _) if !sharded => (own.adopt_all(&states), None),
                    updated => updated,
                })
            }
        });
        let updated = self.pool.run(jobs)?;
        match &self.owners {
            None => Ok(()),
            Some(owners) => self.share(updated, owners),
        }
    }

    /// Gives every member the parameters that their owners have updated.
    fn share(&self, updated: PerMember<GradList<LC::Backend>>, owners: &[usize]) -> Result<()> {
        let slots = owners.len();
        let mut updated: Vec<_> = updated
            .into_iter()
            .map(|list| list.unwrap_or_else(|| (0..slots).map(|_| None).collect()))
            .collect();
        let changed: Vec<usize> = (0..slots)
            .filter(|slot| {
                updated[owners[*slot]]
                    .get(*slot)
                    .is_some_and(Option::is_some)
            })
            .collect();
        let lists = updated
            .iter_mut()
            .map(|list| changed.iter().map(|slot| list[*slot].take()).collect())
            .collect();
        let changed_owners: Vec<usize> = changed.iter().map(|slot| owners[*slot]).collect();
        let shared = self.reducer().share(lists, &changed_owners)?;
        let changed = Arc::new(changed);
        let jobs = shared.into_iter().enumerate().map(|(member, tensors)| {
            let (own, changed) = (self.members[member].clone(), changed.clone());
            move || {
                let mut values: Vec<_> = (0..slots).map(|_| None).collect();
                for (slot, tensor) in changed.iter().zip(tensors) {
                    values[*slot] = Some(tensor);
                }
                own.update(|own| (own.adopt(values), ()))
            }
        });
        self.pool.run(jobs).map(|_| ())
    }

    /// The joined output of the validation model for a batch.
    pub(super) fn valid_step(&self, batch: Loaded<ValidInput<LC>>) -> Result<ValidOutput<LC>>
    where
        ValidInput<LC>: Batch<MemberBackend<LC>>,
        ValidOutput<LC>: Gather<MemberBackend<LC>>,
    {
        let Loaded { parts, weights, .. } = batch;
        let jobs = parts.into_iter().zip(&self.members).map(|(part, own)| {
            let own = own.clone();
            move || match part {
                None => Ok(None),
                Some(part) => own.with(|own| Ok(Some(own.model.module.valid().step(part)))),
            }
        });
        let outputs = self.pool.run(jobs)?.into_iter().enumerate();
        let outputs = outputs.filter_map(|(member, output)| Some((member, output?)));
        join::<_, MemberBackend<LC>, _>(&self.mesh, &self.pool, outputs.collect(), weights)
    }

    /// The model as the first member has it.
    pub(super) fn model(&self) -> Result<LC::TrainingModel> {
        self.members[0].with(|own| Ok(own.model.module.clone()))
    }

    /// A learner with the state of all members, as a single device would have it.
    pub(super) fn whole(&self, store: &EventStoreClient) -> Result<Learner<LC>> {
        let (mut whole, states): (Learner<LC>, States<LC::Backend>) =
            self.members[0].with(|own| {
                let learner = own.learner.clone().ok_or_else(no_learner)?;
                let module = &own.model.module;
                let states = take_states::<LC::Backend, _>(module, &self.states);
                Ok((learner, states))
            })?;
        apply_states::<LC::Backend, _>(&whole.model(), &self.states, states);
        if let (Some(_), Some(RecordOps { extend, .. })) = (&self.owners, self.settings.records) {
            let mut record = optimizer_record(&whole, store)?;
            for own in &self.members[1..] {
                let other = own.with(|own| {
                    let learner = own.learner.as_ref();
                    learner.map(|l| optimizer_record(l, store)).transpose()
                })?;
                if let Some(other) = other {
                    extend(&mut record, other);
                }
            }
            whole.load_optim(record);
        }
        Ok(whole)
    }
}

fn no_learner() -> Error {
    Error::Diverged {
        cause: "the first member has no learner".to_string(),
    }
}

/// Which member updates each float parameter, `None` where all update all.
fn place<LC: LearningComponentsTypes>(
    mesh: &Mesh<MemberBackend<LC>>,
    settings: &Settings<LC>,
    learner: &Learner<LC>,
) -> Result<Option<Vec<usize>>> {
    let transfers = &mesh.core().transfers;
    // Burn moves a learner with copies from device to device.
    let reachable = (0..mesh.len()).all(|member| transfers.path(0, member) != Transfer::Host);
    let parameters = floats::<LC::Backend, _>(&learner.model());
    match settings.placement {
        OptimizerPlacement::Replicated if reachable => Ok(None),
        OptimizerPlacement::Replicated => {
            log::warn!(
                "no direct copies between the devices: the optimizer runs on {} alone, which sends \
                 the parameters to the others (with CUDA, NCCL makes them possible)",
                mesh.members()[0].label
            );
            Ok(Some(vec![0; parameters.len()]))
        }
        OptimizerPlacement::Sharded if !reachable => Err(Error::Placement {
            reason:
                "it needs direct copies between the devices, which CUDA has with NCCL; install \
                     it, or use OptimizerPlacement::Replicated"
                    .to_string(),
        }),
        OptimizerPlacement::Sharded => {
            check_mappers::<LC>(learner)?;
            let sizes: Vec<usize> = parameters
                .iter()
                .map(|(_, tensor)| tensor.shape().num_elements())
                .collect();
            Ok(Some(owners(&sizes, mesh.len())))
        }
    }
}

/// Sharing parameters goes through the model's record, which must be the model again when loaded.
fn check_mappers<LC: LearningComponentsTypes>(learner: &Learner<LC>) -> Result<()> {
    let mut copy = learner.clone();
    copy.load_model(learner.model().into_record());
    let read = |learner: &Learner<LC>| -> Vec<_> {
        floats::<LC::Backend, _>(&learner.model())
            .into_iter()
            .map(|(id, tensor)| {
                let data = crate::collective::read::<MemberBackend<LC>>(tensor);
                (id, data.map(|data| data.bytes.to_vec()).ok())
            })
            .collect()
    };
    for ((id, before), (_, after)) in read(learner).into_iter().zip(read(&copy)) {
        if before != after {
            return Err(Error::Placement {
                reason: format!(
                    "parameter {id} is not the same after it was saved and loaded (it has a load or \
                     save mapper); use OptimizerPlacement::Replicated"
                ),
            });
        }
    }
    Ok(())
}
