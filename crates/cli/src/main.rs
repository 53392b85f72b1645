//! The `ragen` binary.

fn main() -> std::process::ExitCode {
    ragen::main()
}
