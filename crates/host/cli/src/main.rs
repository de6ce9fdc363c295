//! The `airlane` program.

fn main() -> std::process::ExitCode {
    airlane_cli::main()
}
