"""Merging what comes from strangers: it is checked, and nothing but OUT is ever written."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.cli.main import main
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.folder import add_files
from pytest_instrcount.gate.store.names import file_name, folder_parts
from pytest_instrcount.gate.store.shard import Shard, parse_shard, render_shard
from tests.baselines import SAMPLE, plant, plant_profile, read_whole
from tests.schemas import complaints

DATA = Path(__file__).parents[1] / "data"
NODEID = read_whole(SAMPLE)["nodeid"]
KEY = "cp311-linux-x86_64"
REPORT_SCHEMA = Path(__file__).parents[2] / "docs/reference/schemas/report-3.json"

TEST: dict[str, Any] = {
    "nodeid": "t.py::a",
    "group": None,
    "extra_info": {},
    "verdict": "unchanged",
    "cause": None,
    "ir": 10,
    "baseline_ir": 10,
    "denoised_ir": 10,
    "delta": 0.0,
    "spread": 0.0,
    "detects": 0.0001,
    "floor": 0.0001,
    "limit": "+1 %",
    "functions": [],
    "python": None,
    "explained": {"functions": None, "python": None},
    "work": {},
    "remarks": [],
}
BUDGET: dict[str, Any] = {
    "nodeid": "t.py::a",
    "budget": "max_ir",
    "kept": True,
    "now": 10,
    "allowed": 20,
    "other": None,
    "counts": {},
    "reason": "",
}


def report(*tests: dict[str, Any], **changes: Any) -> dict[str, Any]:
    whole = {
        "schema": 3,
        "environment": {"valgrind": "3.19.0"},
        "against": None,
        "shards": [],
        "tests": list(tests),
        "traces": [],
        "budgets": [],
    }
    return whole | changes


def folder(root: Path, text: str | None = None, nodeid: str = NODEID) -> Path:
    """A folder with one baseline, the sample's but for the test; or with any text as its summary."""
    path = root.joinpath(KEY, *folder_parts(nodeid), file_name(nodeid))
    path.parent.mkdir(parents=True)
    if text is None:
        return plant(path, {**read_whole(SAMPLE), "nodeid": nodeid})
    path.write_text(text)
    return path


def refused(capsys: pytest.CaptureFixture[str], *args: Path | str) -> str:
    """The slug of the one message; exit code 2."""
    before = capsys.readouterr()
    assert main(["merge", *map(str, args)]) == 2, before
    said = capsys.readouterr()
    assert not said.out
    what, fix = said.err.splitlines()
    assert what.startswith("instrcount: ") and fix.startswith("  fix: ")
    return what.rpartition("[")[2].rstrip("]")


