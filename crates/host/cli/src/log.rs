//! The log of long-running verbs: lines are written to standard error, or lost and counted; nothing
//! ever waits for them.
//!
//! The disk that takes the log may be full, or its reader may have stopped or gone away. A separate
//! thread writes, and other threads hand it their lines without waiting. A line that finds no room
//! in the queue or cannot be written is counted, and the next line that can be written is preceded
//! by the number lost. `tracing_appender` also drops lines, but does not report how many, and gives
//! no access to its thread, which should not keep the program's privileges.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use airlane_base::config::{Problem, RefusedFile};
use airlane_live::privileges;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::args::LogFormat;
use crate::fault::{BadInput, LoggedError, is_bad_input};
use crate::output::{self, Several};

/// Which log lines to show, in the syntax of `tracing_subscriber::EnvFilter`.
const VARIABLE: &str = "AIRLANE_LOG";
/// Capacity of the queue, lines of some hundred bytes each.
const LINES: usize = 1024;
/// Time limit for writing the last lines.
const PATIENCE: Duration = Duration::from_millis(500);

/// A task of the writing thread.
enum Task {
    Write(Vec<u8>),
    /// Answers once everything before it has been written.
    Answer(SyncSender<()>),
}

/// The entrance of the queue.
#[derive(Clone)]
struct Lines {
    tasks: SyncSender<Task>,
    lost: Arc<AtomicU64>,
}

impl Lines {
    /// Starts a thread that writes to `out`. `note` makes a line from the number of lost lines.
    fn start(
        mut out: impl Write + Send + 'static,
        note: impl Fn(u64) -> String + Send + 'static,
    ) -> io::Result<Self> {
        let (tasks, waiting) = sync_channel(LINES);
        let lost = Arc::new(AtomicU64::new(0));
        let lines = Self {
            tasks,
            lost: Arc::clone(&lost),
        };
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                privileges::give_up_all();
                write_all(&waiting, &lost, &mut out, &note);
            })?;
        Ok(lines)
    }
}

fn write_all(
    waiting: &Receiver<Task>,
    lost: &AtomicU64,
    out: &mut impl Write,
    note: &impl Fn(u64) -> String,
) {
    while let Ok(task) = waiting.recv() {
        match task {
            Task::Write(line) => {
                let before = lost.swap(0, Ordering::Relaxed);
                let told = before == 0 || out.write_all(note(before).as_bytes()).is_ok();
                let written = told && out.write_all(&line).and_then(|()| out.flush()).is_ok();
                let again = if told { 0 } else { before };
                lost.fetch_add(again + u64::from(!written), Ordering::Relaxed);
            }
            Task::Answer(done) => _ = done.try_send(()),
        }
    }
}

