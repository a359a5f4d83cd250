"""How Python was started, and how Python under Valgrind is, therefore."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from pytest_instrcount.callgrind.interpreter import (
    NEWEST_TRIED,
    build_facts,
    check_build,
    options_for,
    untried_version,
)
from pytest_instrcount.errors import InstrcountError


@pytest.mark.parametrize(
    ("given", "variables", "options"),
    [
        ({}, {}, []),
        ({"gil": "0", "importtime": True, "utf8": "0"}, {"PYTHONUTF8": "0"}, []),
        (
            {"int_max_str_digits": "900"},
            {"PYTHONINTMAXSTRDIGITS": "800"},
            ["-Xint_max_str_digits=900"],
        ),
        ({}, {"PYTHONDEVMODE": "1", "PYTHONNODEBUGRANGES": ""}, ["-Xdev"]),
        ({"frozen_modules": "off"}, {}, ["-Xfrozen_modules=off"]),
    ],
)
def test_options(
    given: dict[str, str | bool], variables: dict[str, str], options: list[str]
) -> None:
    """What is given wins over its variable, and what does not concern a count stays away."""
    assert options_for(0, 0, given, variables) == options


def test_switches() -> None:
    assert options_for(2, 1, {}, {}) == ["-O", "-O", "-b"]


@pytest.mark.parametrize(
    ("enabled", "facts"), [(True, {"options": "-O jit"}), (False, {"options": "-O"})]
)
def test_a_jit_is_a_fact(
    enabled: bool, facts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "_jit", SimpleNamespace(is_enabled=lambda: enabled), raising=False)
    assert build_facts(["-O"]) == facts


def test_a_usual_start_is_no_fact() -> None:
    """Baselines from before there was such a fact stay good."""
    assert build_facts([]) == {}


def test_builds_that_nobody_has_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    check_build()
    monkeypatch.setattr("sysconfig.get_config_var", lambda name: name == "Py_GIL_DISABLED")
    with pytest.raises(InstrcountError, match=r"free-threaded build .*\[python-build\]"):
        check_build()
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(name="pypy"))
    with pytest.raises(InstrcountError, match=r"this is pypy"):
        check_build()


def test_a_version_that_nobody_has_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (*NEWEST_TRIED, 9))
    assert not untried_version()
    monkeypatch.setattr(sys, "version_info", (3, 16, 0))
    assert untried_version() == "3.16 is newer than 3.15, the newest CPython that was tried"
