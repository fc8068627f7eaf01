//! The program `ngit-purgatory`.

fn main() -> std::process::ExitCode {
    ngit_adapter::cli::main()
}
