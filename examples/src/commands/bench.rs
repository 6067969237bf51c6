//! `multigpu bench`

use burn_multigpu::{Mesh, MeshSpec};
use comfy_table::{CellAlignment, Table, presets};

use super::{Outcome, spec_or_default, training_digits};
use crate::backend::{Task, TrainBackend, dispatch};
use crate::cli::BenchArgs;
use crate::throughput::{BenchOptions, BenchReport, Speed, run};
use crate::ui::Ui;

/// Measures the throughput on one device and on meshes of 1 to N members.
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
            format!("mesh of {}", mesh.members),
            &mesh.speed,
            format!("{:.2}", mesh.scaling),
            format!("{:.0} %", 100.0 * mesh.efficiency),
        ));
    }
    for column in 1..6 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    ui.result(table);
}
