"""The software bill of materials of a release: CycloneDX 1.5, the same bytes for the same lock files.

    python .ci/sbom.py FILE

What the package requires at run time, from uv.lock, and what is compiled into its extension, from Cargo.lock:
versions, licences of the crates, hashes. (maturin puts the crates into the wheel too, as PEP 770 says.)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
UV = os.environ.get("UV", "uv")
EXPORT = [
    UV,
    "export",
    "--quiet",
    "--frozen",
    "--no-default-groups",
    "--all-extras",
    "--format",
    "cyclonedx1.5",
]
METADATA = ["cargo", "metadata", "--locked", "--format-version", "1"]
EXTENSION = "dragstrip-py"
TREE = ["cargo", "tree", "--locked", "--package", EXTENSION, "--edges", "normal,build", "--target", "all"]


def output(command: list[str]) -> str:
    """What a program prints."""
    return subprocess.check_output(command, cwd=ROOT, text=True)


def compiled_in(metadata: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """The crates that the extension is built from, its own first, and who needs whom; on any platform."""
    lines = output([*TREE, "--prefix", "none", "--format", "{p}"]).splitlines()
    built = {tuple(line.split()[:2]) for line in lines}
    crates = {one["id"]: one for one in metadata["packages"] if (one["name"], f"v{one['version']}") in built}
    purl = {name: f"pkg:cargo/{one['name']}@{one['version']}" for name, one in crates.items()}
    needs = {
        purl[node["id"]]: sorted(
            purl[dep["pkg"]]
            for dep in node["deps"]
            if dep["pkg"] in crates and any(kind["kind"] != "dev" for kind in dep["dep_kinds"])
        )
        for node in metadata["resolve"]["nodes"]
        if node["id"] in crates
    }
    ordered = sorted(crates.values(), key=lambda one: (one["name"] != EXTENSION, one["name"], one["version"]))
    return ordered, needs


def component(crate: dict[str, Any], checksums: dict[tuple[str, str], str]) -> dict[str, Any]:
    """A crate as CycloneDX describes it."""
    purl = f"pkg:cargo/{crate['name']}@{crate['version']}"
    described: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": crate["name"],
        "version": crate["version"],
        "purl": purl,
    }
    if crate["license"]:
        described["licenses"] = [{"expression": crate["license"].replace(" / ", "/").replace("/", " OR ")}]
    checksum = checksums.get((crate["name"], crate["version"]))
    if checksum:
        described["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return described


def document() -> dict[str, Any]:
    """Both parts as one; without time and random number, which would differ each time."""
    python, locked = json.loads(output(EXPORT)), tomllib.loads((ROOT / "Cargo.lock").read_text())
    checksums = {(p["name"], p["version"]): p["checksum"] for p in locked["package"] if "checksum" in p}
    crates, needs = compiled_in(json.loads(output(METADATA)))
    python["metadata"].pop("timestamp", None)
    python["components"] += [component(crate, checksums) for crate in crates]
    package = python["metadata"]["component"]["bom-ref"]
    python["dependencies"] += [{"ref": ref, "dependsOn": others} for ref, others in sorted(needs.items())]
    for edge in python["dependencies"]:
        if edge["ref"] == package:
            edge.setdefault("dependsOn", []).append(f"pkg:cargo/{crates[0]['name']}@{crates[0]['version']}")
    python["serialNumber"] = ""
    content = json.dumps(python, sort_keys=True)
    python["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, content)}"
    return dict(python)


def main() -> None:
    """Writes the file."""
    file = Path(sys.argv[1])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document(), indent=2, sort_keys=True) + "\n")
    print(file)


if __name__ == "__main__":
    main()
