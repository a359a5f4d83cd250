"""Known projects whose suites have benchmarks, measured as they are: no file of theirs is changed.

    python benchmarks/adopt.py                    # all of them
    python benchmarks/adopt.py cattrs yarl        # some
    python benchmarks/adopt.py --without cattrs   # with neither plugin installed
    python benchmarks/adopt.py --folder DIR       # keeps environments and sources for the next run

Installs each project, what its tests need, pytest-benchmark and pytest-codspeed from PyPI into an
environment of its own, unpacks its sdist (or clones its repository, where that has no benchmarks), and
runs ``pytest --instrcount-only`` on the benchmarks twice. Prints tests, outcomes and seconds of both
runs, and which counts differ. Exits 1 if one does, or if a benchmark fails.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from outside_ci import outside_ci

HERE = Path(__file__).parent.parent

#: What the projects of aio-libs name in their pytest.ini and import in their tests.
AIO_LIBS = (
    "pytest-cov",
    "pytest-xdist",
    "covdefaults",
    "objgraph",
    "hypothesis",
    "psutil",
    "idna",
    "Cython",
)
PLUGINS = ("pytest-benchmark", "pytest-codspeed")


@dataclass(frozen=True)
class Project:
    """One project, and where its sdist has the benchmarks."""

    name: str
    #: release that the numbers in docs/how-to/existing-benchmarks.md are of
    version: str
    #: arguments for pytest
    args: tuple[str, ...]
    #: beside the project itself
    needs: tuple[str, ...]
    #: where a tag of the release is, if the sdist has no benchmarks
    repository: str = ""


PROJECTS = (
    Project("cattrs", "26.2.1", ("bench",), ("msgspec", "orjson")),
    Project("propcache", "0.5.4", ("-n0", "tests/test_benchmarks.py"), AIO_LIBS),
    Project(
        "yarl",
        "1.25.1",
        (
            "-n0",
            "tests/test_url_benchmarks.py",
            "tests/test_quoting_benchmarks.py",
            "tests/test_query_benchmarks.py",
        ),
        AIO_LIBS,
    ),
    Project(
        "multidict", "7.2.1", ("-n0", "-k", "cs-c", "tests/test_multidict_benchmarks.py"), AIO_LIBS
    ),
    Project("wcwidth", "0.7.0", ("tests/test_benchmarks.py",), ("pytest-cov",)),
    Project("humanize", "4.17.0", ("tests/test_benchmarks.py",), ("freezegun", "pytest-cov")),
    Project("pluggy", "1.7.0", ("testing/benchmark.py",), ()),
    Project(
        "bidict",
        "0.24.1",
        ("-o", "addopts=", "microbenchmarks.py"),
        ("typing_extensions",),
        repository="https://github.com/jab/bidict",
    ),
)


def run(*command: str | Path) -> None:
    """Run a command that has to work."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def prepare(project: Project, folder: Path, *, without: bool) -> tuple[Path, Path]:
    """The environment's Python, and the unpacked sdist."""
    environment = folder / f"{project.name}-{'without' if without else 'with'}"
    python = environment / "bin" / "python"
    release = f"{project.name}=={project.version}"
    if not python.exists():
        run(sys.executable, "-m", "venv", environment)
        plugins = () if without else PLUGINS
        wanted = ("pytest", release, *project.needs, *plugins)
        run(python, "-m", "pip", "install", "-q", *wanted)
        run(python, "-m", "pip", "install", "-q", HERE)
    run(python, "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps", HERE)
    source = folder / f"{project.name}-{project.version}"
    if project.repository and not source.exists():
        run("git", "clone", "-q", "--branch", f"v{project.version}", project.repository, source)
    if not source.exists():
        options = ("--no-deps", f"--no-binary={project.name}", "-q")
        run(python, "-m", "pip", "download", *options, "-d", folder, release)
        with tarfile.open(folder / f"{project.name}-{project.version}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return python, source


def measure(python: Path, source: Path, args: tuple[str, ...]) -> tuple[dict[str, int], str, float]:
    """Nodeid -> instructions per call; pytest's last line; seconds."""
    report = source.parent / "report.json"
    report.unlink(missing_ok=True)
    # not ``python -m pytest``: that would import the source, which is not compiled
    pytest = python.with_name("pytest")
    command = [pytest, "--instrcount-only", f"--instrcount-report=json:{report}"]
    start = time.monotonic()
    done = subprocess.run(
        [*map(str, command), *args, "--color=no"],
        cwd=source,
        env=outside_ci(),
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - start
    if not report.exists():
        sys.exit(done.stdout + done.stderr)
    tests = json.loads(report.read_text())["tests"]
    (source.parent / f"{source.name}.txt").write_text(done.stdout + done.stderr)
    counts = {test["nodeid"]: test["ir"] for test in tests}
    return counts, done.stdout.strip().rpartition("\n")[2].strip("= "), seconds


def main() -> None:
    """Run them and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="project")
    parser.add_argument("--without", action="store_true", help="install neither plugin")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = (options.folder or Path(tempfile.mkdtemp(prefix="adopt-"))).resolve()
    folder.mkdir(exist_ok=True)
    bad = False
    print(f"{'project':18} {'measured':>8} {'1st run':>8} {'2nd run':>8} {'differ':>6}  outcome")
    for project in PROJECTS:
        if options.names and project.name not in options.names:
            continue
        python, source = prepare(project, folder, without=options.without)
        first, outcome, seconds = measure(python, source, project.args)
        second, _, again = measure(python, source, project.args)
        differ = [nodeid for nodeid, ir in first.items() if second.get(nodeid) != ir]
        bad = bad or bool(differ) or re.search(r"failed|error", outcome) is not None
        name = f"{project.name} {project.version}"
        times = f"{seconds:6.0f} s {again:6.0f} s"
        print(
            f"{name:18} {len(first):8} {times} {len(differ):6}  {outcome}",
            *differ,
            sep="\n  ",
            flush=True,
        )
    sys.exit(bad)


if __name__ == "__main__":
    main()
