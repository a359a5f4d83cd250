"""The limit of the shell that a process has met."""

from __future__ import annotations

import resource

import pytest

from pytest_instrcount.callgrind.failing import met_limit


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell with ``ulimit -v 100000`` and no other limit."""

    def limit(which: int) -> tuple[int, int]:
        soft = 102_400_000 if which == resource.RLIMIT_AS else resource.RLIM_INFINITY
        return soft, resource.RLIM_INFINITY

    monkeypatch.setattr(resource, "getrlimit", limit)


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize(
    "said",
    [
        "MemoryError: ",
        # of CPython, where no MemoryError could be made
        "SystemError: error return without exception set",
        "libpython3.11.so: failed to map segment from shared object",
        "Valgrind cannot continue",
        "fork: Cannot allocate memory",
    ],
)
def test_too_little_memory(said: str) -> None:
    why = "it is given 102 MB of memory (ulimit -v), which is too little"
    assert met_limit(said) == (why, "ulimit -v unlimited")


@pytest.mark.usefixtures("limited")
def test_another_failure() -> None:
    assert met_limit("NameError: name 'x' is not defined") is None


@pytest.mark.parametrize(
    "said", ["MemoryError: ", "SystemError: error return without exception set"]
)
def test_no_limit(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """A SystemError can be a fault of C code: without a limit of memory it is none of the shell's."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert met_limit(said) is None
