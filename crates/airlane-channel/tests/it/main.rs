//! What a channel does to frames, against closed forms and for any input.
//! All files are modules of one program: each program is linked on its own, which takes seconds.

mod closed_forms;
mod properties;
