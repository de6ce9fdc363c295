//! Writes a journal: collects records into blocks for the sink.

use std::io;

use airlane_base::{Duration, Instant};
use airlane_link::PortConfig;

use super::format::{Input, JournalBlock, Outputs, write_head};

/// A block is finished at this length in bytes, or at this age.
const FULL: usize = 1 << 16;
const OLD: Duration = Duration::from_secs(1);
/// Capacity of a block, with room for the record that fills it.
const ROOM: usize = FULL + (1 << 12);

/// Destination of a journal. A sink that is dropped must finish what it has taken.
pub trait Sink: std::fmt::Debug {
    /// Takes the next bytes. Returns `false` to end the journal.
    fn write(&mut self, bytes: Vec<u8>) -> bool;
}

/// A journal being written.
#[derive(Debug)]
pub(super) struct Journal {
    sink: Option<Box<dyn Sink>>,
    block: JournalBlock,
    began: Option<Instant>,
    pub(super) outputs: Outputs,
}

impl Journal {
    pub(super) fn begin(mut sink: Box<dyn Sink>, config: &PortConfig) -> io::Result<Self> {
        let mut head = Vec::new();
        write_head(config, &mut head)?;
        let goes_on = sink.write(head);
        Ok(Self {
            sink: Some(sink).filter(|_| goes_on),
            block: JournalBlock::new(ROOM),
            began: None,
            outputs: Outputs::new(),
        })
    }

    /// Begins an input record without data.
    pub(super) fn input(&mut self, now: Instant, what: Input) -> &mut JournalBlock {
        if self.block.records.len() >= FULL || self.began.is_some_and(|began| now >= began + OLD) {
            self.finish_block(now);
        }
        self.began.get_or_insert(now);
        self.block.begin(what, now);
        &mut self.block
    }

    /// Whether it is still being written.
    pub(super) const fn is_open(&self) -> bool {
        self.sink.is_some()
    }

    fn finish_block(&mut self, now: Instant) {
        let Some(sink) = &mut self.sink else {
            self.block = JournalBlock::new(0);
            return;
        };
        if self.began.take().is_none() {
            return;
        }
        self.block.begin(Input::Check, now);
        let sum = self.outputs.checksum().to_be_bytes();
        self.block.records.extend_from_slice(&sum);
        if !sink.write(self.block.take(ROOM)) {
            self.sink = None;
        }
    }
}

impl Drop for Journal {
    /// Writes the last block, even after a panic: the last inputs are the ones that explain it.
    fn drop(&mut self) {
        let last = self.began.unwrap_or(Instant::ORIGIN);
        self.finish_block(last);
    }
}
