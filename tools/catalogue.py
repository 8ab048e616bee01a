"""The catalogue's page and one page per publication, in Markdown: `python -m tools.catalogue FOLDER PAGE`.

FOLDER is the output of `dragstrip run all`, PAGE docs/reference/catalogue.md. All measured figures come from
the document in FOLDER, everything else from the files of experiments and publications.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any

from dragstrip.display.colours import assign
from dragstrip.errors import BadInputError, Raw
from dragstrip.experiment import catalogue
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from dragstrip.io.files import is_stream, write_json, write_text
from dragstrip.model.scenario.paths import with_facts
from dragstrip.report import picture
from dragstrip.report.paper import LIBRARY, draws
from dragstrip.report.render import on_white
from dragstrip.results.claims import CONTRADICTED, GRADES, NOT_TESTABLE, OPEN, REPRODUCED
from dragstrip.studies.publications.document import Json, figure_text, grades, reproduced_share
from tools import catalogue_hosts as hosts
from tools.distributions import DRAWN, distributions

GENERATED = "<!-- Written by `make catalogue`: do not edit. -->"

INTRODUCTION = """\
# The catalogue

Each folder of [experiments](../../experiments) is a publication and each file in it an experiment. Each
figure that the publication gives is a *claim*: *reproduced* (ours lies in the published range, widened by
the claim's tolerance), *contradicted* (it does not) or *not testable here*, with the reason. No claim is
dropped because it does not fit. Statements in a publication's text are claims too, named `text-...`; if the
publication's own data contradict such a statement, *contradicted* is the right grade. Questions that a
publication left open are run as well: an *open question* shows only our figure.

`dragstrip run all` runs the whole catalogue and ends with these figures; `make catalogue` writes this page
and the publications' pages from them. The files quote each claim and document calibrations and tolerances.
See also the [file format](../how-to/experiments.md) and the [measures](measures.md).

Columns *netns* and *ssh* show the same claims on a kernel in real time, shortened where the sentence below a
table says so: in network namespaces ([how](../how-to/netns.md)) and on a lab of namespaces with sshds
([how](../how-to/lab.md)), both in an emulated guest, which carries some Mbit/s. *Limited* is a claim with a
run that, by its own checks, the machine limited: its figure is neither for nor against the publication. It
*agrees* where it lies in the published range all the same. Here that is every run: shapers serve less than
their rate from some Mbit/s on, and on paths of less than a millisecond the guest's own time for a ping, 2 to
9 ms, is more than the path's. Hosts run the kernel's own stack in place of older ones. CAIA's lines (ADSL,
power line, Wi-Fi) are no links of a kernel: both engines refuse them.
`python -m tools.catalogue_hosts` gathers the columns from runs.
"""


def write(document: Json, recordings: Path, page: Path) -> list[Path]:
    """Write the catalogue's page, its data beside it, and the publications' pages, and return the files.

    `recordings` is the output folder of the run, from which figures are drawn.
    """
    write_json(page.with_suffix(".json"), document)
    outputs = all_pages(document, page)
    for name in by_publication(document["experiments"]):
        for stem in catalogue.publication(name).distributions:
            for kind, svg in distributions(recordings / name / stem).items():
                outputs[catalogue.FOLDER.resolve() / name / f"{stem}-{kind}.svg"] = on_white(svg) + "\n"
    for file, text in outputs.items():
        write_text(file, text)
    return [page.with_suffix(".json"), *outputs]


def main(folder: str, to: str) -> None:
    """Write all pages from the output folder of `dragstrip run all`.

    Raises `BadInputError`, before anything is written, for a run of anything else, for one with failed runs,
    and for what would keep a page from being written.
    """
    page, file = Path(to), Path(folder) / "catalogue.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    if document["publication"] != catalogue.EVERYTHING:
        raise BadInputError("publication", document["publication"], "the output of `run all`", str(file))
    if document["failed"]:
        raise BadInputError("failed", Raw(str(len(document["failed"]))), "a run without failures", str(file))
    check(document["experiments"], page)
    for written in write(document, Path(folder), page):
        print(f"Wrote {written}")


def check(parts: list[Json], page: Path) -> None:
    """Raise `BadInputError` for what would keep the pages of these experiments from being written."""
    if catalogue.folder() is None or not page.parent.is_dir() or is_stream(page):
        raise BadInputError("PAGE", str(page), "docs/reference/catalogue.md of a checkout", "command line")
    if not draws():
        raise BadInputError("PAGE", None, f"the catalogue's figures need {LIBRARY}", "command line")
    for name, members in by_publication(parts).items():
        words = catalogue.publication(name)
        _filled(words.verdict, name, members)
        stems = [_stem(part["name"]) for part in members]
        for stem in words.distributions:
            if stem not in stems:
                where = str(catalogue.FOLDER / name / catalogue.PUBLICATION)
                raise BadInputError("distributions", stem, f"one of {', '.join(stems)}", where)


def all_pages(document: Json, page: Path) -> dict[Path, str]:
    """Return the content of every page by file."""
    folder = catalogue.FOLDER.resolve()
    outputs = {page: catalogue_page(document["experiments"], hosts.host_claims(page))}
    for name, parts in by_publication(document["experiments"]).items():
        publication = folder / name
        experiments = {part["name"]: catalogue.load(part["name"])[0] for part in parts}
        outputs[publication / "README.md"] = publication_page(name, parts, experiments)
        for member, experiment in experiments.items():
            outputs[publication / f"{_stem(member)}.svg"] = set_up(experiment)
    return outputs


def by_publication(parts: Iterable[Json]) -> dict[str, list[Json]]:
    """Group the experiments' entries by publication."""
    return {name: list(group) for name, group in groupby(parts, key=lambda part: part["name"].split("/")[0])}


