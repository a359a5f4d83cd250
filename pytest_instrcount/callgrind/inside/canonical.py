"""The configuration of the pytest inside: the user's, less all that differs between two runs.

An update and a check, ``-k`` and a whole run, ``-v`` and ``-q`` must measure the same thing. So
options that select, report, distribute or retry get one fixed value inside. The plugins they
belong to stay, with their fixtures and markers, and find nothing to do.
"""

from __future__ import annotations

import base64
import io
import os
import pickle
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pytest_instrcount.callgrind.command import temporary_folder
from pytest_instrcount.config.hooks import conftests_of

if TYPE_CHECKING:
    import pytest

#: Options, by their ``dest``, that have one value inside: those that are switched off, ...
_OFF = """
    collectonly lf failedfirst newfirst stepwise stepwise_skip stepwise_reset cacheclear setuponly
    setupplan setupshow no_header no_summary showlocals fulltrace usepdb trace
    distload looponfail json_report randomly_reset_seed randomly_reorganize
    store_durations clean_durations benchmark_only benchmark_skip codspeed
    memray profile profile_svg
"""
#: ... and those that are as if they were not given.
_NOT_GIVEN = """
    deselect cacheshow durations durations_min pastebin xmlpath junitprefix log_cli_level basetemp debug
    usepdb_cls numprocesses maxprocesses testrunuid maxworkerrestart maxschedchunk
    force_reruns htmlpath line_profile report_log splits group test-group-count test-group random-seed
"""
#: Option (its ``dest``) -> its value inside. Those of plugins that are not installed do no harm.
FIXED_OPTIONS: Mapping[str, Any] = {
    **dict.fromkeys(_OFF.split(), False),
    **dict.fromkeys(_NOT_GIVEN.split()),
    # what to run
    "keyword": "",
    "markexpr": "",
    "maxfail": 0,
    # how to show it (a test that fails is shown as the user asked, see inside)
    "verbose": 0,
    "reportchars": "fE",
    "color": "no",
    "code_highlight": "no",
    "tbstyle": "auto",
    "showcapture": "all",
    "capture": "fd",
    "log_file": os.devnull,
    # pytest-xdist
    "dist": "no",
    "tx": [],
    "px": [],
    "rsyncdir": [],
    "rsyncignore": [],
    "loadscopereorder": True,
    # pytest-dependency: no process knows how other tests ended
    "ignore_unknown_dependency": True,
    # pytest-cov, pytest-monitor, pytest-rerunfailures, pytest-randomly
    "cov_source": [],
    "no_cov": True,
    "mtr_none": True,
    "reruns": 0,
    "reruns_delay": 0,
    "randomly_seed": 0,
    # pytest-split, pytest-shard
    "splitting_algorithm": "duration_based_chunks",
    "durations_path": os.devnull,
    "num_shards": 1,
    "shard_id": 0,
    # pytest-benchmark
    "benchmark_disable": True,
}

#: Options of a failure's text; given to a child once it has a failure to show.
PRESENTATION_OPTIONS = ("tbstyle", "showlocals", "fulltrace", "verbose", "showcapture")

#: ini settings of plugins whose clocks and files are not wanted inside. What no plugin declares
#: is left out: an unknown setting is a warning.
_FIXED_INI = {
    "faulthandler_timeout": "0",
    "log_cli": "false",
    # outside it has been looked for; not all of them are loaded inside
    "required_plugins": "",
    "log_file": "",
    "cache_dir": "{temporary}/cache",
}


#: There only sometimes (with ``-q``, in a worker of pytest-xdist); or not to be there before the
#: arguments are parsed, of which argparse warns.
_LEFT_OUT = ("quiet", "loadgroup", "file_or_dir")
#: Of this plugin's own, given on the command line.
_KEPT = ("instrcount_trace_backend",)
#: Their values are numbers; a text is of the project's own option.
_OF_SHARDS = ("splits", "group", "num_shards", "shard_id")