def everything(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


# --- folders ------------------------------------------------------------------------------------


def spoil_place(root: Path) -> None:
    path = folder(root)
    path.rename(path.with_name("other-12345678.json"))


def spoil_environment(root: Path) -> None:
    folder(root)
    (root / KEY).rename(root / "a b")


def spoil_by_link(root: Path) -> None:
    path = folder(root)
    (path.parent / "b.json").symlink_to("/etc/passwd")


def spoil_by_linked_folder(root: Path) -> None:
    folder(root)
    (root / KEY / "x").symlink_to("/etc")


def spoil_depth(root: Path) -> None:
    folder(root, '{"schema": 6, "nodeid": ' + "[" * 100_000)


def spoil_size(root: Path) -> None:
    folder(root, SAMPLE.read_text() + " " * 5_000_000)


def spoil_by_pipe(root: Path) -> None:
    os.mkfifo(folder(root).parent / "b-12345678.json")


def spoil_by_another_json(root: Path) -> None:
    (folder(root).parent / "package.json").write_text("{")


def spoil_types(root: Path) -> None:
    plant_profile(folder(root), json.dumps({**read_whole(SAMPLE), "functions": []}))


def spoil_shard(root: Path) -> None:
    folder(root)
    (root / KEY / "12345678.shard.json.gz").write_bytes(b"\x1f\x8b nothing")


def spoil_sum(root: Path) -> None:
    plant_profile(folder(root), json.dumps({**read_whole(SAMPLE), "functions": {}}))


def spoil_age(root: Path) -> None:
    folder(root, (DATA / "baselines/schema5.json").read_text())


@pytest.mark.parametrize(
    ("spoil", "slug"),
    [
        (spoil_sum, "baseline-damaged"),
        (spoil_age, "baseline-older"),
        (spoil_place, "baseline-mismatch"),
        (spoil_environment, "baseline-mismatch"),
        (spoil_by_link, "baseline-unreadable"),
        (spoil_by_linked_folder, "baseline-unreadable"),
        (spoil_by_pipe, "baseline-unreadable"),
        (spoil_by_another_json, "baseline-mismatch"),
        (spoil_depth, "baseline-damaged"),
        (spoil_size, "baseline-damaged"),
        (spoil_types, "baseline-damaged"),
        (spoil_shard, "shard-damaged"),
    ],
)
def test_a_folder_that_is_none(
    spoil: Any, slug: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Told with the file and a command; as an input and as what is added to."""
    folder(tmp_path / "good")
    spoil(tmp_path / "bad")
    before = set(tmp_path.rglob("*"))
    assert refused(capsys, "--into", tmp_path / "out", tmp_path / "good", tmp_path / "bad") == slug
    if slug != "shard-damaged":
        assert refused(capsys, "--into", tmp_path / "bad", tmp_path / "good") == slug
    assert set(tmp_path.rglob("*")) == before


def test_nothing_to_merge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A job that lost its artifacts is no success."""
    assert refused(capsys, "--into", tmp_path / "out", tmp_path) == "no-baselines"


@pytest.mark.parametrize(
    "arguments",
    [
        ["merge", "--into", "out", "."],
        ["compare", ".", "instrcount_baselines"],
        ["show", NODEID, "--baseline-dir", "."],
        ["history", "test_gone", "--baseline-dir", "."],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("name", ["package.json", "a.txt"])
def test_nobody_is_told_to_remove_what_is_no_baseline(
    name: str,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The project is named where its folder of baselines is meant."""
    folder(tmp_path / "instrcount_baselines")
    (tmp_path / name).write_text('{"name": "a project\'s"}')
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    what, fix = capsys.readouterr().err.splitlines()
    assert "[baseline-mismatch]" in what
    assert fix.startswith("  fix: ls .")


@pytest.mark.parametrize(
    "arguments",
    [
        ["merge", "--into", "out", "good", "old"],
        ["compare", "good", "old"],
        ["compare", "old", "good"],
        ["show", NODEID, "--baseline-dir", "old"],
        ["history", NODEID, "--baseline-dir", "old"],
    ],
    ids=" ".join,
)
def test_every_command_refuses_older_baselines_in_the_same_words(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder(tmp_path / "good")
    spoil_age(tmp_path / "old")
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"instrcount: the baselines in old/{KEY} are of an older format (schema 5, this release "
        "reads 6) [baseline-older]",
        "  fix: pytest --instrcount-update-baseline    # measures all of them again",
    ]


@pytest.mark.parametrize("nodeid", ["../../../x.py::a", "/etc/x.py::a", "a/../../../../x.py::a"])
def test_ids_that_climb(nodeid: str, tmp_path: Path) -> None:
    """Where a baseline goes is made from its test's id, of safe parts."""
    folder(tmp_path / "in", nodeid=nodeid)
    assert main(["merge", "--into", str(tmp_path / "box/out"), str(tmp_path / "in")]) == 0
    written = [path for path in tmp_path.rglob("*.json") if "in" not in path.parts]
    assert [path.relative_to(tmp_path).parts[:3] for path in written] == [("box", "out", KEY)]


def test_a_profile_that_is_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is not merged, and that is said; the summary is."""
    (profile,) = folder(tmp_path / "in").parent.glob("*.profile.gz")
    profile.write_bytes(b"no")
    assert main(["merge", "--into", str(tmp_path / "out"), str(tmp_path / "in")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1:] == [f"1 baseline with a missing or damaged profile, like {NODEID}: only totals"]


@pytest.mark.parametrize("inputs", ["lost whole", "whole lost"])
def test_a_profile_that_one_input_lost(inputs: str, tmp_path: Path) -> None:
    """The other has it: that is no conflict, whichever comes first, and in OUT, too."""
    folder(tmp_path / "whole")
    (profile,) = folder(tmp_path / "lost").parent.glob("*.profile.gz")
    profile.unlink()
    out, sources = str(tmp_path / "out"), [str(tmp_path / each) for each in inputs.split()]
    assert main(["merge", "--into", out, *sources]) == 0
    written = everything(tmp_path / "out")
    assert len([path for path in written if path.endswith(".profile.gz")]) == 1
    assert main(["merge", "--into", out, str(tmp_path / "lost")]) == 0
    assert everything(tmp_path / "out") == written


def test_into_a_folder_of_an_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It would hold what belongs elsewhere: no command would read it from then on."""
    folder(tmp_path / "in")
    before = everything(tmp_path)
    assert refused(capsys, "--into", tmp_path / "in/out", tmp_path / "in") == "merge-write"
    assert everything(tmp_path) == before


def test_nothing_there_is_lost(tmp_path: Path) -> None:
    """OUT is added to: baselines of other tests, and what is none, stay."""
    folder(tmp_path / "in")
    nodeid = "other.py::b"
    folder(tmp_path / "out", nodeid=nodeid)
    (tmp_path / "out/README").write_text("mine")
    before = everything(tmp_path / "out")
    assert main(["merge", "--into", str(tmp_path / "out"), str(tmp_path / "in")]) == 0
    after = everything(tmp_path / "out")
    assert before.items() < after.items() and len(after) == 6


def test_all_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk is full in the middle, OUT is as it was."""
    out = tmp_path / "out"
    (out / "k").mkdir(parents=True)
    replace, calls = os.replace, []

    def full(*paths: Any) -> None:
        calls.append(paths)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        replace(*paths)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InstrcountError, match=r"No space left on device \[merge-write\]"):
        add_files(out, {("k", "a.json"): b"a", ("k", "n", "b.json"): b"b"})
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "k"]


def test_a_folder_that_may_not_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Or is a file."""
    folder(tmp_path / "in")
    (tmp_path / "file").write_text("x")
    slug = refused(capsys, "--into", tmp_path / "file/out", tmp_path / "in")
    assert slug == "merge-write"


def test_shards_are_read_as_they_were() -> None:
    """Layouts are stored as what differs from the first; nothing is lost, rows that vanish neither."""
    first = Profile(9, {"f": Row(7, 1), "g": Row(2, 1)}, {"f": {"g": Row(7, 1), "h": Row(1, 1)}})
    second = Profile(9, {"f": Row(9, 1), "k": Row(0, 1)}, {"f": {"h": Row(1, 1)}, "k": {}})
    third = Profile(2, {"g": Row(2, 1)})
    shard = Shard({"a", "b"}, {"t.py::a": (first, second, third, first), "t.py::b": None})
    assert parse_shard(render_shard(shard), Path("x")) == shard


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("{}", "shard-damaged"),
        ("[" * 100_000, "shard-damaged"),
        ('{"kind": "pytest-instrcount shard", "schema": 2}', "baseline-newer"),
        ('{"kind": "pytest-instrcount shard", "schema": 1}', "shard-damaged"),
        (
            render_shard(Shard({"a"}, {"t": (Profile(1, {"f": Row(1, 1)}),)})).replace(
                "[1, 1]", "[1]"
            ),
            "",
        ),
        (
            render_shard(Shard({"a"}, {"t": (Profile(1, {"f": Row(1, 1)}),)})).replace(
                "[1, 1]", "true"
            ),
            "",
        ),
        (render_shard(Shard({"a"}, {"t": None})).replace("null", "[]"), ""),
    ],
)
def test_a_shard_that_is_none(text: str, slug: str) -> None:
    """Whatever is wrong with it, the error is ours."""
    with pytest.raises(InstrcountError) as raised:
        parse_shard(text, Path("x"))
    assert raised.value.slug == (slug or "shard-damaged")


def test_a_bomb(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    """What unpacks to more than is allowed is refused."""
    monkeypatch.setattr("pytest_instrcount.gate.store.shard.LARGEST", 1000)
    folder(tmp_path / "in")
    (tmp_path / "in" / KEY / "x.shard.json.gz").write_bytes(gzip.compress(b" " * 10_000))
    assert refused(capsys, "--into", tmp_path / "out", tmp_path / "in") == "shard-damaged"


# --- reports ------------------------------------------------------------------------------------


def written(tmp_path: Path, *reports: Any) -> list[Path]:
    paths = [tmp_path / f"r{number}.json" for number, _ in enumerate(reports)]
    for path, each in zip(paths, reports):
        path.write_text(each if isinstance(each, str) else json.dumps(each))
    return paths


def test_the_union_fits_the_schema(tmp_path: Path) -> None:
    """Same entries once; stale ones last, and gone where another has measured the test; budgets too."""
    stale = {**TEST, "nodeid": "t.py::c", "verdict": "stale", "ir": None}
    other = {**TEST, "nodeid": "t.py::b", "verdict": "improved", "delta": -0.5}
    one = report({**stale, "nodeid": "t.py::b"}, stale, TEST, budgets=[BUDGET])
    two = report(other, TEST, budgets=[{**BUDGET, "budget": "max_ratio"}, BUDGET])
    out = tmp_path / "out.json"
    code = main(["merge", "--into", str(out), *map(str, written(tmp_path, one, two))])
    joined = json.loads(out.read_text())
    assert code == 0
    assert joined["tests"] == [other, TEST, stale]
    assert [each["budget"] for each in joined["budgets"]] == ["max_ir", "max_ratio"]
    schema = json.loads(REPORT_SCHEMA.read_text())
    assert sorted(joined) == sorted(schema["required"])
    item = schema["properties"]["tests"]["items"]
    assert all(sorted(test) == sorted(item["required"]) for test in joined["tests"])
    assert complaints(joined["environment"], {"type": "object"}) == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, 0),
        ({"tests": [{**TEST, "nodeid": "t.py::b", "verdict": "failed"}]}, 1),
        ({"tests": [{**TEST, "nodeid": "t.py::b", "verdict": "nondeterministic"}]}, 1),
        ({"tests": [{**TEST, "nodeid": "t.py::b", "verdict": "incomparable"}]}, 0),
        ({"traces": [{"nodeid": "t.py::b", "verdict": "regressed", "cause": None, "calls": 3}]}, 1),
        ({"budgets": [{**BUDGET, "kept": False}]}, 1),
    ],
)
def test_exit_codes(tmp_path: Path, changes: Any, code: int) -> None:
    """1 where a run with these results would have failed."""
    paths = written(tmp_path, report(TEST), report(**changes))
    assert main(["merge", "--into", str(tmp_path / "out"), *map(str, paths)]) == code
    assert (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("wrong", "slug"),
    [
        ("", "report-damaged"),
        ("[" * 100_000, "report-damaged"),
        ("{}", "report-damaged"),
        ("9" * 5000, "report-damaged"),
        ({"schema": 4}, "report-newer"),
        ({"schema": 2}, "report-older"),
        (report({**TEST, "verdict": "fine"}), "report-damaged"),
        (report({**TEST, "ir": True}), "report-damaged"),
        (report({**TEST, "ir": -5}), "report-damaged"),
        (report({**TEST, "ir": 10**400}), "merge-conflict"),
        (json.dumps(report({**TEST, "delta": 99})).replace(": 99", ": 1e999"), "report-damaged"),
        (report(TEST, TEST), "report-damaged"),
        (report(budgets=[BUDGET, BUDGET]), "report-damaged"),
        (report({"nodeid": "t.py::a"}), "report-damaged"),
        (report(tests={}), "report-damaged"),
        (report(tests=[1]), "report-damaged"),
        (report(environment={"valgrind": 3}), "report-damaged"),
        (report(more=1), "report-damaged"),
        (report(shards=1), "report-damaged"),
        (report(shards=[{"number": 1}]), "report-damaged"),
        (report(shards=[{"number": "1", "of": 2}]), "report-damaged"),
        (report(shards=[{"number": True, "of": 2}]), "report-damaged"),
        (report(shards=[{"number": 0, "of": 2}]), "report-damaged"),
        (report(shards=[{"number": 3, "of": 2}]), "report-damaged"),
        (report(shards=[{"number": 1, "of": 10**18}]), "report-damaged"),
        ('{"schema": 3, "tests": NaN}', "report-damaged"),
        (report({**TEST, "ir": 11}), "merge-conflict"),
        (report(budgets=[{**BUDGET, "now": 11}]), "merge-conflict"),
        (report(environment={"valgrind": "3.20.0"}), "merge-environments"),
    ],
)
def test_a_report_that_does_not_fit(
    wrong: Any, slug: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named, and no report is written."""
    paths = written(tmp_path, report(TEST, budgets=[BUDGET]), wrong)
    assert refused(capsys, "--into", tmp_path / "out", *paths) == slug
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("shards", "missing"),
    [
        (["1/2", "2/2"], []),
        (["2/2", "1/2", "2/2"], []),
        (["-", "-"], []),
        (["-", "1/1"], []),
        (["2/4", "4/4"], ["1 of 4", "3 of 4"]),
        (["1/2"], ["2 of 2"]),
        (["-", "1/2"], ["2 of 2"]),
        (["1/2", "1/3", "3/3"], ["2 of 2", "2 of 3"]),
        (["1/3", "2/2", "2/3", "1/2", "3/3"], []),
    ],
)
def test_shards_without_a_report(
    shards: list[str], missing: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is a failure, and what is there is merged; it is a failure in what that is merged into."""
    pairs = [each.split("/") for each in shards]
    reports = [
        report(TEST, shards=[{"number": int(pair[0]), "of": int(pair[1])}] if pair[1:] else [])
        for pair in pairs
    ]
    out = tmp_path / "out.json"
    code = main(["merge", "--into", str(out), *map(str, written(tmp_path, *reports))])
    assert code == bool(missing)
    said = capsys.readouterr().out.splitlines()
    assert said[2:] == [f"  shard {each} has no report here" for each in missing]
    assert json.loads(out.read_text())["tests"] == [TEST]
    assert main(["merge", "--into", str(tmp_path / "again.json"), str(out)]) == code
    assert capsys.readouterr().out.splitlines()[2:] == said[2:]


def test_shards_that_are_merged_in_two_steps(tmp_path: Path) -> None:
    """What lacks in the first report is in the second: a whole run's."""
    paths = written(tmp_path, *(report(TEST, shards=[{"number": n, "of": 3}]) for n in (1, 2, 3)))
    first, out = str(tmp_path / "first.json"), tmp_path / "out.json"
    assert main(["merge", "--into", first, str(paths[0]), str(paths[2])]) == 1
    assert main(["merge", "--into", str(out), first, str(paths[1])]) == 0
    assert json.loads(out.read_text()) == report(TEST)


def test_missing_shards_come_before_what_has_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of many failures only the first are said."""
    failed = [{**TEST, "nodeid": f"t.py::t{n}", "verdict": "regressed"} for n in range(30)]
    paths = written(tmp_path, report(*failed, shards=[{"number": 1, "of": 2}]))
    assert main(["merge", "--into", str(tmp_path / "out"), *map(str, paths)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "  shard 2 of 2 has no report here"
    assert lines[-1] == "  and 11 more"


def test_shards_that_have_measured_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each passes in CI, since another may have measured: not so all of them."""
    paths = written(tmp_path, *(report(shards=[{"number": n, "of": 2}]) for n in (1, 2)))
    assert main(["merge", "--into", str(tmp_path / "out"), *map(str, paths)]) == 1
    assert capsys.readouterr().out.splitlines()[2:] == ["  no shard has measured a test"]


def test_one_report_of_one_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Is said in the singular."""
    assert (
        main(["merge", "--into", str(tmp_path / "out"), *map(str, written(tmp_path, report(TEST)))])
        == 0
    )
    assert capsys.readouterr().out.startswith("1 report of 1 test written to ")


def test_reports_that_have_measured_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No more than one run would that has compared nothing."""
    paths = written(tmp_path, report(), report())
    assert main(["merge", "--into", str(tmp_path / "out"), *map(str, paths)]) == 1
    assert capsys.readouterr().out.splitlines()[2:] == ["  no report has measured a test"]


def test_a_report_is_merged_into_itself(tmp_path: Path) -> None:
    """As by a step of CI that is tried twice: what it lacks is not forgotten."""
    (path,) = written(tmp_path, report(TEST, shards=[{"number": 1, "of": 2}]))
    for _ in range(3):
        assert main(["merge", "--into", str(path), str(path)]) == 1
    assert json.loads(path.read_text())["shards"] == [{"number": 1, "of": 2}]


def test_what_is_no_report_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A slip of the tongue costs no file; an empty one is as good as none."""
    (path,) = written(tmp_path, report(TEST))
    (tmp_path / "tox.ini").write_text("[tox]")
    (tmp_path / "empty").touch()
    before = everything(tmp_path)
    assert refused(capsys, "--into", tmp_path / "tox.ini", path) == "merge-write"
    assert everything(tmp_path) == before
    assert main(["merge", "--into", str(tmp_path / "empty"), str(path)]) == 0


def test_folders_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other; and what is not there is no report."""
    folder(tmp_path / "in")
    (path,) = written(tmp_path, report(TEST))
    assert refused(capsys, "--into", tmp_path / "out", tmp_path / "in", path) == "merge-mixed"
    assert refused(capsys, "--into", tmp_path / "out", tmp_path / "no") == "report-unreadable"


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """What is missing on the command line is argparse's to say, with 2."""
    with pytest.raises(SystemExit) as raised:
        main(["merge", "a"])
    assert raised.value.code == 2
    assert "--into" in capsys.readouterr().err