def _stem(name: str) -> str:
    return name.split("/")[1]


# --- the catalogue's page -----------------------------------------------------------------------


def catalogue_page(parts: list[Json], on_hosts: Json) -> str:
    """Return the catalogue's page, with every claim of every publication, and as `hosts` gathered them."""
    sections = [GENERATED, INTRODUCTION, _summary(parts)]
    for part in parts:
        publication = part["name"].split("/")[0]
        folder = "../../experiments"
        links = f"[file]({folder}/{part['name']}.toml), [page]({folder}/{publication}/README.md)"
        engine_claims = on_hosts.get(part["name"], {})
        table = _claims(part["claims"], engine_claims)
        sentences = "".join(
            f"\n{hosts.sentence(engine, claims)}\n" for engine, claims in engine_claims.items()
        )
        sections.append(f"## {part['name']}\n\n{part['title']}: {links}\n\n{table}{sentences}")
    return "\n".join(sections)


def _summary(parts: list[Json]) -> str:
    """Return the table of how many claims of each publication have which grade."""
    rows = [
        f"| publication | {' | '.join(GRADES)} | reproduced of tested |",
        "|---" * (len(GRADES) + 2) + "|",
    ]
    publications: dict[str, list[Json]] = {**by_publication(parts), "all": parts}
    for name, group in publications.items():
        counts = grades(line for part in group for line in part["claims"])
        share = reproduced_share(counts)
        share_text = "–" if share is None else f"{share * 100:.0f} %"
        linked = name if name == "all" else f"[{name}](../../experiments/{name}/README.md)"
        rows.append(_row([linked, *(str(counts[grade]) for grade in GRADES), share_text]))
    return "\n".join(rows) + "\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(columns: int) -> str:
    return "|---" * columns + "|"


def _claims(claims: list[Json], on_hosts: Json | None = None) -> str:
    engines = on_hosts or {}
    rows = [_row(["claim", "published", "ours", "unit", "grade", *engines]), _rule(5 + len(engines))]
    for line in claims:
        grade = line["grade"] + (f": {line['reason']}" if "reason" in line else "")
        cells = [
            line["id"],
            figure_text(line["published"]),
            figure_text(line["measured"]),
            line["unit"],
            grade,
        ]
        for claims_on_host in engines.values():
            ours = claims_on_host["claims"].get(line["id"], {}).get("measured")
            cells.append(hosts.cell(claims_on_host, line["id"], figure_text(ours)))
        rows.append(_row(cells))
    return "\n".join(rows) + "\n"


# --- a publication's page -----------------------------------------------------------------------------


def publication_page(name: str, parts: list[Json], experiments: Mapping[str, Experiment]) -> str:
    """Return a publication's page: its question, the verdict, and each experiment's set-up and figures."""
    words = catalogue.publication(name)
    counts = grades(line for part in parts for line in part["claims"])
    verdict = f"{_tally(counts)} {_filled(words.verdict.strip(), name, parts)}"
    command = f"```\ndragstrip run {name}\n```\n\nor one experiment: `dragstrip run {parts[0]['name']}`."
    sections = [
        GENERATED,
        f"# {words.title}\n\n{words.source}\n",
        f"## The question\n\n{words.question.strip()}\n",
        *([f"## The hosts\n\n{words.hosts.strip()}\n"] if words.hosts else []),
        f"## The verdict\n\n{verdict}\n",
        *([f"## In sum\n\n{_sums(parts)}"] if words.sums else []),
        f"## Run it\n\n{command}\n",
    ]
    for part in parts:
        has_distributions = _stem(part["name"]) in words.distributions
        sections.append(_experiment(part, experiments[part["name"]], has_distributions=has_distributions))
    return "\n".join(sections)


