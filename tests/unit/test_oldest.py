"""The lower bounds of what is depended on are those that are tested."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def bounds(text: str, sign: str) -> dict[str, str]:
    """Distribution -> version behind the sign."""
    return dict(re.findall(rf"([a-z-]+(?:\[[a-z]+\])?){re.escape(sign)}([0-9.]+)", text))


def test_the_oldest_environment_has_the_lower_bounds() -> None:
    """The environment pins what pyproject.toml allows at least, and nothing else."""
    project = (ROOT / "pyproject.toml").read_text()
    [needed] = re.findall(r"^dependencies = \[(.*)\]", project, re.MULTILINE)
    [tests] = re.findall(r"^test = \[(.*?)^\]", project, re.MULTILINE | re.DOTALL)
    tools = {"check-jsonschema", "hatchling", "mypy", "radon", "ruff"}
    under_valgrind = {"anyio[trio]", "pytest-asyncio"}  # their tests are not of that environment
    allowed = bounds(needed, ">=") | bounds(tests, ">=")
    wanted = {name: allowed[name] for name in allowed.keys() - tools - under_valgrind}
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    assert bounds(tox["testenv:oldest"]["deps"], "==") == wanted
    assert set(bounds(needed, ">=")) == {"pytest", "pluggy", "tabulate"}
