//! The agent: builds a scenario's network out of a real kernel's namespaces, drives its traffic over real
//! sockets, and leaves the tables of a recording.
//!
//! What lives here: everything that happens on the machine whose kernel carries the packets.
//! What must not: anything about how that machine came to be (an emulator, this host, a testbed), or what is done
//! with the tables.
//!
//! `dragstrip-agent first exchange=FILE watchdog=FILE`: as the first process of a machine, once.
//! `dragstrip-agent run exchange=FILE`: in a machine that runs already (as root), once.
//! FILE (or FILE:OFFSET:SIZE) is shared with whoever asks (exchange.rs).
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "this crate is the edge: files, sockets and clocks are its business"
)]

mod cc_state;
mod conform;
mod exchange;
mod fault;
mod first;
mod flow;
mod load;
mod modules;
mod netlink;
mod network;
mod plan;
mod probe;
mod qdisc;
mod record;
mod run;
mod sys;
mod tap;

use exchange::Exchange;
use fault::{Fault, fault};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let first = std::process::id() == 1;
    let outcome = if first { as_first(&arguments) } else { as_guest(&arguments) };
    if let Err(fault) = outcome {
        if first {
            first::tell(&format!("failed: {fault}"));
        } else {
            eprintln!("dragstrip-agent: {fault}");
            std::process::exit(1);
        }
    }
    if first {
        sys::power_off();
    }
}

fn option<'a>(arguments: &'a [String], name: &str) -> Result<&'a str, Fault> {
    let found = arguments.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    found.map_or_else(|| fault(format!("{name}=FILE is missing")), Ok)
}

fn as_first(arguments: &[String]) -> Result<(), Fault> {
    first::prepare()?;
    let exchange = Exchange::open(option(arguments, "exchange")?)?;
    first::ready(option(arguments, "watchdog")?)?;
    serve(&exchange)
}

fn as_guest(arguments: &[String]) -> Result<(), Fault> {
    match arguments.get(1).map(String::as_str) {
        Some("run") => serve(&Exchange::open(option(arguments, "exchange")?)?),
        _ => fault("usage: dragstrip-agent run exchange=FILE"),
    }
}

fn serve(exchange: &Exchange) -> Result<(), Fault> {
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
            .and_then(|request| run::run(&request, raw, &progress))
    };
    exchange.answer(outcome);
    Ok(())
}
