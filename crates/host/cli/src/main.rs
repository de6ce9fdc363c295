//! The `airlane` program.

#[cfg(not(any(feature = "live", feature = "lab")))]
compile_error!("the program does nothing without the feature `live` or `lab`");

fn main() -> std::process::ExitCode {
    airlane_cli::main()
}
