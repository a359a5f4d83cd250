"""Output paths of a run from the command line; refused if writing there would destroy something."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.config.options import REPORT_TYPES

BUNDLE_SUFFIXES = (".json", ".json.gz")


def read_outputs(
    config: pytest.Config, baseline_dir: Path, mistakes: list[str]
) -> Mapping[str, Any]:
    """The settings that name files and folders to write to; what is wrong is added to ``mistakes``."""
    start = config.invocation_params.dir
    found: dict[str, Path | None] = {}
    files: list[tuple[str, Path]] = []
    for name, what in _NAMED.items():
        given, option = config.getoption(f"instrcount_{name}"), name.replace("_", "-")
        if given is not None and not given.endswith(BUNDLE_SUFFIXES if name == "bundle" else ""):
            mistakes.append(f"--instrcount-bundle={given}: write PATH.json.gz, or PATH.json")
        elif given == "":
            mistakes.append(f"--instrcount-{option}=: write the name of a {what}")
        found[name] = path = start / given if given else None
        if path is not None and what == "file":
            files.append((f"--instrcount-{option}=", path))
    reports = _read_reports(config, mistakes)
    files = [*((f"--instrcount-report={kind}:", path) for kind, path in reports), *files]
    inipath = () if config.inipath is None else (config.inipath,)
    for option, path in files:
        why = why_refused(path, inipath, baseline_dir)
        mistakes += [f"{option}{path}: {why}; write another path"] * bool(why)
    return {"reports": reports, **found}


#: Options that name one file or folder.
_NAMED = {"keep": "folder", "bundle": "file", "timings_csv": "file", "debug": "folder"}


def _read_reports(config: pytest.Config, mistakes: list[str]) -> tuple[tuple[str, Path], ...]:
    reports = []
    for report in config.getoption("instrcount_report") or ():
        kind, _, path = report.partition(":")
        if kind in REPORT_TYPES and path:
            reports.append((kind, config.invocation_params.dir / path))
        else:
            mistakes.append(
                f"--instrcount-report={report}: write TYPE:PATH, like json:PATH; the types are "
                f"{', '.join(REPORT_TYPES)}"
            )
    return tuple(reports)


def why_refused(path: Path, read: Collection[Path], baseline_dir: Path | None = None) -> str:
    """Why a path is not to be written to, or "": what is there is no report, but what a run reads.

    ``read`` are files that this run reads.
    """
    try:
        place = Path(os.path.realpath(path))
        if place.is_dir():
            return "it is a folder"
        if place in {Path(os.path.realpath(each)) for each in read}:
            return "this run reads that file"
    except (OSError, ValueError):  # a NUL in it: whoever writes says so
        return ""
    if place.suffix == ".py":
        return "it is a Python file"
    if baseline_dir is not None and Path(os.path.realpath(baseline_dir)) in place.parents:
        return "it is among the baselines"
    return ""


class OutputGuard:
    """The plugin object that keeps collected files of any kind from being written over."""

    def __init__(self, outputs: Collection[Path]) -> None:
        self._outputs = outputs
        self._collected: set[Path] = set()
        #: why nothing is to be written; "" if all may be
        self.refused = ""

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        """Note a file, also where none of its tests is selected."""
        if isinstance(collector, pytest.File):
            self._collected.add(collector.path)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Raise pytest.UsageError before the first test."""
        self._check(self._collected.union(item.path for item in session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Iterable[str]) -> None:
        """Under pytest-xdist the workers collect, and this process writes."""
        root = node.config.rootpath
        self._check({root / nodeid.partition("::")[0] for nodeid in ids})

    def _check(self, collected: Collection[Path]) -> None:
        for path in self._outputs:
            why = why_refused(path, collected)
            if why:
                self.refused = f"{path}: {why}; write another path"
                self._raise()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Raise it again, within the hooks that write: they go on only where this one does."""
        if self.refused:
            self._raise()

    def _raise(self) -> None:
        raise pytest.UsageError(f"instrcount: wrong settings [settings]\n{self.refused}")
