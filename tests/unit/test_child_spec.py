"""What plugins wish of the measured processes, put together."""

from __future__ import annotations

import itertools

import pytest

from pytest_instrcount.config.child_spec import ChildSpec, merge_specs
from pytest_instrcount.errors import InstrcountError

SPECS = (
    ("a", ChildSpec(("TOKEN", "KEY"), {"MODE": "x", "B": "1"}, ("--b=1",))),
    ("b", ChildSpec(("KEY",), {"A": "2"}, ("--a",), "process")),
    ("c", ChildSpec((), {"B": "1"}, ("--b=1",), "process")),
)


def test_the_order_of_plugins_does_not_matter() -> None:
    """What is made of them is the same text, in the same order: it shapes the measured process."""
    made = {repr(merge_specs(specs)) for specs in itertools.permutations(SPECS)}
    assert len(made) == 1
    merged = merge_specs(SPECS)
    assert merged.let_through == ("KEY", "TOKEN")
    assert list(merged.variables) == ["A", "B", "MODE"]
    assert merged.valgrind == ("--a", "--b=1")
    assert merged.isolation == "process"
    assert merged.facts() == {"child": "A=2 B=1 MODE=x --a --b=1"}


def test_nothing_is_no_fact() -> None:
    """Names that are let through have a fact of their own, and so has isolation."""
    assert merge_specs([]) == ChildSpec()
    assert ChildSpec(("A",), isolation="process").facts() == {}


@pytest.mark.parametrize(
    "option",
    [
        "--tool=memcheck",
        "--instr-atstart=yes",
        "--log-file=x",
        "--callgrind-out-file=x",
        "--separate-callers=3",
        "--trace-children=yes",
        "--dump-instr=yes",
        "--cache-sim=yes",
    ],
)
def test_options_that_are_not_to_be_changed(option: str) -> None:
    """Those that say what is counted, and where it is written."""
    with pytest.raises(InstrcountError, match="not to be changed"):
        ChildSpec(valgrind=(option,))


def test_two_isolations() -> None:
    """Both plugins are named."""
    specs = [(each, ChildSpec(isolation=each)) for each in ("fork", "process")]
    with pytest.raises(InstrcountError, match="fork and process want isolation="):
        merge_specs(specs)
