//! `cargo page`: the core for a page, compiled for WebAssembly and linked with its JavaScript.
//!
//! Scope: a command apart from xtask, since its linker takes a minute to compile and needs nothing else of Dragstrip. Out of
//! scope: anything of the page itself (playground/) or of its core (crates/play). Exit codes: 0 done, 1 it failed.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this program's work is files; the bans are for the core crates"
)]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use wasm_bindgen_cli_support::Bindgen;

/// The target of a page.
const TARGET: &str = "wasm32-unknown-unknown";
/// The frame around wasm-bindgen's JavaScript: each call returns a new instance.
const BEFORE: &str = "\
// Written by `cargo page`. Each call makes an instance with a memory of its own; after a trap it must not be used again.
export function core(module) {
";
const AFTER: &str = "
wasm_bindgen.initSync({ module });
return wasm_bindgen;
}
";
const TYPES: &str = "
export type Core = typeof wasm_bindgen;
export type Run = wasm_bindgen.Run;
/** A new instance of a compiled module. */
export function core(module: WebAssembly.Module): Core;
";

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    match compile(&root).and_then(|()| link(&root)) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn compile(root: &Path) -> Result<(), Box<dyn Error>> {
    // Of one crate type alone: where a library is also an rlib, cargo leaves out the profile's LTO without a word. So it does
    // in an environment that compiles incrementally.
    let status = Command::new("cargo")
        .args(["rustc", "--quiet", "--locked", "--profile", "play", "--target", TARGET])
        .args(["-p", "dragstrip-play", "--lib", "--crate-type", "cdylib"])
        .current_dir(root)
        .env("CARGO_INCREMENTAL", "0")
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err(format!(
            "the core does not compile; if the target is missing: rustup target add {TARGET}"
        )
        .into());
    }
    Ok(())
}

/// Writes `core.wasm`, `core.js` and `core.d.ts` into the target folder's `play`.
fn link(root: &Path) -> Result<String, Box<dyn Error>> {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), |folder| root.join(PathBuf::from(folder)));
    let folder = target.join("play");
    let linked = folder.join("linked");
    let mut bindgen = Bindgen::new();
    bindgen.input_path(target.join(TARGET).join("play/dragstrip_play.wasm"));
    bindgen.out_name("core").typescript(true).no_modules(true)?;
    bindgen.omit_default_module_path(true).remove_name_section(true);
    bindgen.remove_producers_section(true);
    bindgen.generate(&linked).map_err(|error| format!("wasm-bindgen: {error:#}"))?;
    let text = |name: &str| fs::read_to_string(linked.join(name));
    write(&folder.join("core.js"), &format!("{BEFORE}{}{AFTER}", text("core.js")?))?;
    write(&folder.join("core.d.ts"), &format!("{}{TYPES}", text("core.d.ts")?))?;
    let wasm = folder.join("core.wasm");
    fs::rename(linked.join("core_bg.wasm"), &wasm)?;
    fs::remove_dir_all(&linked)?;
    Ok(format!("{}: {} kB", wasm.display(), fs::metadata(&wasm)?.len().div_ceil(1000)))
}

/// Writes a file whole or not at all.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    let draft = file.with_extension("draft");
    fs::write(&draft, text)?;
    fs::rename(&draft, file)
}
