"""What crates/py exports."""

from collections.abc import Callable
from typing import Any

__version__: str

class ScenarioError(ValueError): ...

def run(scenario_json: str, progress: Callable[[int], object] | None = None) -> dict[str, Any]: ...
def algorithms() -> list[str]: ...
