"""The configuration inside: the user's, less all that may differ between an update and a check."""

from __future__ import annotations

import base64
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.callgrind.command import temporary_folder
from pytest_instrcount.callgrind.inside.canonical import (
    FIXED_OPTIONS,
    PRESENTATION_OPTIONS,
    canonical_args,
    canonical_options,
    presentation,
)

ROOT = Path("/project")


def inside(option: dict[str, Any], *, ini: tuple[str, ...] = (), inipath: Any = None) -> Any:
    made = canonical_options(option, ROOT, inipath, Path("/tmp/s"), lambda name: name in ini)
    assert [name for name, _ in made] == sorted(name for name, _ in made)
    return {name: pickle.loads(base64.b64decode(value)) for name, value in made}


CHOICES: list[dict[str, Any]] = [
    {"keyword": "a", "markexpr": "b", "deselect": ["x"], "maxfail": 1, "lf": True},
    {"verbose": 3, "reportchars": "A", "tbstyle": "short", "durations": 5, "capture": "no"},
    {"xmlpath": "j.xml", "numprocesses": 4, "dist": "load", "reruns": 3, "usepdb": True},
    {
        "memray": True,
        "profile": True,
        "profile_svg": True,
        "line_profile": ["a.f"],
        "mtr_none": False,
    },
    {"file_or_dir": ["a.py"], "plugins": ["p"], "quiet": 2, "instrcount_update_baseline": True},
]


@pytest.mark.parametrize("chosen", CHOICES)
def test_what_differs_between_runs_does_not_inside(chosen: dict[str, Any]) -> None:
    """Selection, presentation, distribution and this plugin's own options change nothing."""
    usual = {name: FIXED_OPTIONS.get(name) for name in chosen if not name.startswith("instrcount")}
    assert inside(chosen) == inside(usual)


def test_other_options_come_in() -> None:
    """An option of a conftest or a plugin has its value; one that is fixed and absent stays so."""
    found = inside({"database": "sqlite", "importmode": "importlib"})
    assert (found["database"], found["importmode"]) == ("sqlite", "importlib")
    assert "numprocesses" not in found
    assert inside({"profile": "staging"})["profile"] == "staging"
    assert inside({"dist": "wheel"})["dist"] == "wheel"
    assert inside({"group": "large", "splits": 3}) == inside({"splits": None}) | {"group": "large"}


def test_this_plugins_options_stay_outside() -> None:
    """Inside, they have their defaults."""
    assert not [name for name in inside({"instrcount": True}) if name.startswith("instrcount")]
    backend = "instrcount_trace_backend"
    assert backend not in inside({backend: None})
    assert inside({backend: "setprofile"})[backend] == "setprofile"


def test_what_cannot_be_pickled_stays_outside() -> None:
    """It belongs to a plugin's own run."""
    assert "handle" not in inside({"handle": lambda: None, "other": 1})
    assert inside({"handle": lambda: None, "other": 1})["other"] == 1


def test_places() -> None:
    """Root, ini file and the limit of conftests are the native ones."""
    found = inside({})
    assert (found["rootdir"], found["inifilename"], found["confcutdir"]) == (
        "/project",
        os.devnull,
        "/project",
    )
    found = inside({}, inipath=Path("/project/sub/pytest.ini"))
    assert found["inifilename"] == "/project/sub/pytest.ini"
    assert found["confcutdir"] == "/project/sub"
    assert inside({"confcutdir": "/elsewhere"})["confcutdir"] == "/elsewhere"


def test_ini_settings() -> None:
    """The user's -o comes first; clocks and files are off where a plugin declares them."""
    found = inside({"override_ini": ["a=b"]}, ini=("cache_dir", "faulthandler_timeout"))
    assert sorted(found["override_ini"]) == [
        "a=b",
        f"cache_dir={temporary_folder('/tmp/s')}/cache",
        "faulthandler_timeout=0",
    ]
    assert inside({"override_ini": None})["override_ini"] == []


def test_values_are_apart() -> None:
    """Each value is pickled by itself: two that are one object outside are two inside."""
    shared = ["x"]
    found = inside({"a": shared, "b": shared})
    assert found["a"] == found["b"]
    assert found["a"] is not found["b"]


def test_arguments(tmp_path: Path) -> None:
    """The user's -p, and rootdir's conftest, or a file that stands for none."""
    (argument,) = canonical_args([], tmp_path)
    assert Path(argument).is_file()
    (tmp_path / "conftest.py").write_text("")
    assert canonical_args(["one", "no:two", "no:terminal"], tmp_path) == [
        "-p",
        "one",
        "-p",
        "no:two",
        str(tmp_path / "conftest.py"),
    ]


def test_presentation() -> None:
    """What a failure looks like is the user's choice; what a plugin took away is left out."""
    option = {"tbstyle": "short", "verbose": 2, "keyword": "a"}
    assert presentation(option) == {"tbstyle": "short", "verbose": 2}
    assert set(PRESENTATION_OPTIONS) <= set(FIXED_OPTIONS)
