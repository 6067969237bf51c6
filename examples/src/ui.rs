//! What the program says: results on stdout, everything else on stderr.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How much the program says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ui {
    quiet: bool,
}

impl Ui {
    /// A quiet one shows no progress bars and no remarks.
    pub fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// A line of the result, on stdout.
    pub fn result(&self, text: impl std::fmt::Display) {
        // The reader may have gone (`multigpu devices | head`), which is no fault of the run.
        writeln!(io::stdout().lock(), "{text}").ok();
    }

    /// A line that people want to see and programs do not, on stderr.
    pub fn remark(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            self.line(text);
        }
    }

    /// A line on stderr, also of a quiet program.
    pub fn line(&self, text: impl std::fmt::Display) {
        writeln!(io::stderr().lock(), "{text}").ok();
    }

    /// A progress bar over so many items; an invisible one when the program is quiet or nobody
    /// watches a terminal.
    pub fn progress(&self, title: impl Into<String>, items: usize) -> Progress {
        let visible = !self.quiet && io::stderr().is_terminal();
        let target = if visible {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(items as u64), target);
        let template = "{prefix} [{bar:30}] {pos}/{len}  {msg}  {per_sec}  {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> ").with_key(
                "per_sec",
                |state: &indicatif::ProgressState, out: &mut dyn std::fmt::Write| {
                    let _ = write!(out, "{:.0} items/s", state.per_sec());
                },
            ));
        }
        bar.set_prefix(title.into());
        if visible {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Progress { bar }
    }
}

/// A progress bar; it is wiped when dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Where the bar is, with a remark beside it.
    pub fn set(&self, items: usize, message: impl Into<String>) {
        self.bar.set_position(items as u64);
        self.bar.set_message(message.into());
    }

    /// Says where the bar begins: items done earlier count for the position, not for the speed.
    pub fn start_at(&self, items: usize) {
        self.bar.set_position(items as u64);
        self.bar.reset_eta();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Sends log records (of this program, of burn-multigpu and of Burn) to stderr: warnings, with one
/// `-v` also information, with two also details.
pub fn install_logger(verbosity: u8) {
    struct Stderr;
    impl log::Log for Stderr {
        fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
            metadata.level() <= log::max_level()
        }
        fn log(&self, record: &log::Record<'_>) {
            if self.enabled(record.metadata()) {
                let (level, target) = (record.level(), record.target());
                writeln!(io::stderr().lock(), "{level} {target}: {}", record.args()).ok();
            }
        }
        fn flush(&self) {}
    }
    static LOGGER: Stderr = Stderr;
    // A second call in one process changes the level alone.
    log::set_logger(&LOGGER).ok();
    log::set_max_level(match verbosity {
        0 => log::LevelFilter::Warn,
        1 => log::LevelFilter::Info,
        _ => log::LevelFilter::Debug,
    });
}
