//! `multigpu verify`

use anyhow::bail;
use burn_multigpu::{Mesh, MeshSpec};
use comfy_table::{CellAlignment, Table, presets};

use super::{Outcome, spec_or_default, training_digits};
use crate::backend::{Task, TrainBackend, dispatch};
use crate::cli::VerifyArgs;
use crate::config::check_lr;
use crate::engine::EngineKind;
use crate::interrupt::Interrupt;
use crate::models::ModelKind;
use crate::ui::Ui;
use crate::verify::{Differences, Report, StepReport, VerifyOptions, run_observed};

/// Lines of the table, besides the first above its bound.
const LINES: usize = 10;

/// Compares the mesh with one device.
///
/// # Errors
///
/// When the learning rate makes no sense, the data cannot be read or a device fails.
pub fn verify(args: VerifyArgs, ui: Ui) -> anyhow::Result<Outcome> {
    if let Some(lr) = args.lr {
        check_lr(lr)?;
    }
    let spec = spec_or_default(args.mesh.devices)?;
    let options = VerifyOptions {
        engine: args.engine,
        model: args.model,
        optimizer: args.optimizer,
        lr: args.lr,
        batch_size: args.batch_size,
        steps: args.steps,
        seed: args.seed,
        dtype: args.dtype,
        digits: training_digits(args.data, args.limit)?,
    };
    let interrupt = Interrupt::install()?;
    let report = dispatch(
        &spec,
        VerifyTask {
            options,
            ui,
            interrupt: interrupt.clone(),
        },
    )?;
    if args.json {
        ui.result(serde_json::to_string_pretty(&report)?);
    } else {
        print(&report, ui);
    }
    Ok(if interrupt.requested() {
        Outcome::Interrupted
    } else if report.passed() {
        Outcome::Done
    } else {
        Outcome::AboveBound
    })
}

struct VerifyTask {
    options: VerifyOptions,
    ui: Ui,
    interrupt: Interrupt,
}

impl Task for VerifyTask {
    type Output = Report;

    fn run<B: TrainBackend>(self, spec: &MeshSpec) -> anyhow::Result<Report> {
        let mesh = Mesh::<B::InnerBackend>::open_spec(spec)?;
        if mesh.len() == 1 {
            self.ui
                .remark("a mesh of one member: there is nothing to reduce");
        } else if self.options.engine == EngineKind::Replica
            && self.options.model == ModelKind::CnnNorm
        {
            self.ui.remark(
                "each replica normalises its own part of the batch, which is not what one device does: \
                 expect differences, or use --engine decorator",
            );
        }
        let bar = self.ui.progress("steps", self.options.steps);
        let report = run_observed::<B>(&mesh, &self.options, |step| {
            bar.set(step, "");
            !self.interrupt.requested()
        })?;
        if report.steps.is_empty() {
            bail!("no step was made");
        }
        Ok(report)
    }
}

fn print(report: &Report, ui: Ui) {
    ui.result(format_args!(
        "engine {}: {} with {} (lr {}) in {}, batches of {} over {}",
        report.engine,
        report.model,
        report.optimizer,
        report.lr,
        report.dtype,
        report.batch_size,
        report.members.join(", ")
    ));
    ui.result(table(report));
    let worst = report.worst();
    ui.result(format_args!(
        "largest differences: loss {}, gradients {}, parameters {}; at most {:.1} % of the bound",
        number(worst.loss),
        number(worst.gradients),
        number(worst.parameters),
        100.0 * report.closest()
    ));
    ui.result(format_args!(
        "sums of the reductions: {} by CubeCL kernels, {} in plain Rust",
        report.kernel_sums, report.host_sums
    ));
    match report.jumped() {
        0 => {}
        1 => ui.result("* rounding jumped: one device makes the same step from where the mesh was"),
        _ => {
            ui.result("* rounding jumped: one device makes the same steps from where the mesh was")
        }
    }
    let drifted = report.replicas_equal == Some(false);
    if drifted {
        ui.result("the replicas do not hold the same parameters");
    }
    match report.first_above() {
        None if !drifted => ui.result("within the bounds"),
        None => {}
        Some(step) => ui.result(format_args!("ABOVE THE BOUND from step {} on", step.step)),
    }
}

/// Some steps, evenly spread, with the first one above its bound among them.
fn chosen(report: &Report) -> Vec<&StepReport> {
    let count = report.steps.len();
    let above = report.first_above().map(|step| step.step);
    let jumps = report.steps.iter().filter(|step| step.continued.is_some());
    let jump = jumps.map(|step| step.step).next();
    let every = count.div_ceil(LINES).max(1);
    report
        .steps
        .iter()
        .filter(|step| {
            step.step % every == 0
                || step.step == 1
                || step.step == count
                || Some(step.step) == jump
                || Some(step.step) == above
        })
        .collect()
}

fn table(report: &Report) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_BORDERS_ONLY_CONDENSED);
    let mut head = vec!["step", "loss", "d loss", "d gradients", "d parameters"];
    let rounding = report
        .steps
        .first()
        .is_some_and(|step| step.rounding.is_some());
    if rounding {
        head.push("rounding (l, g, p)");
    }
    head.push("bound (l, g, p)");
    let columns = head.len();
    table.set_header(head);
    for step in chosen(report) {
        let mut row = vec![
            format!(
                "{}{}",
                if step.continued.is_some() { "*" } else { "" },
                step.step
            ),
            format!("{:.5}", step.loss),
            number(step.mesh.loss),
            number(step.mesh.gradients),
            number(step.mesh.parameters),
        ];
        row.extend(step.rounding.map(triple));
        row.push(triple(step.bound));
        table.add_row(row);
    }
    for column in 0..columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn triple(values: Differences) -> String {
    format!(
        "{} {} {}",
        number(values.loss),
        number(values.gradients),
        number(values.parameters)
    )
}

fn number(value: f64) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else {
        format!("{value:.1e}")
    }
}
