//! The simulator as a WebAssembly module of a page: one question, one answer in JSON.
//!
//! The page writes its question to where [`airlane_reserve`] says, calls [`airlane_ask`], and reads as many bytes as that
//! says from where [`airlane_answer`] says. `web/src/protocol.ts` has the types of questions and answers. A wrong scenario is
//! an answer, `{"error": ..}`. A panic ends the instance: the page reads its message in the same way and starts a new
//! instance. To cancel a question, the page terminates the worker that asked it.

mod ask;
mod figure;
mod series;
mod start;
mod world;

use std::sync::Mutex;

pub use ask::answer;

/// Holds the question, then the answer. A worker has one thread.
static BUFFER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn keep(bytes: Vec<u8>) -> usize {
    let mut buffer = BUFFER.lock().unwrap_or_else(|broken| broken.into_inner());
    *buffer = bytes;
    buffer.len()
}

fn place() -> *const u8 {
    let buffer = BUFFER.lock().unwrap_or_else(|broken| broken.into_inner());
    buffer.as_ptr()
}

/// Reserves a buffer for a question of `len` bytes and returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn airlane_reserve(len: usize) -> *const u8 {
    keep(vec![0; len]);
    place()
}

/// Answers the question in the buffer and returns the length of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn airlane_ask() -> usize {
    std::panic::set_hook(Box::new(|panic| _ = keep(panic.to_string().into_bytes())));
    let question = std::mem::take(&mut *BUFFER.lock().unwrap_or_else(|broken| broken.into_inner()));
    keep(answer(&question).into_bytes())
}

/// Address of the answer, or of the message of a panic.
#[unsafe(no_mangle)]
pub extern "C" fn airlane_answer() -> *const u8 {
    place()
}

/// Length of the answer, or of the message of a panic.
#[unsafe(no_mangle)]
pub extern "C" fn airlane_answer_len() -> usize {
    BUFFER
        .lock()
        .unwrap_or_else(|broken| broken.into_inner())
        .len()
}
