//! Where members meet to exchange something, each on its own thread.
//!
//! Members come to their meetings in the same order, since all queues hold the same commands, and
//! every member comes, a failed one with its error: nobody waits for ever.

use super::session::Fault;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What each member brought, in their order; `None` for those that have not come yet.
type Brought<T> = Vec<Option<Result<T, Arc<Fault>>>>;

/// A place for one thing from each member.
#[derive(Debug)]
pub(super) struct Meeting<T> {
    brought: Mutex<Brought<T>>,
    arrived: Condvar,
}

impl<T: Clone> Meeting<T> {
    pub(super) fn new(members: usize) -> Self {
        Self {
            brought: Mutex::new((0..members).map(|_| None).collect()),
            arrived: Condvar::new(),
        }
    }

    /// Leaves what a member brings, and does not wait.
    pub(super) fn bring(&self, member: usize, thing: Result<T, Arc<Fault>>) {
        let mut brought = self.lock();
        // A member that fails halfway through comes a second time; its first word counts.
        brought[member].get_or_insert(thing);
        drop(brought);
        self.arrived.notify_all();
    }

    /// Waits for all members and returns what they brought, in their order, or the first error.
    pub(super) fn all(&self) -> Result<Vec<T>, Arc<Fault>> {
        let brought = self
            .arrived
            .wait_while(self.lock(), |brought| brought.iter().any(Option::is_none))
            .unwrap_or_else(PoisonError::into_inner);
        brought.iter().flatten().cloned().collect()
    }

    /// Waits for one member.
    pub(super) fn from(&self, member: usize) -> Result<T, Arc<Fault>> {
        let mut brought = self.lock();
        loop {
            if let Some(thing) = &brought[member] {
                return thing.clone();
            }
            brought = self
                .arrived
                .wait(brought)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Brought<T>> {
        self.brought.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where members stand in line for what they must do one after the other, over all commands: none
/// is served for a later command before the last one was for an earlier.
#[derive(Debug, Default)]
pub(super) struct Line {
    serving: Arc<Serving>,
    given: usize,
}

/// A turn for each member, in their order.
#[derive(Debug)]
pub(super) struct Turns {
    serving: Arc<Serving>,
    first: usize,
}

/// A member's turn.
#[derive(Debug)]
pub(super) struct TurnGuard<'a> {
    serving: &'a Serving,
    turn: usize,
}

/// The turn that is served; those before it have been.
#[derive(Debug, Default)]
struct Serving {
    turn: Mutex<usize>,
    moved: Condvar,
}

impl Line {
    /// The next turns. Every member must take its own, or nobody is served after it.
    pub(super) fn turns(&mut self, members: usize) -> Turns {
        let first = self.given;
        self.given += members;
        Turns {
            serving: self.serving.clone(),
            first,
        }
    }
}

impl Turns {
    /// Waits for the member's turn, which ends when the guard is dropped.
    pub(super) fn wait(&self, member: usize) -> TurnGuard<'_> {
        let turn = self.first + member;
        let served = self.serving.lock();
        drop(
            self.serving
                .moved
                .wait_while(served, |served| *served < turn)
                .unwrap_or_else(PoisonError::into_inner),
        );
        TurnGuard {
            serving: &self.serving,
            turn,
        }
    }
}

impl Serving {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        let mut served = self.serving.lock();
        // A member that failed in its turn comes a second time, when others have gone on.
        *served = (*served).max(self.turn + 1);
        drop(served);
        self.serving.moved.notify_all();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn all_see_what_all_brought_in_member_order() {
        let meeting = Meeting::new(3);
        std::thread::scope(|scope| {
            let seen: Vec<_> = [2, 0, 1]
                .map(|member| {
                    let meeting = &meeting;
                    scope.spawn(move || {
                        meeting.bring(member, Ok(member * 10));
                        meeting.all().unwrap()
                    })
                })
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect();
            assert_eq!(seen, vec![vec![0, 10, 20]; 3]);
        });
    }

    #[test]
    fn an_error_reaches_everyone() {
        let meeting = Meeting::new(2);
        let fault = Arc::new(Fault::closed("flex:0,1"));
        meeting.bring(0, Ok(1));
        meeting.bring(1, Err(fault.clone()));
        assert_eq!(meeting.all().unwrap_err().to_string(), fault.to_string());
    }

    #[test]
    fn turns_are_taken_in_order() {
        let mut line = Line::default();
        let commands = [line.turns(3), line.turns(3)];
        let order = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for member in (0..3).rev() {
                let (commands, order) = (&commands, &order);
                scope.spawn(move || {
                    for (command, turns) in commands.iter().enumerate() {
                        let _turn = turns.wait(member);
                        order.lock().unwrap().push((command, member));
                    }
                });
            }
        });
        let expected = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)];
        assert_eq!(order.into_inner().unwrap(), expected);
        // As a member does that failed in its turn.
        drop(commands[0].wait(0));
        drop(line.turns(1).wait(0));
    }
}
