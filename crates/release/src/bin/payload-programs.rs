//! Compiles the payload's programs, and nothing of Seedling: it is made in a minute, so that the compilers of both languages work side
//! by side on a machine that has neither yet. `seedling release build` finds what it has made.

use seedling_release::{compile, default_cache};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match compile(Path::new("release"), &default_cache()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
