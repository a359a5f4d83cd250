"""How far counts move when a plugin of pytest is installed, against one baseline made without it.

    python benchmarks/plugins.py
    python benchmarks/plugins.py pytest-cov hypothesis -k markdown

Makes an environment with pytest, this package and examples/requirements.txt, and stores the baselines
of a copy of the examples there. Then, for each plugin: installs it, checks, checks once more with
``-p no:NAME``, and uninstalls it. Prints a line for each check: how far the raw count and the gated count
moved of the test that moved most, and which verdicts or notes on isolation are other ones. Exits 1 if a
verdict or an isolation is another one, or a count that is gated moved. Needs the network, for pip.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from copied_examples import EXAMPLES, copy_examples
from outside_ci import outside_ci
from tabulate import tabulate

PLUGINS = (
    "pytest-randomly",
    "pytest-cov",
    "pytest-timeout",
    "pytest-rerunfailures",
    "pytest-rerunfailures+pytest-xdist",
    "pytest-mock",
    "pytest-asyncio",
    "anyio",
    "hypothesis",
    "freezegun",
    "time-machine",
    "pytest-django",
)
ROOT = EXAMPLES.parent
#: What a check says where a test was not measured as its baseline was.
ISOLATION = ("process of its own", "isolation")

_ENTRIES = """
import importlib.metadata, sys
found = importlib.metadata.distribution(sys.argv[1]).entry_points
print(*(each.name for each in found if each.group == "pytest11"))
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and a copy of the examples."""

    python: Path
    examples: Path

    @property
    def baselines(self) -> Path:
        return self.examples.parent / "baselines"

    def call(self, *args: str, codes: Sequence[int] = (0,)) -> str:
        """Run the environment's Python, outside CI; what fails is shown, and ends this process."""
        done = subprocess.run(
            [self.python, *args],
            cwd=self.examples,
            env=outside_ci("PYTHONPATH"),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode not in codes:
            sys.exit(done.stdout + done.stderr)
        return done.stdout

    def pip(self, *args: str) -> str:
        return self.call("-m", "pip", "--disable-pip-version-check", *args)

    def installed(self) -> dict[str, str]:
        """Name -> version of each package, but for the one of this checkout."""
        listed = json.loads(self.pip("list", "--format=json"))
        return {each["name"]: each["version"] for each in listed}

    def entries(self, plugin: str) -> list[str]:
        """By which names pytest knows a plugin; none for a package that is no plugin."""
        return self.call("-c", _ENTRIES, plugin).split()

    def check(self, *args: str) -> tuple[dict[str, Any], str]:
        """The tests of the report by name, and all that was printed."""
        report = self.examples.parent / "report.json"
        report.unlink(missing_ok=True)
        said = self.call(
            *("-m", "pytest", "-p", "no:cacheprovider", "--instrcount"),
            f"--instrcount-baseline-dir={self.baselines}",
            f"--instrcount-report=json:{report}",
            *args,
            codes=(0, 1),
        )
        if not report.exists():
            sys.exit(said)
        return {each["nodeid"]: each for each in json.loads(report.read_text())["tests"]}, said


def make_environment() -> Environment:
    """One without any plugin but this."""
    examples = copy_examples()
    folder = examples.parent / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    environment = Environment(folder / "bin" / "python", examples)
    environment.pip("install", "-e", str(ROOT), "-r", str(EXAMPLES / "requirements.txt"))
    return environment


def row_of(
    name: str, before: dict[str, Any], after: dict[str, Any], said: str
) -> tuple[list[str], bool]:
    """A line of the table, and whether all is as it should be."""
    raw = max(
        abs(after[test]["ir"] / before[test]["ir"] - 1) for test in before if after[test]["ir"]
    )
    gated = max((abs(each["delta"]) for each in after.values() if each["delta"]), default=0.0)
    moved = sum(bool(each["delta"]) for each in after.values())
    verdicts = Counter(each["verdict"] for each in after.values() if each["verdict"] != "unchanged")
    others = [f"{number} {verdict}" for verdict, number in verdicts.items()]
    lost = len(before.keys() - after.keys())
    others += [f"{lost} without a verdict"] if lost else []
    others += ["isolation"] if any(text in said for text in ISOLATION) else []
    shown = f"{gated:.4%} ({moved} tests)" if moved else "0"
    return [name, f"{raw:.3%}", shown, ", ".join(others) or "as before"], not (others or moved)


def main() -> int:
    """Check with each plugin, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "plugins", nargs="*", metavar="PLUGIN", help="default: twelve; A+B: both at once"
    )
    parser.add_argument("-k", metavar="EXPRESSION", help="these tests of the examples alone")
    chosen = parser.parse_args()
    selected = ["-k", chosen.k] if chosen.k else []
    environment = make_environment()
    try:
        return compare(environment, chosen.plugins or PLUGINS, selected)
    finally:
        shutil.rmtree(environment.examples.parent)


def compare(environment: Environment, plugins: Sequence[str], selected: Sequence[str]) -> int:
    """The checks; 1 if one of them is not as it should be."""
    environment.check("--instrcount-update-baseline", *selected)
    before, said = environment.check(*selected)
    rows, fine = [row_of("none", before, before, said)[0]], True
    known = environment.installed()
    for plugin in plugins:
        together = plugin.split("+")
        environment.pip("install", *together)
        now = environment.installed()
        changed = [name for name in known if now.get(name) != known[name]]
        without = [f"-pno:{name}" for each in together for name in environment.entries(each)]
        for args in ([], without) if without else ([],):
            after, said = environment.check(*selected, *args)
            row, good = row_of(" ".join([plugin, *args]), before, after, said)
            rows.append(row)
            fine = fine and good
            print(*row, sep="; ", flush=True)
        environment.pip("uninstall", "-y", *(now.keys() - known.keys()))
        if changed:
            print(f"{plugin} also changes {', '.join(changed)}, put back", flush=True)
            environment.pip("install", *(f"{name}=={known[name]}" for name in changed))
    print(tabulate(rows, headers=("installed", "raw moved", "gated moved", "verdicts, isolation")))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
