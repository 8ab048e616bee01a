//! The agent: builds a scenario's network out of a real kernel's namespaces, drives its traffic over real
//! sockets, and leaves the tables of a recording.
//!
//! What lives here: everything that happens on the machine whose kernel carries the packets.
//! What must not: anything about how that machine came to be (an emulator, this host, a testbed), or what is done
//! with the tables.
//!
//! `dragstrip-agent first exchange=FILE watchdog=FILE`: as the first process of a machine of its own.
//! `dragstrip-agent run exchange=FILE parent=PID [grant=WORDS]`: in a machine that runs already, as root or in a user
//! namespace, once; it ends with the process PID, which started it.
//! `dragstrip-agent about`: what such a machine can do, as JSON.
//! FILE (or FILE:OFFSET:SIZE) is shared with whoever asks, or `-` for frames on standard input and output
//! (exchange.rs). WORDS say what of the machine may be changed (machine/grant.rs).
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "this crate is the edge: files, sockets and clocks are its business"
)]

mod conductor;
mod conform;
mod exchange;
mod fault;
mod here;
mod kernel;
mod load;
mod machine;
mod netlink;
mod network;
mod plan;
mod qdisc;
mod record;
mod side;
mod sys;

use exchange::Exchange;
use fault::{Fault, fault};
use here::Rights;
use kernel::Kernel;
use machine::{Grant, Loaded, first};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("first") => {
            if let Err(fault) = as_first(&arguments) {
                first::tell(&format!("failed: {fault}"));
            }
            sys::power_off();
        }
        _ => {
            if let Err(fault) = as_guest(&arguments) {
                eprintln!("dragstrip-agent: {fault}");
                std::process::exit(1);
            }
        }
    }
}

fn option<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    arguments.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn file<'a>(arguments: &'a [String], name: &str) -> Result<&'a str, Fault> {
    option(arguments, name).map_or_else(|| fault(format!("{name}=FILE is missing")), Ok)
}

fn as_first(arguments: &[String]) -> Result<(), Fault> {
    first::prepare()?;
    let exchange = Exchange::open(file(arguments, "exchange")?)?;
    first::ready(file(arguments, "watchdog")?)?;
    serve(&exchange, Grant::MACHINE, || Ok(Kernel::DEBIAN))
}

fn as_guest(arguments: &[String]) -> Result<(), Fault> {
    let command = arguments.get(1).map(String::as_str);
    if !matches!(command, Some("run" | "about")) {
        return fault("usage: dragstrip-agent run exchange=FILE parent=PID [grant=WORDS] | about");
    }
    sys::raise_file_limit()?;
    let loaded = Loaded::now();
    let done = if command == Some("about") {
        Rights::take(None).and_then(about)
    } else {
        run_here(arguments)
    };
    loaded.restore();
    done
}

fn about(rights: Rights) -> Result<(), Fault> {
    let mut found = here::kernel()?.describe();
    found["rights"] = rights.name().into();
    println!("{found}");
    Ok(())
}

fn run_here(arguments: &[String]) -> Result<(), Fault> {
    let parent = option(arguments, "parent").and_then(|number| number.parse().ok());
    if parent.is_none() {
        return fault("parent=PID is missing");
    }
    let grant = Grant::parse(option(arguments, "grant").unwrap_or_default())?;
    let exchange = Exchange::open(file(arguments, "exchange")?)?;
    serve(&exchange, grant, || {
        Rights::take(parent)?;
        sys::punctual()?;
        here::kernel()
    })
}

/// Does what is asked; `kernel` makes the machine ready and says what its kernel has.
fn serve(
    exchange: &Exchange,
    grant: Grant,
    kernel: impl FnOnce() -> Result<Kernel, Fault>,
) -> Result<(), Fault> {
    let request = exchange.request()?;
    let progress = |now_ns| exchange.progress(now_ns);
    let end = request.iter().position(|byte| *byte == b'\n').unwrap_or(request.len());
    let (line, raw) = request.split_at(end);
    let raw = raw.get(1..).unwrap_or_default();
    let outcome = if let Ok(scripts) = serde_json::from_slice(line) {
        conform::run(&scripts, &progress)
    } else {
        serde_json::from_slice(line)
            .map_err(|error| Fault::Failed(format!("scenario: {error}")))
            .and_then(|request| conductor::run(&request, raw, grant, &kernel()?, &progress))
    };
    exchange.answer(outcome)
}
