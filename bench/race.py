"""`make bench`: races this simulator, ns-3, ns-2 and the floor on the same dumbbell.

Everything runs one after the other on one core, the programs interleaved case by case and
round by round, so that a change of the machine's speed meets all of them. docs/explanation/performance.md
has the method.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

import tables
from build import build, say
from cases import CASES, CROWD, REPEAT, Binaries, Case, Program, Record, runs_case, shortened
from measure import RunError, Sample, run, summarise
from results import Memory, Results

RUNS = 5
# ns-3 takes 10 to 30 s a case where the others take a fraction of one, and varies least.
RUNS_NS3 = 3
RUNS_QUICK = 3
RUNS_NS3_QUICK = 1


@dataclass(frozen=True)
class Plan:
    """What the command line asks for."""

    cases: tuple[Case, ...]
    programs: tuple[Program, ...]
    runs: int
    runs_ns3: int
    quick: bool

    def rounds(self, program: Program) -> int:
        """How often `program` runs each case."""
        return self.runs_ns3 if program is Program.NS3 else self.runs

    def case_for(self, program: Program, case: Case) -> Case:
        """The case as `program` runs it."""
        return shortened(case) if self.quick and program is Program.NS3 else case


def main() -> int:
    """Builds, races, prints."""
    arguments = parse_arguments()
    plan = make_plan(arguments)
    binaries = build(may_install=not arguments.no_install)
    results = Results(machine(), os.getloadavg()[0], plan.quick)
    if results.load_at_start > 0.5:
        results.notes.append(f"The machine was busy at the start (load {results.load_at_start:.1f}).")
    race(plan, binaries, results)
    if Program.DRAGSTRIP in plan.programs:
        measure_recording(plan, binaries, results)
        measure_memory(plan, binaries, results)
    document = json.dumps(as_document(plan, results), indent=2)
    sys.stdout.write(f"{document}\n" if arguments.json else tables.render(results, plan.cases))
    if arguments.output:
        Path(arguments.output).write_text(f"{document}\n", encoding="utf-8")
    return 0


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="bench/run", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer runs, and ns-3 simulates less time")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--output", metavar="FILE", help="write the JSON to FILE as well")
    parser.add_argument("--runs", type=int, help="runs per case and program")
    parser.add_argument("--cases", help="comma-separated: " + ", ".join(case.name for case in CASES))
    parser.add_argument("--programs", help="comma-separated: " + "; ".join(_slug(p) for p in Program))
    parser.add_argument("--no-install", action="store_true", help="never install packages")
    return parser.parse_args()


def _slug(program: Program) -> str:
    return program.replace(", ", "-")


def make_plan(arguments: argparse.Namespace) -> Plan:
    """Checks the names and sets the number of runs."""
    by_case = {case.name: case for case in CASES}
    by_program = {_slug(program): program for program in Program}
    case_names = _choice("--cases", arguments.cases, list(by_case))
    program_names = _choice("--programs", arguments.programs, list(by_program))
    runs = RUNS_QUICK if arguments.quick else RUNS
    runs_ns3 = RUNS_NS3_QUICK if arguments.quick else RUNS_NS3
    if arguments.runs is not None:
        if arguments.runs < 1:
            raise SystemExit(f"--runs: at least 1, not {arguments.runs}")
        runs = runs_ns3 = arguments.runs
    return Plan(
        cases=tuple(by_case[name] for name in case_names),
        programs=tuple(by_program[name] for name in program_names),
        runs=runs,
        runs_ns3=runs_ns3,
        quick=arguments.quick,
    )


def _choice(option: str, text: str | None, known: list[str]) -> list[str]:
    names = text.split(",") if text else known
    for name in names:
        if name not in known:
            raise SystemExit(f"{option}: unknown {name!r}; known: {', '.join(known)}")
    return names


def machine() -> str:
    """Processor and kernel."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = models[0] if models else platform.machine()
    return f"{processor}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"


