//! The dumbbell that `make bench` races against ns-3 and ns-2 (docs/explanation/performance.md).
//!
//! What lives here: the scenario that the other programs' scripts describe too, a command that runs
//! it in process, and the floor: the bare event loop moving the same packets. What must not: the
//! comparison itself (bench/run).
//!
//!     dragstrip-bench sim   --flows 30 --cc reno --mbps 100 --rtt-ms 300 --seconds 60 --record 100ms
//!     dragstrip-bench floor --flows 30 --mbps 100 --rtt-ms 300 --seconds 60 --variant fused
//!     dragstrip-bench scenario FILE.json
//!     dragstrip-bench inspect FILE.pcapng
//!
//! Each prints one JSON object. The last two run what `bench/instructions` counts beside the dumbbells.

mod file;
mod floor;
mod options;
mod sim;
mod usage;
mod winner_tree;

use options::Options;
use std::process::ExitCode;

const USAGE: &str = "\
usage: dragstrip-bench sim   [--flows N] [--cc NAME] [--mbps M] [--rtt-ms MS] [--seconds S]
                             [--layout hub|lump] [--bytes B]
                             [--record none|100ms|default|every-ack] [--repeat K] [--scenario]
       dragstrip-bench floor [--flows N] [--mbps M] [--rtt-ms MS] [--seconds S]
                             [--variant lazy|fused] [--repeat K]
       dragstrip-bench scenario FILE.json
       dragstrip-bench inspect FILE.pcapng
--bytes: each flow sends this much and is idle then (memory of idle flows);
--repeat runs the same K times in one process; --scenario prints the scenario and runs nothing.";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let outcome = match command.as_str() {
        "sim" => Options::parse(arguments).and_then(|options| sim::command(&options)),
        "floor" => Options::parse(arguments).map(|options| floor::command(&options)),
        "scenario" => file::of(arguments, file::scenario),
        "inspect" => file::of(arguments, file::inspect),
        "--help" | "-h" => Ok(USAGE.to_owned()),
        other => {
            Err(format!("unknown command {other:?}: sim, floor, scenario or inspect\n{USAGE}"))
        }
    };
    match outcome {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("dragstrip-bench: {message}");
            ExitCode::from(2)
        }
    }
}
