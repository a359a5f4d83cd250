"""What the pytest inside is told of folders that it does not list."""

from __future__ import annotations

import marshal
from pathlib import Path
from zipfile import ZipFile

import pytest

from pytest_instrcount.callgrind.launch import installed_in, write_listings
from pytest_instrcount.session.zygote import plugin_arguments


def test_what_is_installed_is_found_by_name(tmp_path: Path) -> None:
    """In the order of ``sys.path``; what pip left half done has no name, and a zip file is empty."""
    first, second = tmp_path / "first", tmp_path / "second"
    for path in ("first/A.b-1.0.dist-info", "first/-ip-9.dist-info", "second/a_b-2.0.egg-info"):
        tmp_path.joinpath(path).mkdir(parents=True)
    with ZipFile(tmp_path / "third.zip", "w") as archive:
        archive.writestr("a_b-3.0.dist-info/METADATA", "Name: a_b")
    others = (str(tmp_path / "nowhere"), str(tmp_path / "third.zip"))
    found = installed_in([str(first), *others, str(second)])
    named = [
        (str(first), str(first / "A.b-1.0.dist-info")),
        (str(second), str(second / "a_b-2.0.egg-info")),
    ]
    assert found["a_b"] == named
    assert set(found) == {"a_b", ".all"}
    assert sorted(found[".all"]) == sorted([*named, (str(first), str(first / "-ip-9.dist-info"))])


def test_site_finds_its_files(tmp_path: Path) -> None:
    """Of each folder, be there one or not; not that of coverage, which moves counts for nothing."""
    for name in ("b.pth", "a.start", "c.py", "a1_coverage.pth"):
        tmp_path.joinpath(name).touch()
    write_listings(tmp_path, [str(tmp_path), "/nowhere"])
    listed = marshal.loads((tmp_path / "site").read_bytes())
    assert listed == {str(tmp_path): ["a.start", "b.pth"], "/nowhere": []}


def test_what_is_left_out_is_not_told(pytester: pytest.Pytester, tmp_path: Path) -> None:
    """``-p no:NAME`` of what is installed; but where a conftest names it, or it is pytest's own.

    As one word with a blank in it, as ini files have it.
    """
    for name in ("left_out", "wanted"):
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        folder.joinpath("METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
        folder.joinpath("entry_points.txt").write_text(f"[pytest11]\n{name} = nowhere\n")
    pytester.syspathinsert(tmp_path)
    pytester.makeconftest("pytest_plugins = ['wanted']")
    given = ["no:left_out", "no:wanted", "no:cacheprovider"]
    config = pytester.parseconfigure(*[f"-p {each}" for each in given])
    assert [*plugin_arguments(config)] == given[1:]
