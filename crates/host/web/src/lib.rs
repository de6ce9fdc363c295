//! The simulator as a page has it: one question in JSON, one answer in JSON.
//!
//! The page writes its question to where [`airlane_reserve`] says, calls [`airlane_ask`], and reads as many bytes as that
//! says from where [`airlane_answer`] says. `web/src/protocol.ts` has the types of questions and answers. A wrong scenario is
//! an answer, `{"error": ..}`. A defect ends the instance: the page reads what the panic said in the same way and begins
//! a new one. Whoever wants to cancel ends the worker that has asked.

mod ask;
mod series;
mod world;

use std::sync::Mutex;

pub use ask::answer;

/// Questions, then answers. A worker has one thread.
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

/// Makes room for a question of so many bytes and gives its place.
#[unsafe(no_mangle)]
pub extern "C" fn airlane_reserve(len: usize) -> *const u8 {
    keep(vec![0; len]);
    place()
}

/// Answers the question that was written and gives the length of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn airlane_ask() -> usize {
    std::panic::set_hook(Box::new(|panic| _ = keep(panic.to_string().into_bytes())));
    let question = std::mem::take(&mut *BUFFER.lock().unwrap_or_else(|broken| broken.into_inner()));
    keep(answer(&question).into_bytes())
}

/// Where the answer is, or what a panic said.
#[unsafe(no_mangle)]
pub extern "C" fn airlane_answer() -> *const u8 {
    place()
}

/// How long it is: after a panic nobody has said so.
#[unsafe(no_mangle)]
pub extern "C" fn airlane_answer_len() -> usize {
    BUFFER
        .lock()
        .unwrap_or_else(|broken| broken.into_inner())
        .len()
}
