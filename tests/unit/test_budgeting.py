"""Which test another one names in its ratio."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.gate.budget import is_named
from pytest_instrcount.session import budgets as budgeting

ids = st.builds(
    "{}::{}{}{}".format,
    st.sampled_from(["a.py", "t/a.py", "t/b.py"]),
    st.sampled_from(["", "TestA::", "TestB::"]),
    st.sampled_from(["f", "g", "test_f"]),
    st.sampled_from(["", "[1]", "[2]", "[a::b]"]),
)


@given(st.lists(ids, min_size=1, max_size=12, unique=True), st.data())
def test_a_name_finds_what_a_look_at_all_tests_finds(
    nodeids: list[str], data: st.DataObject
) -> None:
    """The very id, else the tests with the same parameters, else all of that name."""
    nodeid, other = (data.draw(st.sampled_from(nodeids)) for _ in range(2))
    name = other[
        data.draw(st.sampled_from([0, other.find("::") + 2, other.rfind("::", 0, 14) + 2])) :
    ]
    if data.draw(st.booleans()):
        name = name.partition("[")[0]
    found = [each for each in nodeids if is_named(each, name)]
    for nearer in (
        lambda each: each == name,
        lambda each: each.partition("[")[2] == nodeid.partition("[")[2],
    ):
        found = list(filter(nearer, found)) or found
        if name in found:
            found = [name]
    assert budgeting._Index(nodeids).find(name, nodeid) == found


def test_a_name_finds_a_test_in_a_folder_with_a_bracket() -> None:
    """There "[" is no begin of parameters."""
    index = budgeting._Index(["t[1]/a.py::f[2]", "t[1]/a.py::g[2]"])
    assert index.find("f[2]", "t[1]/a.py::g[2]") == ["t[1]/a.py::f[2]"]


def test_names_are_found_without_a_look_at_all_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite in which each of 5,000 tests is held against another has no 25 million pairs."""
    looks = 0

    def counted(nodeid: str, name: str) -> bool:
        nonlocal looks
        looks += 1
        return is_named(nodeid, name)

    monkeypatch.setattr(budgeting, "is_named", counted)
    nodeids = [f"a.py::{name}[{number}]" for number in range(300) for name in ("old", "new")]
    index = budgeting._Index(nodeids)
    for number in range(300):
        assert index.find("old", f"a.py::new[{number}]") == [f"a.py::old[{number}]"]
    assert looks == 300