def _sums(parts: list[Json]) -> str:
    """Return the table of how many cells of each experiment, and of all together, are reproduced."""
    cells: dict[str, dict[str, list[bool]]] = {}
    for part in parts:
        for line in part["claims"]:
            kind = re.split(r"-\d", line["id"])[0]
            for column in (_stem(part["name"]), "all"):
                cells.setdefault(kind, {}).setdefault(column, []).append(line["grade"] == REPRODUCED)
    columns = [*(_stem(part["name"]) for part in parts), "all"]
    rows = [_row(["cells reproduced", *columns]), _rule(len(columns) + 1)]
    for kind, verdicts_by_column in cells.items():
        counts = (verdicts_by_column.get(column, []) for column in columns)
        rows.append(_row([kind, *(f"{sum(verdicts)} of {len(verdicts)}" for verdicts in counts)]))
    return "\n".join(rows) + "\n"


def _tally(counts: Mapping[str, int]) -> str:
    share = reproduced_share(counts)
    tested = counts[REPRODUCED] + counts[CONTRADICTED]
    text = f"{counts[REPRODUCED]} of {tested} figures that can be tested here are reproduced"
    text += "" if share is None else f" ({share * 100:.0f} %)"
    text += f", {counts[CONTRADICTED]} are contradicted, {counts[NOT_TESTABLE]} cannot be tested."
    return text + (f" {counts[OPEN]} questions that it left open are answered." if counts[OPEN] else "")


_PLACE = re.compile(r"\{([\w.-]+)/([\w.-]+)\}")


def _filled(text: str, publication: str, parts: list[Json]) -> str:
    """Replace `{experiment/claim}` by our figure and its unit."""
    claims = {(_stem(part["name"]), line["id"]): line for part in parts for line in part["claims"]}

    def figure(place: re.Match[str]) -> str:
        line = claims.get((place[1], place[2]))
        if line is None:
            where = str(catalogue.FOLDER / publication / catalogue.PUBLICATION)
            raise BadInputError(
                "verdict", Raw(place[0]), "an experiment and a claim of this publication", where
            )
        unit = "" if line["unit"] in ("1", "order") else f" {line['unit']}"
        return f"{figure_text(line['measured'])}{unit}"

    return _PLACE.sub(figure, text)


def _experiment(part: Json, experiment: Experiment, *, has_distributions: bool) -> str:
    stem = _stem(part["name"])
    words = [
        f"## {stem}: {part['title']}\n",
        f"{experiment.source}.\n",
        f"{experiment.description.strip()}\n",
        f"![The path]({stem}.svg)\n",
        f"`dragstrip run {part['name']}` ([file]({stem}.toml))\n",
        _claims(part["claims"]),
        "".join(f"![{title}]({stem}-{kind}.svg)\n" for kind, title in DRAWN.items())
        if has_distributions
        else "",
        *(_flow_table(table) for table in part["flow_tables"]),
        _ablations(part["claims"]),
    ]
    return "\n".join(word for word in words if word)


def _flow_table(table: Json) -> str:
    """Return a table of flows from the fastest to the slowest, published beside ours."""
    columns = {"published": table["published"], **table["ours"]}
    words = f"{table['source']}; in Mbit/s, from the fastest to the slowest:\n"
    rows = [words, _row(["flow", *columns]), _rule(len(columns) + 1)]
    for number, cells in enumerate(zip_longest(*columns.values()), 1):
        rows.append(_row([str(number), *map(figure_text, cells)]))
    return "\n".join(rows) + "\n"


def _ablations(claims: list[Json]) -> str:
    """Return the claims' figures under each ablation, in one table per ablation."""
    tables: dict[str, dict[str, list[str]]] = {}
    settings: dict[str, list[str]] = {}
    for claim in claims:
        for ablation in claim.get("ablations", []):
            about = ablation["about"].strip()
            setting = ", ".join(f"{path} = {_value(value)}" for path, value in ablation["setting"].items())
            if setting not in settings.setdefault(about, []):
                settings[about].append(setting)
            head_cells = [
                claim["id"],
                figure_text(claim["published"]),
                figure_text(claim["measured"]),
                claim["unit"],
            ]
            then = f" ({ablation['grade']})" if ablation["grade"] != claim["grade"] else ""
            tables.setdefault(about, {}).setdefault(claim["id"], head_cells).append(
                figure_text(ablation["measured"]) + then
            )
    parts = []
    for about, rows in tables.items():
        head = ["claim", "published", "ours", "unit", *(f"`{setting}`" for setting in settings[about])]
        parts.append("\n".join([f"{about}\n", _row(head), _rule(len(head)), *map(_row, rows.values()), ""]))
    return "\n".join(parts)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def set_up(experiment: Experiment) -> str:
    """Draw the path of the first run, with the algorithms of all runs, as SVG.

    The background is white, because a README may be shown on a dark page.
    """
    runs = expand(experiment)
    scenarios = [with_facts(run.scenario) for run in runs]
    algorithms = [flow["transport"].get("cc", "udp") for scenario in scenarios for flow in scenario["flows"]]
    drawing, _ = picture.draw(scenarios, assign(algorithms))
    return on_white(drawing) + "\n"


if __name__ == "__main__":
    main(*sys.argv[1:])
