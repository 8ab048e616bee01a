"""Options and arguments that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragstrip import engines
from dragstrip.cli import completion
from dragstrip.experiment.race import SEED_MAX

NAMED = "Name in the catalogue, or a TOML file."
Experiment = Annotated[
    str, typer.Argument(metavar="EXPERIMENT", help=NAMED, autocompletion=completion.experiments)
]
ExperimentOrNone = Annotated[
    str | None,
    typer.Argument(
        metavar="EXPERIMENT", help=NAMED, autocompletion=completion.experiments, show_default=False
    ),
]
Repeat = Annotated[
    int | None,
    typer.Option(
        "--repeat", metavar="N", min=1, help="Number of repeats (seeds), instead of the experiment's."
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="N",
        min=0,
        max=SEED_MAX,
        help="Seed of the first repeat, instead of the experiment's.",
    ),
]
Duration = Annotated[
    str | None,
    typer.Option(
        "--duration", metavar="TIME", help="Duration of each run, such as 10s, instead of the experiment's."
    ),
]
Engine = Annotated[str, typer.Option("--engine", metavar="ENGINE", help=engines.about())]
EngineOrNone = Annotated[str | None, typer.Option("--engine", metavar="ENGINE", help=engines.about())]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Workers = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", min=1, help="Number of worker processes; default: one per core."),
]
Load = Annotated[
    list[str] | None,
    typer.Option(
        "--load",
        metavar="FILE.bpf.c",
        help="A congestion control in C (BPF), loaded into kernels of engines vm, netns and ssh; repeatable.",
    ),
]
Program = Annotated[
    list[str] | None,
    typer.Option(
        "--program",
        "--policy",
        metavar="FILE",
        help="An algorithm for the simulator, named as the file: a text (FILE.cc, docs/how-to/program.md), a "
        "policy (FILE.json, FILE.onnx, docs/how-to/learning.md) or Rust (FILE.rs, "
        "docs/how-to/new-algorithm.md); repeatable.",
    ),
]
Addresses = Annotated[
    bool, typer.Option("--addresses", help="Show addresses and folders in what is written.")
]
TextProgram = Annotated[
    list[str] | None,
    typer.Option(
        "--program",
        "--policy",
        metavar="FILE.cc",
        help="An algorithm for the simulator as a text (docs/how-to/program.md) or a policy (FILE.json, "
        "FILE.onnx, docs/how-to/learning.md), named as the file; repeatable.",
    ),
]
RustProgram = Annotated[
    list[str] | None,
    typer.Option(
        "--program",
        metavar="FILE.rs",
        help="An algorithm in Rust that the experiment names (docs/how-to/new-algorithm.md); repeatable.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FOLDER", help="Output folder; must be empty or not exist.", show_default="runs/..."
    ),
]
PathName = Annotated[
    str | None,
    typer.Option(
        "--path",
        metavar="NAME",
        help="A path by name (dragstrip list --paths), or a file of --save-path.",
        autocompletion=completion.paths,
        show_default=False,
    ),
]
SavePath = Annotated[
    str | None,
    typer.Option(
        "--save-path",
        metavar="NAME",
        help="Keep the path for --path: in a file (home.toml), or by a name in your own folder of paths.",
        show_default=False,
    ),
]
TimeLimit = Annotated[
    str | None,
    typer.Option(
        "--time-limit",
        metavar="TIME",
        help="Wall-clock limit per run, such as 600s.",
        show_default="none",
    ),
]
_BOTH = f"{engines.about()} {engines.PAIR}: both, and how far apart they are."
Engines = Annotated[str, typer.Option("--engine", metavar="ENGINE", help=_BOTH)]
EnginesOrNone = Annotated[str | None, typer.Option("--engine", metavar="ENGINE", help=_BOTH)]
Check = Annotated[
    bool, typer.Option("--check", help="Run everything twice, and say whether the recordings are identical.")
]
EngineOption = Annotated[
    list[str] | None,
    typer.Option("--engine-option", metavar="NAME=VALUE", help="Set an option of the engine; repeatable."),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="In real time: a run that the machine limited has failed (engines netns and ssh)."
    ),
]
CaptureAt = Annotated[
    list[str] | None,
    typer.Option(
        "--capture",
        metavar="[HOST|LINK ...]",
        help="Write packets as pcapng, captured at these hosts or links; none named: at the flows' hosts "
        "and bottlenecks.",
    ),
]
Snaplen = Annotated[
    int | None,
    typer.Option(
        "--snaplen",
        metavar="N",
        help="Bytes that --capture keeps of each frame.",
        show_default="96; whole datagrams of QUIC",
    ),
]
LabOption = Annotated[
    Path | None,
    typer.Option("--lab", metavar="FILE.toml", help="The lab's hosts, for engine ssh (docs/how-to/lab.md)."),
]
Report = Annotated[bool, typer.Option("--report/--no-report", help="Write report.html.")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", help="Print every column, what limited each flow, and every reason."),
]
Figures = Annotated[
    str | None,
    typer.Option("--figures", metavar="svg,png,pdf,csv", help="Also write the report's figures, for papers."),
]
Width = Annotated[
    str | None,
    typer.Option(
        "--width",
        metavar="LENGTH",
        help="With --figures: width of each picture, such as 84mm, 3.3in or 240pt.",
        show_default="each its own",
    ),
]