/// Each call takes one line.
impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.tasks.try_send(Task::Write(line.to_vec())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;
    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// The log of this process. Dropping it flushes the last lines, if they can be written soon.
pub(crate) struct Log(Lines);

impl Drop for Log {
    fn drop(&mut self) {
        let (done, is_done) = sync_channel(1);
        if self.0.tasks.try_send(Task::Answer(done)).is_ok() {
            let _nobody_takes_them = is_done.recv_timeout(PATIENCE);
        }
    }
}

/// Passes on the result `ran`. If the log format is JSON, its error is written to the log: to
/// `log`, or to a new one if none has been started.
pub(crate) fn report<T>(
    format: LogFormat,
    mut log: Option<Log>,
    ran: anyhow::Result<T>,
) -> anyhow::Result<T> {
    let error = match ran {
        Err(error) if format == LogFormat::Json => error,
        ran => return ran,
    };
    if log.is_none() {
        log = Some(start(format)?);
    }
    if let Some(config) = error.downcast_ref::<RefusedFile>() {
        for problem in config.problems() {
            let Problem {
                file,
                line,
                column,
                path,
                help,
                ..
            } = problem;
            tracing::error!(file, line, column, path, help, "{}", problem.message);
        }
    } else if let Some(Several(all)) = error.downcast_ref() {
        all.iter().for_each(|text| tracing::error!("{text}"));
    } else {
        tracing::error!("{}", output::with_causes(&error));
    }
    drop(log);
    let bad_input = is_bad_input(&error);
    Err(LoggedError { bad_input }.into())
}

/// What the variable asks for: a level, or levels by module as `MODULE=LEVEL,...`.
fn filter(text: &str) -> Result<EnvFilter, BadInput> {
    let text = text.trim();
    let wrong = |why: &str| BadInput(format!("{VARIABLE}={text}: {why}"));
    // A single word would be taken for a module, of which everything is logged, and nothing of the others.
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    match text {
        "" => Ok(EnvFilter::new("info")),
        word if !word.contains('=') && !word.split(',').all(is_level) => {
            Err(wrong("write off, error, warn, info, debug or trace"))
        }
        text => EnvFilter::try_new(text).map_err(|error| wrong(&error.to_string())),
    }
}

/// Sends log lines to standard error from now on.
pub(crate) fn start(format: LogFormat) -> anyhow::Result<Log> {
    let filter = filter(&std::env::var(VARIABLE).unwrap_or_default())?;
    let lines = Lines::start(io::stderr(), move |lost| match format {
        LogFormat::Human => format!("{lost} lines before this one were lost (lost_lines={lost})\n"),
        LogFormat::Json => {
            let message = "lines before this one were lost";
            let line =
                serde_json::json!({ "level": "WARN", "message": message, "lost_lines": lost });
            format!("{line}\n")
        }
    })?;
    let choice = anstream::AutoStream::choice(&io::stderr());
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(lines.clone())
        .with_target(false);
    match format {
        LogFormat::Human => log.with_ansi(choice != anstream::ColorChoice::Never).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    Ok(Log(lines))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, Read as _};

    fn note(lost: u64) -> String {
        format!("lost {lost}\n")
    }

    fn say(lines: &mut Lines, line: &str) {
        lines.write_all(line.as_bytes()).unwrap();
    }

    #[test]
    fn a_word_that_is_no_level_is_refused() {
        for (text, is_right) in [
            ("", true),
            ("INFO", true),
            ("airlane_live=debug,warn", true),
            ("warning", false),
            ("bogus", false),
        ] {
            let filter = filter(text);
            assert_eq!(filter.is_ok(), is_right, "{text}");
            if let Err(BadInput(why)) = filter {
                assert!(why.contains("error, warn, info"), "{why}");
            }
        }
    }

    #[test]
    fn a_stalled_log_reader_blocks_nothing_and_losses_are_counted() {
        let (reader, writer) = io::pipe().unwrap();
        let mut lines = Lines::start(writer, note).unwrap();
        // Far more than the pipe and the queue hold.
        let line = format!("{}\n", "x".repeat(999));
        let all = 4 * LINES as u64;
        (0..all).for_each(|_| say(&mut lines, &line));
        // The first line written once there is room is preceded by the number of lines lost
        // meanwhile.
        let (mut read, mut lost) = (0, 0);
        for text in BufReader::new(reader).lines() {
            let text = text.unwrap();
            match text.strip_prefix("lost ") {
                Some(number) => lost += number.parse::<u64>().unwrap(),
                None => {
                    assert_eq!(text, line.trim_end());
                    read += 1;
                }
            }
            if read + lost == all {
                break;
            }
        }
        assert!(lost > all / 2, "{lost} of {all}");
        drop(Log(lines));
    }

    #[test]
    fn lines_lost_to_a_full_disk_are_counted() {
        /// A disk that is full for a number of writes.
        struct Disk(u32, io::PipeWriter);
        impl Write for Disk {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.saturating_sub(1);
                match self.0 {
                    0 => self.1.write(bytes),
                    _ => Err(io::ErrorKind::StorageFull.into()),
                }
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (mut reader, writer) = io::pipe().unwrap();
        let mut lines = Lines::start(Disk(4, writer), note).unwrap();
        for line in ["one\n", "two\n", "three\n", "four\n"] {
            say(&mut lines, line);
        }
        drop(Log(lines));
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "lost 3\nfour\n");
    }
}
