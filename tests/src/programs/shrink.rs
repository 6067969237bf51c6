//! Smaller programs that still fail.

use super::create::Create;
use super::{Id, Op, Program};
use std::collections::HashSet;

/// Makes a program smaller as long as it fails: statements go with all that need them, operations
/// become data, outputs, terms and hints go.
pub fn shrink(mut program: Program, fails: impl Fn(&Program) -> bool) -> Program {
    loop {
        let before = size(&program);
        for step in [
            drop_statements,
            to_data,
            drop_outputs,
            drop_terms,
            drop_hints,
            drop_step,
        ] {
            program = step(program, &fails);
        }
        if size(&program) == before {
            return program;
        }
    }
}

type Fails<'a> = &'a dyn Fn(&Program) -> bool;

fn size(program: &Program) -> [usize; 6] {
    let statements = &program.statements;
    [
        statements.len(),
        statements
            .iter()
            .map(|statement| statement.args.len())
            .sum(),
        program.outputs.len(),
        program.loss.len(),
        statements
            .iter()
            .filter(|statement| statement.hint.is_some())
            .count(),
        usize::from(program.step),
    ]
}

/// Tries each change, from the last one.
fn each(
    mut program: Program,
    fails: Fails<'_>,
    count: fn(&Program) -> usize,
    change: fn(&Program, usize) -> Option<Program>,
) -> Program {
    for index in (0..count(&program)).rev() {
        if index < count(&program)
            && let Some(smaller) = change(&program, index)
            && !smaller.loss.is_empty()
            && fails(&smaller)
        {
            program = smaller;
        }
    }
    program
}

fn drop_statements(program: Program, fails: Fails<'_>) -> Program {
    each(
        program,
        fails,
        |program| program.statements.len(),
        |program, index| {
            let mut smaller = program.clone();
            let mut gone: HashSet<Id> = HashSet::new();
            let mut at = 0;
            smaller.statements.retain(|statement| {
                let goes = at == index || statement.args.iter().any(|id| gone.contains(id));
                at += 1;
                if goes {
                    gone.extend(&statement.outs);
                }
                !goes
            });
            smaller.outputs.retain(|(id, _)| !gone.contains(id));
            smaller.loss.retain(|(id, _)| !gone.contains(id));
            Some(smaller)
        },
    )
}

fn to_data(program: Program, fails: Fails<'_>) -> Program {
    each(
        program,
        fails,
        |program| program.statements.len(),
        |program, index| {
            let mut smaller = program.clone();
            let statement = &mut smaller.statements[index];
            if statement.args.is_empty() || statement.outs.len() > 1 {
                return None;
            }
            statement.args.clear();
            statement.op = Op::Create(Create::Data { seed: 1 });
            Some(smaller)
        },
    )
}

fn drop_outputs(program: Program, fails: Fails<'_>) -> Program {
    each(
        program,
        fails,
        |program| program.outputs.len(),
        |program, index| {
            let mut smaller = program.clone();
            smaller.outputs.remove(index);
            Some(smaller)
        },
    )
}

fn drop_terms(program: Program, fails: Fails<'_>) -> Program {
    each(
        program,
        fails,
        |program| program.loss.len(),
        |program, index| {
            let mut smaller = program.clone();
            smaller.loss.remove(index);
            Some(smaller)
        },
    )
}

fn drop_hints(program: Program, fails: Fails<'_>) -> Program {
    each(
        program,
        fails,
        |program| program.statements.len(),
        |program, index| {
            let mut smaller = program.clone();
            smaller.statements[index].hint.take()?;
            Some(smaller)
        },
    )
}

fn drop_step(program: Program, fails: Fails<'_>) -> Program {
    each(
        program,
        fails,
        |program| usize::from(program.step),
        |program, _| {
            Some(Program {
                step: false,
                ..program.clone()
            })
        },
    )
}
