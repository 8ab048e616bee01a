"""The table of claims that ends a run of a publication."""

from __future__ import annotations

from rich import box
from rich.table import Table

from dragstrip.display.terminal import Terminal
from dragstrip.report.console import grade_text
from dragstrip.studies.publications.document import Json, figure_text, reproduced_share


def show(document: Json) -> None:
    """Print each claim with the published figure, ours and its grade, then the number of claims per grade."""
    console = Terminal()
    table = Table(title=f"claims: {document['publication']}", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("claim", "published", "ours", "grade"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "grade")
    for part in document["experiments"]:
        table.add_section()
        table.add_row(part["name"], style="bold")
        for line in part["claims"]:
            unit = "" if line["unit"] in ("1", "order") else f" {line['unit']}"
            published = "–" if line["published"] is None else figure_text(line["published"]) + unit
            table.add_row(
                f"  {line['id']}", published, figure_text(line["measured"]) + unit, grade_text(line["grade"])
            )
    console.print(table)
    counts = ", ".join(f"{count} {grade}" for grade, count in document["grades"].items())
    share = reproduced_share(document["grades"])
    console.print(
        counts + ("" if share is None else f": {share * 100:.0f} % of what can be tested is reproduced")
    )
    for failure in document["failed"]:
        line = f"failed: {failure['experiment']}: {failure['scenario']}: {failure['reason']}"
        console.print(line)
