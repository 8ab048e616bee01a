//! `play`: the core for a page, compiled for WebAssembly and linked with its JavaScript.
//!
//! Without the feature `play` the command starts itself again with it: what links is compiled for nobody else.

use crate::Failure;
use std::path::Path;
use std::process::Command;

/// The target of a page.
const TARGET: &str = "wasm32-unknown-unknown";

/// Compiles and links.
pub fn build(root: &Path) -> Result<String, Failure> {
    if cfg!(feature = "play") {
        compiled(root)?;
        link::link(root)
    } else {
        let again =
            ["run", "--quiet", "--locked", "-p", "xtask", "--features", "play", "--", "play"];
        cargo(root, &again)?;
        Ok(String::new())
    }
}

fn compiled(root: &Path) -> Result<(), Failure> {
    // Of one crate type alone: where a library is also an rlib, cargo leaves out the profile's LTO without a word.
    let arguments = [
        "rustc",
        "--quiet",
        "--locked",
        "--profile",
        "play",
        "--target",
        TARGET,
        "-p",
        "dragstrip-play",
        "--lib",
        "--crate-type",
        "cdylib",
    ];
    cargo(root, &arguments).map_err(|failure| match failure {
        Failure::Found(message) => Failure::Found(format!(
            "{message}; if the target is missing: rustup target add {TARGET}"
        )),
        other @ (Failure::Usage(_) | Failure::Reported(_)) => other,
    })
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<(), Failure> {
    // An environment that compiles incrementally would leave it out too.
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root).env("CARGO_INCREMENTAL", "0");
    let done = command.status();
    let done = done.map_err(|error| Failure::Usage(format!("cargo: {error}")))?;
    if done.success() {
        return Ok(());
    }
    Err(Failure::Found(format!("cargo {} failed", arguments.join(" "))))
}

#[cfg(feature = "play")]
mod link {
    use super::TARGET;
    use crate::{Failure, read, write};
    use std::fs;
    use std::path::{Path, PathBuf};
    use wasm_bindgen_cli_support::Bindgen;

    /// What stands around wasm-bindgen's JavaScript: each call gives an instance of its own.
    const BEFORE: &str = "\
// Written by `cargo xtask play`. Each call makes an instance with a memory of its own; after a trap it must not be used again.
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

    /// Writes `core.wasm`, `core.js` and `core.d.ts` into the target folder's `play`.
    pub fn link(root: &Path) -> Result<String, Failure> {
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| root.join("target"), |folder| root.join(PathBuf::from(folder)));
        let made = target.join("play");
        let failed =
            |what: &str, error: &dyn std::fmt::Display| Failure::Found(format!("{what}: {error}"));
        let input = target.join(TARGET).join("play/dragstrip_play.wasm");
        let mut bindgen = Bindgen::new();
        bindgen.input_path(&input).out_name("core").typescript(true);
        bindgen.omit_default_module_path(true).remove_name_section(true);
        bindgen.remove_producers_section(true);
        let linked = made.join("linked");
        let result = bindgen.no_modules(true).and_then(|bindgen| bindgen.generate(&linked));
        result.map_err(|error| failed("wasm-bindgen", &format!("{error:#}")))?;
        write(
            &made.join("core.js"),
            &format!("{BEFORE}{}{AFTER}", read(&linked.join("core.js"))?),
        )?;
        write(&made.join("core.d.ts"), &format!("{}{TYPES}", read(&linked.join("core.d.ts"))?))?;
        let wasm = made.join("core.wasm");
        fs::rename(linked.join("core_bg.wasm"), &wasm)
            .map_err(|error| failed("core.wasm", &error))?;
        fs::remove_dir_all(&linked).map_err(|error| failed("linked", &error))?;
        let size = fs::metadata(&wasm).map_err(|error| failed("core.wasm", &error))?.len();
        Ok(format!("{}: {} kB", wasm.display(), size.div_ceil(1000)))
    }
}

#[cfg(not(feature = "play"))]
mod link {
    use crate::Failure;
    use std::path::Path;

    pub fn link(_: &Path) -> Result<String, Failure> {
        Err(Failure::Usage("built without the feature play".to_owned()))
    }
}
