"""The configuration of the pytest inside: the user's, less all that differs between two runs.

An update and a check, ``-k`` and a whole run, ``-v`` and ``-q`` must measure the same thing. So
options that select, report, distribute or retry get one fixed value inside. The plugins they
belong to stay, with their fixtures and markers, and find nothing to do.
"""

from __future__ import annotations

import base64
import os
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_instrcount.callgrind.command import temporary_folder

#: Option (its ``dest``) -> its value inside. Those of plugins that are not installed do no harm.
FIXED_OPTIONS: Mapping[str, Any] = {
    # what to run
    "keyword": "",
    "markexpr": "",
    "deselect": None,
    "maxfail": 0,
    "collectonly": False,
    "lf": False,
    "failedfirst": False,
    "newfirst": False,
    "stepwise": False,
    "stepwise_skip": False,
    "stepwise_reset": False,
    "cacheclear": False,
    "cacheshow": None,
    "setuponly": False,
    "setupplan": False,
    "setupshow": False,
    # how to show it (a test that fails is shown as the user asked, see inside)
    "verbose": 0,
    "no_header": False,
    "no_summary": False,
    "reportchars": "fE",
    "color": "no",
    "code_highlight": "no",
    "durations": None,
    "durations_min": None,
    "tbstyle": "auto",
    "showlocals": False,
    "showcapture": "all",
    "fulltrace": False,
    "capture": "fd",
    "pastebin": None,
    "xmlpath": None,
    "junitprefix": None,
    "log_cli_level": None,
    "log_file": os.devnull,
    "basetemp": None,
    "debug": None,
    # debuggers
    "usepdb": False,
    "usepdb_cls": None,
    "trace": False,
    # pytest-xdist
    "numprocesses": None,
    "maxprocesses": None,
    "dist": "no",
    "distload": False,
    "tx": [],
    "px": [],
    "looponfail": False,
    "rsyncdir": [],
    "rsyncignore": [],
    "testrunuid": None,
    "maxworkerrestart": None,
    "loadscopereorder": True,
    "maxschedchunk": None,
    # pytest-cov, pytest-rerunfailures, pytest-randomly, pytest-html, pytest-json-report
    "cov_source": [],
    "no_cov": True,
    "reruns": 0,
    "reruns_delay": 0,
    "force_reruns": None,
    "randomly_seed": 0,
    "randomly_reset_seed": False,
    "randomly_reorganize": False,
    "htmlpath": None,
    "json_report": False,
    "report_log": None,
    # pytest-split, pytest-shard, pytest-test-groups
    "splits": None,
    "group": None,
    "splitting_algorithm": "duration_based_chunks",
    "store_durations": False,
    "clean_durations": False,
    "durations_path": os.devnull,
    "num_shards": 1,
    "shard_id": 0,
    "test-group-count": None,
    "test-group": None,
    "random-seed": None,
    # pytest-benchmark, pytest-codspeed
    "benchmark_disable": True,
    "benchmark_only": False,
    "benchmark_skip": False,
    "codspeed": False,
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


def canonical_options(
    option: Mapping[str, Any],
    rootdir: Path,
    inipath: Path | None,
    scratch: Path,
    has_ini: Callable[[str], bool],
) -> list[tuple[str, str]]:
    """Name and value (pickled, then base64) of each option inside, by name.

    A value that cannot be pickled stays outside: it belongs to a plugin's own run. Options of
    this plugin have their defaults inside.
    """
    made = {
        name: FIXED_OPTIONS.get(name, value)
        for name, value in option.items()
        if not name.startswith("instrcount") and name not in _LEFT_OUT
    }
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
        try:
            value = pickle.dumps(made[name])
        except Exception:
            continue
        pickled.append((name, base64.b64encode(value).decode("ascii")))
    return pickled


def canonical_args(plugins: list[str], rootdir: Path) -> list[str]:
    """Arguments inside: the user's ``-p``, and a path that names rootdir and nothing below it.

    A folder would load the conftests of its ``test*`` subfolders as well, which belong to the
    file children.
    """
    anchor = rootdir / "conftest.py"
    if not anchor.exists():
        anchor = Path(__file__)
    args = [part for plugin in plugins for part in ("-p", plugin)]
    return [*args, str(anchor)]


def presentation(option: Mapping[str, Any]) -> dict[str, Any]:
    """The user's options for the presentation of failures."""
    return {name: option[name] for name in PRESENTATION_OPTIONS if name in option}
