//! Every operation on a mesh gives the results of one device.
#![allow(clippy::unwrap_used, missing_docs)]

use burn::backend::Flex;
use burn_multigpu::backend::operation_names;
use burn_multigpu_tests::operations::run::{Report, run};
use burn_multigpu_tests::operations::{EXCEPTIONS, MARKER, contradictions, render};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

/// All cases, run once for the tests here.
static REPORT: LazyLock<Report> = LazyLock::new(|| run::<Flex>(&Default::default(), &[1, 2, 3, 5]));

#[test]
fn every_operation_gives_the_results_of_one_device() {
    let failures = &REPORT.failures;
    assert!(
        failures.is_empty(),
        "{} failures in {} runs of {} cases:\n{}",
        failures.len(),
        REPORT.runs,
        REPORT.cases,
        failures.join("\n")
    );
}

#[test]
fn every_operation_is_met_or_excepted() {
    let met: BTreeSet<&str> = REPORT.met.keys().copied().collect();
    let excepted: BTreeSet<&str> = EXCEPTIONS.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        excepted.len(),
        EXCEPTIONS.len(),
        "an exception is listed twice"
    );
    let names: BTreeSet<&str> = operation_names().iter().copied().collect();
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !met.contains(*name) && !excepted.contains(*name))
        .collect();
    assert!(missing.is_empty(), "no case meets {missing:?}");
    let stale: Vec<_> = excepted.intersection(&met).collect();
    assert!(stale.is_empty(), "exceptions that cases meet: {stale:?}");
    let unknown: Vec<_> = excepted
        .union(&met)
        .filter(|name| !names.contains(*name))
        .collect();
    assert!(unknown.is_empty(), "no such operations: {unknown:?}");
}

#[test]
fn the_table_in_the_book_is_true_and_current() {
    let wrong = contradictions(&REPORT);
    assert!(
        wrong.is_empty(),
        "in parts or not, as the cases show: {wrong:?}"
    );
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/operations.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let parts: Vec<&str> = text.split(MARKER).collect();
    let &[before, table, after] = parts.as_slice() else {
        panic!("{} has two of {MARKER}", page.display());
    };
    let wanted = render(&REPORT);
    if table.trim() == wanted.trim() {
        return;
    }
    assert!(
        std::env::var_os("MULTIGPU_BLESS").is_some(),
        "docs/src/operations.md is not current: run this test with MULTIGPU_BLESS=1"
    );
    let new = format!("{before}{MARKER}\n\n{}\n\n{MARKER}{after}", wanted.trim());
    std::fs::write(&page, new).unwrap();
}
