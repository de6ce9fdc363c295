#![no_main]

#[allow(dead_code, reason = "each target uses one of them")]
#[path = "../strangers.rs"]
mod strangers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| strangers::metrics(data));