def _inside(name: str, option: Mapping[str, Any]) -> object:
    """Its value there; a text is of no switch, but of the project's own option: ``--profile=staging``."""
    value = option[name]
    fixed = FIXED_OPTIONS.get(name, value)
    if name in ("dist", "tx"):
        own = "numprocesses" not in option  # pytest-xdist has all three
    else:
        own = isinstance(value, str) and (fixed is False or name in _OF_SHARDS)
    return value if own else fixed


def _goes_in(name: str, value: object) -> bool:
    if name.startswith("instrcount"):
        return name in _KEPT and value is not None
    return name not in _LEFT_OUT


def canonical_options(
    option: Mapping[str, Any],
    rootdir: Path,
    inipath: Path | None,
    scratch: Path,
    has_ini: Callable[[str], bool],
    conftests: Iterable[ModuleType] = (),
) -> list[tuple[str, str]]:
    """Name and value (pickled, then base64) of each option inside, by name.

    A value that cannot be pickled stays outside: it belongs to a plugin's own run. Options of
    this plugin have their defaults inside.
    """
    made = {name: _inside(name, option) for name, value in option.items() if _goes_in(name, value)}
    made["plugins"] = []
    made["rootdir"] = str(rootdir)
    # without one none is looked for: there may be one above the anchor of `canonical_args`
    made["inifilename"] = os.devnull if inipath is None else str(inipath)
    made["confcutdir"] = str(
        option.get("confcutdir") or (rootdir if inipath is None else inipath.parent)
    )
    fixed_ini = [
        f"{name}={value.format(temporary=temporary_folder(str(scratch)))}"
        for name, value in _FIXED_INI.items()
        if has_ini(name)
    ]
    made["override_ini"] = [*(option.get("override_ini") or ()), *fixed_ini]
    pickled = []
    for name in sorted(made):
        written = io.BytesIO()
        try:
            _Writer(written, conftests).dump(made[name])
        except Exception:
            continue
        pickled.append((name, base64.b64encode(written.getvalue()).decode("ascii")))
    return pickled


class _Writer(pickle.Pickler):
    """Names the classes of conftests by their files: several modules may have the name ``conftest``."""

    def __init__(self, file: io.BytesIO, conftests: Iterable[ModuleType]) -> None:
        super().__init__(file)
        self._names = {
            id(value): (module.__file__, name)
            for module in conftests
            for name, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module.__name__
        }

    def persistent_id(self, value: object) -> tuple[str | None, str] | None:
        return self._names.get(id(value))


class _Reader(pickle.Unpickler):
    def __init__(self, data: bytes, conftests: Iterable[ModuleType]) -> None:
        super().__init__(io.BytesIO(data))
        self._found = {module.__file__: module for module in conftests}

    def persistent_load(self, where: tuple[str | None, str]) -> Any:
        return getattr(self._found[where[0]], where[1])


def take_options(pickled: Iterable[tuple[str, str]]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What `canonical_options` made: values by name, and what only `take_late` can read."""
    values: dict[str, Any] = {}
    late: dict[str, bytes] = {}
    for name, text in pickled:
        data = base64.b64decode(text)
        try:
            values[name] = pickle.loads(data)
        except Exception:  # of a class of the project's, which pytest has not imported yet
            late[name] = data
    return values, late


def take_late(config: pytest.Config, late: dict[str, bytes]) -> None:
    """Set the options that can be read by now; for all others the parser's default stands."""
    for name, data in [*late.items()]:
        with suppress(Exception):
            setattr(config.option, name, _Reader(data, conftests_of(config)).load())
            del late[name]


def canonical_args(plugins: list[str], rootdir: Path) -> list[str]:
    """Arguments inside: the user's ``-p``, and a path that names rootdir and nothing below it.

    A folder would load the conftests of its ``test*`` subfolders as well, which belong to the
    file children.
    """
    anchor = rootdir / "conftest.py"
    if not anchor.exists():
        anchor = Path(__file__)
    # what shows fixtures asks for the terminal's reporter, which is silent here
    loaded = [each for each in plugins if each != "no:terminal"]
    args = [part for plugin in loaded for part in ("-p", plugin)]
    return [*args, str(anchor)]


def presentation(option: Mapping[str, Any]) -> dict[str, Any]:
    """The user's options for the presentation of failures."""
    return {name: option[name] for name in PRESENTATION_OPTIONS if name in option}
