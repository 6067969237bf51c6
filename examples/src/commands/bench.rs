//! `multigpu bench`

use burn_multigpu::{Mesh, MeshSpec};
use comfy_table::{CellAlignment, Table, presets};

use super::{Outcome, spec_or_default, training_digits};
use crate::backend::{Task, TrainBackend, dispatch};
use crate::cli::BenchArgs;
use crate::throughput::{BenchOptions, BenchReport, OperationCosts, Speed, UploadRates, run};
use crate::ui::Ui;

/// Measures the throughput on one device and, with both engines, on meshes of 1 to N members.
///
/// # Errors
///
/// When the data cannot be read or a device fails.
pub fn bench(args: BenchArgs, ui: Ui) -> anyhow::Result<Outcome> {
    let spec = spec_or_default(args.mesh.devices)?;
    let options = BenchOptions {
        model: args.model,
        optimizer: args.optimizer,
        batch_size: args.batch_size,
        per_member: args.per_member,
        steps: args.steps,
        blocks: args.blocks,
        warmup: args.warmup,
        dtype: args.dtype,
        digits: training_digits(args.data, None)?,
    };
    let report = dispatch(&spec, BenchTask { options, ui })?;
    if args.json {
        ui.result(serde_json::to_string_pretty(&report)?);
    } else {
        print(&report, ui);
    }
    Ok(Outcome::Done)
}

struct BenchTask {
    options: BenchOptions,
    ui: Ui,
}

impl Task for BenchTask {
    type Output = BenchReport;

    fn run<B: TrainBackend>(self, spec: &MeshSpec) -> anyhow::Result<BenchReport> {
        let mesh = Mesh::<B::InnerBackend>::open_spec(spec)?;
        run::<B>(&mesh, &self.options, |what| {
            self.ui.remark(format_args!("measuring: {what}"));
        })
    }
}

fn print(report: &BenchReport, ui: Ui) {
    ui.result(format_args!(
        "{} with {} in {} on {} ({})",
        report.model,
        report.optimizer,
        report.dtype,
        report.devices.join(", "),
        report.names[0]
    ));
    let mut table = Table::new();
    table.load_preset(presets::ASCII_BORDERS_ONLY_CONDENSED);
    table.set_header(["", "batch", "items/s", "blocks", "scaling", "efficiency"]);
    let row = |name: String, speed: &Speed, scaling: String, efficiency: String| {
        let low = speed.blocks.iter().copied().fold(f64::INFINITY, f64::min);
        let high = speed.blocks.iter().copied().fold(0.0, f64::max);
        [
            name,
            speed.batch_size.to_string(),
            format!("{:.0}", speed.items_per_second),
            format!("{low:.0} to {high:.0}"),
            scaling,
            efficiency,
        ]
    };
    let nothing = String::new;
    table.add_row(row(
        "plain Burn".to_owned(),
        &report.plain,
        nothing(),
        nothing(),
    ));
    for mesh in &report.mesh {
        table.add_row(row(
            format!("{}, mesh of {}", mesh.engine, mesh.members),
            &mesh.speed,
            format!("{:.2}", mesh.scaling),
            format!("{:.0} %", 100.0 * mesh.efficiency),
        ));
    }
    ui.result(right_aligned(table));
    print_operations(&report.operations, ui);
    print_uploads(&report.upload, ui);
}

fn print_uploads(rates: &UploadRates, ui: Ui) {
    ui.result(format_args!(
        "upload of a batch of {} MiB, cut along its first dimension",
        rates.bytes >> 20
    ));
    let mut table = Table::new();
    table.load_preset(presets::ASCII_BORDERS_ONLY_CONDENSED);
    table.set_header(["", "GiB/s", "times memcpy"]);
    let mut row = |name: String, rate: f64| {
        let times = format!("{:.2}", rate / rates.memcpy);
        table.add_row([name, format!("{rate:.2}"), times]);
    };
    row("memcpy, one thread".to_owned(), rates.memcpy);
    row("plain Burn".to_owned(), rates.plain);
    for (rate, members) in rates.mesh.iter().zip(1..) {
        row(format!("decorator, mesh of {members}"), *rate);
    }
    ui.result(right_aligned(table));
}

fn print_operations(costs: &OperationCosts, ui: Ui) {
    ui.result(format_args!(
        "cost of an operation on {} elements, in chains of {}",
        costs.elements, costs.operations
    ));
    let mut table = Table::new();
    table.load_preset(presets::ASCII_BORDERS_ONLY_CONDENSED);
    table.set_header(["", "microseconds", "times plain"]);
    let number = |value: f64| format!("{value:.2}");
    table.add_row([
        "plain Burn".to_owned(),
        number(costs.plain_microseconds),
        String::new(),
    ]);
    for mesh in &costs.mesh {
        table.add_row([
            format!("decorator, mesh of {}", mesh.members),
            number(mesh.microseconds),
            number(mesh.ratio),
        ]);
    }
    ui.result(right_aligned(table));
}

/// With all columns but the first, which holds names, on the right.
fn right_aligned(mut table: Table) -> Table {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