def race(plan: Plan, binaries: Binaries, results: Results) -> None:
    """Every program on every case, interleaved."""
    samples: dict[tuple[str, Program], list[Sample]] = defaultdict(list)
    failed: set[tuple[str, Program]] = set()
    for number in range(max(plan.runs, plan.runs_ns3)):
        say(f"round {number + 1}")
        for case in plan.cases:
            for program in plan.programs:
                key = (case.name, program)
                wanted = number < plan.rounds(program) and runs_case(program, case) and key not in failed
                if not wanted or not binaries.available(program):
                    continue
                repeat = REPEAT.get(program, 1)
                command = binaries.command(program, plan.case_for(program, case), repeat)
                try:
                    samples[key].append(run(command, repeat))
                except RunError as error:
                    failed.add(key)
                    results.notes.append(f"{program}, {case.name}: {error}")
    for case in plan.cases:
        results.races[case.name] = {
            program: summarise(samples[case.name, program])
            for program in plan.programs
            if samples[case.name, program] and (case.name, program) not in failed
        }
        check_agreement(plan, case, results)


def check_agreement(plan: Plan, case: Case, results: Results) -> None:
    """The same work? Delivered packets must agree; a difference is a note on the results."""
    delivered = {
        program: summary.data_packets
        for program, summary in results.races[case.name].items()
        if plan.case_for(program, case) == case
    }
    reference = delivered.get(Program.NS3) or delivered.get(Program.NS2)
    if reference is None:
        return
    for program, packets in delivered.items():
        difference = packets / reference - 1
        if abs(difference) > tables.AGREEMENT:
            results.notes.append(
                f"{case.name}: {program} delivered {difference:+.1%} packets: not the same work"
            )


def measure_recording(plan: Plan, binaries: Binaries, results: Results) -> None:
    """What a recording costs: the same case with more and more recorded."""
    repeat = REPEAT[Program.DRAGSTRIP]
    for case in plan.cases:
        if Program.DRAGSTRIP not in results.races[case.name]:
            continue
        say(f"recording: {case.name}")
        samples: dict[Record, list[Sample]] = defaultdict(list)
        try:
            for _ in range(plan.runs):
                for record in Record:
                    command = binaries.command(Program.DRAGSTRIP, case, repeat, record)
                    samples[record].append(run(command, repeat))
        except RunError as error:
            results.notes.append(f"recording, {case.name}: {error}")
            continue
        results.recording[case.name] = {record: summarise(samples[record]) for record in Record}


def measure_memory(plan: Plan, binaries: Binaries, results: Results) -> None:
    """Memory per flow: the peak with many flows less the peak with one."""
    thousand = next(case for case in CASES if case.flows == 1000 and case.layout == "hub")
    say("memory")
    for program in (Program.DRAGSTRIP, Program.FLOOR_LAZY):
        if program not in plan.programs:
            continue
        try:
            base = run(binaries.command(program, CASES[0]))
            for case in (thousand, CROWD):
                full = run(binaries.command(program, case))
                results.memory[f"{program}, {case.flows} flows"] = Memory(
                    flows=case.flows,
                    packets_per_flow=case.packets_per_flow,
                    peak_rss_kib=full.peak_rss_kib,
                    base_rss_kib=base.peak_rss_kib,
                    data_packets=full.data_packets,
                    user_s=full.user_s,
                )
            if program is Program.DRAGSTRIP:
                idle = run([*binaries.command(program, CROWD), "--bytes", "1448"])
                results.memory[f"{program}, {CROWD.flows} idle flows"] = Memory(
                    flows=CROWD.flows,
                    packets_per_flow=0,
                    peak_rss_kib=idle.peak_rss_kib,
                    base_rss_kib=base.peak_rss_kib,
                    data_packets=idle.data_packets,
                    user_s=idle.user_s,
                )
        except RunError as error:
            results.notes.append(f"memory, {program}: {error}")


def as_document(plan: Plan, results: Results) -> dict[str, object]:
    """The JSON."""
    return {
        "version": 1,
        "cases": {case.name: asdict(case) for case in plan.cases},
        "simulated_s": {
            case.name: {program: plan.case_for(program, case).seconds for program in plan.programs}
            for case in plan.cases
        },
        **asdict(results),
    }


if __name__ == "__main__":
    sys.exit(main())
