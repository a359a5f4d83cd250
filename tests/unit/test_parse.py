"""callgrind.out -> Profile, against recorded files and against Valgrind's own reader."""

from __future__ import annotations

import contextlib
import random
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from pytest_instrcount.counts.parse import parse_profile
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.counts.totals import read_total
from pytest_instrcount.errors import InstrcountError

DATA = Path(__file__).parent.parent / "data" / "callgrind"
SAMPLES = sorted(DATA.glob("*.out"))
SAMPLE_IDS = [path.stem for path in SAMPLES]
every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=SAMPLE_IDS)

# "." stands for a count of nothing
_ANNOTATED = re.compile(r"^ *([0-9,]+|\.)(?: +[0-9,.]+)*  (.+?):(\S+)(?: \[(.*)\])?$")


def part(
    body: str, total: object = None, header: str = "positions: line\nevents: Ir\n"
) -> list[str]:
    """The lines of a small file; ``total`` is the text behind ``totals:``, none if None."""
    text = f"part: 1\n{header}summary: 0\n\n{body}"
    return text.splitlines() + ([] if total is None else [f"totals: {total}"])


def refusal(source: Path | Iterable[str]) -> InstrcountError:
    """The error that reading must end in."""
    with pytest.raises(InstrcountError) as caught:
        parse_profile(source)
    assert caught.value.slug == "profile-damaged"
    return caught.value


def annotated(sample: Path) -> list[tuple[str, str, int]]:
    """(file, function, ir) of each line of callgrind_annotate's list, inlined code by itself."""
    text = sample.with_suffix(".annotate.txt").read_text()
    _, _, listed = text.partition(" file:function\n")
    found = []
    for line in listed.splitlines()[1:]:
        if line:
            match = _ANNOTATED.match(line)
            assert match, line
            file, function = match[2].rpartition("/")[2], re.sub(r"'\d+$", "", match[3])
            found.append((file, function, int(match[1].replace(",", "").replace(".", "0"))))
    return found


def by_function(rows: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Sums by name of function; what is 0 is left out."""
    sums: dict[str, int] = defaultdict(int)
    for function, ir in rows:
        sums[function] += ir
    return {function: ir for function, ir in sums.items() if ir}


def function_of(name: str) -> str:
    return name.partition(":")[2].partition(" [")[0]


def test_there_are_samples_of_each_interpreter() -> None:
    """The recorded files are found; without them the tests below would pass unseen."""
    assert {"cp310-json", "cp311-json", "cp312-json", "cp313-json", "cp311-stripped"} < set(
        SAMPLE_IDS
    )


@every_sample
def test_samples_name_no_machine(sample: Path) -> None:
    """No path of the machine they were recorded on is left in a sample."""
    for path in (sample, sample.with_suffix(".annotate.txt")):
        assert not re.search(r"/(?:root|home|tmp)/", path.read_text())


@every_sample
def test_agrees_with_callgrind_annotate(sample: Path) -> None:
    """Every function's own count is that of callgrind_annotate, inlined code added up.

    Its list splits a function by the files its code was inlined from, so sums are compared.
    """
    profile = parse_profile(sample)
    expected = by_function((function, ir) for _, function, ir in annotated(sample))
    assert (
        by_function((function_of(name), row.ir) for name, row in profile.rows.items()) == expected
    )


@every_sample
def test_agrees_on_the_file_of_a_function(sample: Path) -> None:
    """A function whose code is all from one file is filed under it, with the same count."""
    lines = defaultdict(list)
    for file, function, ir in annotated(sample):
        lines[function].append((file, ir))
    rows = defaultdict(list)
    for name, row in parse_profile(sample).rows.items():
        rows[function_of(name)].append((name.partition(":")[0], row.ir))
    for function, found in lines.items():
        if len({file for file, _ in found}) == 1 and len(rows[function]) == 1:
            assert rows[function] == [(found[0][0], sum(ir for _, ir in found))]


@every_sample
def test_rows_add_up_to_the_total(sample: Path) -> None:
    """The total is the sum of the rows, on real files of every kind, and read_total says it too."""
    profile = parse_profile(sample)
    assert sum(row.ir for row in profile.rows.values()) == profile.total == read_total(sample)
    assert all(row.ir >= 0 and row.calls >= 0 for row in profile.rows.values())


@every_sample
def test_lines_read_like_the_file(sample: Path) -> None:
    """A file, its lines and its lines without their ends give the same Profile."""
    text = sample.read_text()
    expected = parse_profile(sample)
    assert parse_profile(text.splitlines(keepends=True)) == expected
    assert parse_profile(iter(text.splitlines())) == expected


def test_known_rows_of_a_real_file() -> None:
    """Names, counts and calls of well-known functions are as read by eye from the file."""
    rows = parse_profile(DATA / "cp311-json.out").rows
    assert rows["_json.c:scan_once_unicode"] == Row(2393, 14)
    assert rows["dictobject.c:unicodekeys_lookup_unicode"] == Row(1350, 38)
    assert not any("/" in name or "'" in name for name in rows)


def test_stripped_builds_keep_addresses_and_name_the_object() -> None:
    """Without a source file, a row names the object; without a symbol, the address."""
    rows = parse_profile(DATA / "cp311-stripped.out").rows
    assert rows["???:_PyEval_EvalFrameDefault [python3.11]"].ir == 11850 + 480
    assert rows["???:0x00000000004fee40 [python3.11]"].ir == 2547


def test_recursion_is_one_row() -> None:
    """Callgrind's ``f'2`` is ``f``: counts and calls of all levels are in one row."""
    body = "fl=(1) a.c\nfn=(1) f\n1 10\ncfn=(2) f'2\ncalls=3 1\n1 20\n\nfn=(2)\n1 20\n"
    assert parse_profile(part(body, 30)).rows == {"a.c:f": Row(30, 3)}


@pytest.mark.parametrize("marks", [("", "'2"), ("'2", "'3"), ("'9", "'10")])
def test_the_outermost_level_of_a_recursion_is_whole(marks: tuple[str, str]) -> None:
    """Be it a deeper one, where the others ran before the count began."""
    first, second = marks
    body = (
        f"fl=(1) a.c\nfn=(1) f{first}\n1 10\ncfn=(2) g\ncalls=1 1\n1 90\n\n"
        f"fn=(2)\n1 30\ncfn=(3) f{second}\ncalls=1 1\n1 60\n\nfn=(3)\n1 60\n\n"
        "fl=(2) ???\nfn=(4) 0x1\ncfi=(1)\ncfn=(1)\ncalls=0 1\n1 100\n"
    )
    assert parse_profile(part(body, 100)).inclusive["a.c:f"] == 100


def test_a_quote_that_is_no_recursion_stays() -> None:
    """Only a number at the end is a mark of recursion."""
    body = "fl=(1) a.cc\nfn=(1) f(char)::'lambda'(int)\n1 10\n"
    assert list(parse_profile(part(body, 10)).rows) == ["a.cc:f(char)::'lambda'(int)"]


def test_inlined_lines_belong_to_the_function() -> None:
    """What fi= and fe= bring in from other files is the function's own count."""
    body = "fl=(1) /src/a.c\nfn=(1) f\n1 10\nfi=(2) /src/b.h\n7 5\nfe=(1)\n2 1\n"
    assert parse_profile(part(body, 16)).rows == {"a.c:f": Row(16, 0)}


def test_the_next_function_is_in_the_file_of_fl() -> None:
    """fi= ends with its function: after it, fn= without fl= is in the file of the last fl=.

    callgrind_annotate files such a function under the inlined file.
    """
    body = "fl=(1) a.c\nfn=(1) f\nfi=(2) b.h\n7 5\n\nfn=(2) g\n3 4\ncfn=(1)\ncalls=1 1\n3 5\n"
    assert parse_profile(part(body, 9)).rows == {"a.c:f": Row(5, 1), "a.c:g": Row(4, 0)}


def test_a_call_without_cfi_is_into_the_current_file() -> None:
    """Within inlined code, a called function without cfi= is in the inlined file."""
    body = (
        "fl=(1) a.c\nfn=(1) f\nfi=(2) b.h\n7 5\ncfn=(2) g\ncalls=2 1\n* 8\n\nfl=(2)\nfn=(2)\n1 8\n"
    )
    assert parse_profile(part(body, 13)).rows == {"a.c:f": Row(5, 0), "b.h:g": Row(8, 2)}


def test_calls_of_all_call_sites_are_summed() -> None:
    """calls= lines count calls of the function called; their cost is not the caller's."""
    body = (
        "ob=(1) /lib/libx.so.1\nfl=(1) a.c\nfn=(1) f\n1 10\n"
        "cob=(2) /lib/liby.so\ncfi=(3) ???\ncfn=(2) g\ncalls=3 0\n+1 300\n"
        "cfn=(3) h\ncalls=1 5\n* 50\n+2 1\ncob=(2)\ncfi=(3)\ncfn=(2)\ncalls=4 0\n-1 400\n"
    )
    assert parse_profile(part(body, 11)).rows == {
        "a.c:f": Row(11, 0),
        "???:g [liby.so]": Row(0, 7),
        "a.c:h": Row(0, 1),
    }


def test_a_called_function_without_calls_is_not_counted() -> None:
    """Callgrind writes cfn= without calls= for a call that cost nothing."""
    body = "fl=(1) a.c\nfn=(1) f\n1 10\ncfi=(2) b.c\ncfn=(2) g\ncfn=(3) h\ncalls=1 1\n1 5\n"
    assert parse_profile(part(body, 10)).rows == {"a.c:f": Row(10, 0), "a.c:h": Row(0, 1)}


@pytest.mark.parametrize(
    ("header", "body", "total"),
    [
        ("positions: line\nevents: Ir\n", "12 7\n+3 1\n-2 1\n* 1\n", 10),
        ("positions: instr line\nevents: Ir\n", "0x4f 12 7\n+3 +1 1\n* * 2\n", 10),
        ("positions: instr\nevents: Ir\n", "0x4f 7\n0x5f 3\n", 10),
        ("events: Ir\n", "12 10\n", 10),
        ("positions: line\nevents: Dr Ir Dw\n", "12 5 7\n13 1\n* 2 3 4\n", "99 10 4"),
        ("positions: line\nevents: Ir Dr\n", "12 7 2\n13 3\n", "10 2"),
        ("positions: line\nevents: Ir\n", "12 3\njump=5 +2 \n* \njcnd=4/9 +2 \n* \n12 7\n", 10),
        ("positions: line\nevents: Ir\n", "rec=1\n\nfrfn=(9) x\njfi=(8) b.h\njfn=(9)\n1 10\n", 10),
        ("positions: line\nevents: Ir\n", "# comment\nfrfn=(spontaneous)\nln=4\n1 10\n", 10),
    ],
)
def test_positions_and_events(header: str, body: str, total: object) -> None:
    """Ir is found in any column, behind any positions; jumps and notes hold no count."""
    lines = part(f"fl=(1) a.c\nfn=(1) f\n{body}", total, header)
    assert parse_profile(lines) == Profile(10, {"a.c:f": Row(10, 0)}, {}, {"a.c:f": 10})


def test_names_need_no_compression() -> None:
    """Names stand for themselves without a number; "(below main)" is such a name."""
    body = "fl=a.c\nfn=(below main)\n1 2\ncfn=main\ncalls=1 1\n1 8\n\nfn=main\n1 8\n"
    assert parse_profile(part(body, 10)).rows == {
        "a.c:(below main)": Row(2, 0),
        "a.c:main": Row(8, 1),
    }


def test_parts_are_summed_and_share_names() -> None:
    """Appended dumps count together; what the first part named, the second refers to."""
    first = part("ob=(1) /x\nfl=(1) a.c\nfn=(1) f\n1 10\n", 10)
    second = part("ob=(1)\nfl=(1)\nfn=(1)\n1 5\n", 5)
    assert parse_profile([*first, "", *second]) == Profile(
        15, {"a.c:f": Row(15, 0)}, {}, {"a.c:f": 15}
    )


def test_what_follows_the_totals_is_ignored() -> None:
    """Lines behind the totals are no part of the profile."""
    lines = part("fl=(1) a.c\nfn=(1) f\n1 10\n", 10)
    assert parse_profile([*lines, "", "garbage \0", "12 7", "fn=(9)"]).total == 10


def test_a_dump_of_nothing_is_a_profile() -> None:
    """A dump at exit with nothing counted has no rows and is not damaged."""
    assert parse_profile(DATA / "cp311-stub.out") == Profile(0, {})
    assert read_total(DATA / "cp311-stub.out") == 0


def test_any_byte_may_be_in_a_name(tmp_path: Path) -> None:
    """A name that is no UTF-8 is kept, escaped."""
    path = tmp_path / "x.out"
    path.write_bytes(b"events: Ir\nfl=(1) /\xff/a\xe9.c\nfn=(1) f\xff\n1 2\ntotals: 2\n")
    assert parse_profile(path).rows == {"a\\xe9.c:f\\xff": Row(2, 0)}
    assert read_total(path) == 2


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], "it has no totals"),
        (["hello"], "it has no totals"),
        (part("fl=(1) a.c\nfn=(1) f\n1 10\n"), "it has no totals"),
        (part("fl=(1) a.c\nfn=(1) f\n1 10\n", 11), "add up to 10 instructions, not 11"),
        (part("fl=(1) a.c\nfn=(1) f\n1 10\n", ""), "a line without a count"),
        (part("fl=(1) a.c\nfn=(1) f\n1 1x\n", 1), "1x"),
        (part("fl=(1) a.c\nfn=(1) f\n1\n", 0), "invalid literal"),
        (part("fl=(1) a.c\nfn=(1) f\n1 " + "9" * 5000, 1), "not a complete"),
        (part("fl=(1) a.c\nfn=(1) f\n1 -4\n", -4), "negative"),
        (part("fl=(1) a.c\nfn=(7)\n1 10\n", 10), "never defined"),
        (part("fl=\nfn=(1) f\n1 10\n", 10), "never defined"),
        (part("fl=(1) a.c\nfn=(1) f\nxyz=4\n1 10\n", 10), "says nothing"),
        (part("fl=(1) a.c\nfn=(1) f\n1 10\ncalls=1 1\n1 5\n", 10), "a call of nothing"),
        (part("fl=(1) a.c\nfn=(1) f\n1 10\ncfn=(1)\ncalls=1 1\n", 10), "without its cost"),
        (part("", 0, "positions: line\n"), "names no events"),
        (part("", 0, "events: Dr\n"), "does not count instructions"),
        (["version: 2", *part("", 0)], "another version"),
        ([*part("", 0), "part: 2", "events: Ir"], "it has no totals"),
        ([*part("", 0), "part: 2"], "names no events"),
    ],
)
def test_damage_is_refused(lines: list[str], why: str) -> None:
    """What is not whole is an error that says why and ends in a command."""
    error = refusal(lines)
    assert why in str(error)
    assert "the dump" in error.why
    assert error.fix.endswith("pytest --instrcount")


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    """A missing file, a folder and an empty file are named in the error, by both readers."""
    (tmp_path / "empty").touch()
    for path in (tmp_path / "missing", tmp_path, tmp_path / "empty"):
        assert str(path) in refusal(path).why
        with pytest.raises(InstrcountError, match="profile-damaged"):
            read_total(path)


@pytest.mark.parametrize(
    "text",
    [
        "events: Ir\n1 2\n",
        "events: Ir\n1 2\ntotals: 2",
        "events: Ir\ntotals: \n",
        "events: Ir\ntotals: x\n",
        "events: Ir\ntotals: 2\npart: 2\n",
        "events: Ir\nevents: Ir\ntotals: 2\n",
        "events: Dr\ntotals: 2\n",
        "positions: line\ntotals: 2\n",
        "totals: 2\n",
    ],
)
def test_read_total_refuses_damage(text: str, tmp_path: Path) -> None:
    """Without a whole totals line for each part there is no total."""
    path = tmp_path / "x.out"
    path.write_text(text)
    with pytest.raises(InstrcountError, match="profile-damaged"):
        read_total(path)


@every_sample
def test_cut_files_are_refused(sample: Path, tmp_path: Path) -> None:
    """A file cut before its last totals is refused by both readers; read_total wants them whole.

    Only between two parts is a cut file a whole one. Within the totals, parse_profile may go by
    the sum of the rows.
    """
    content = sample.read_bytes()
    path = tmp_path / "cut.out"
    between = {found.end() for found in re.finditer(rb"^totals: .*\n+", content, re.MULTILINE)}
    last = content.rindex(b"totals: ") + len(b"totals: ")
    for length in {*range(0, len(content), 500), *range(last - 20, len(content) - 1)} - between:
        path.write_bytes(content[:length])
        if length <= last:
            refusal(path)
        with pytest.raises(InstrcountError, match="profile-damaged"):
            read_total(path)


@pytest.mark.parametrize("seed", range(8))
def test_mutations_give_a_profile_or_an_error(seed: int, tmp_path: Path) -> None:
    """Whatever happens to a file, the answer is an InstrcountError or a Profile that adds up."""
    chance = random.Random(seed)
    path = tmp_path / "mutated.out"
    small = [sample for sample in SAMPLES if sample.stat().st_size < 25_000]
    slugs: list[str] = []
    for _ in range(60):
        content = bytearray(chance.choice(small).read_bytes())
        for _ in range(chance.choice((1, 1, 3, 20))):
            mutate(content, chance)
        path.write_bytes(content)
        try:
            profile = parse_profile(path)
            assert sum(row.ir for row in profile.rows.values()) == profile.total
            assert min((min(row.ir, row.calls) for row in profile.rows.values()), default=0) >= 0
        except InstrcountError as error:
            slugs.append(error.slug)
        with contextlib.suppress(InstrcountError):
            read_total(path)
    assert set(slugs) == {"profile-damaged"}
    assert len(slugs) < 60


def mutate(content: bytearray, chance: random.Random) -> None:
    """One change: a byte, a piece that is lost, doubled or moved, or a strange word."""
    start = chance.randrange(len(content) + 1)
    end = start + chance.randrange(200)
    kind = chance.randrange(5)
    if kind == 0:
        content[start : start + 1] = bytes([chance.randrange(256)])
    elif kind == 1:
        del content[start:end]
    elif kind == 2:
        content[start:start] = content[start:end]
    elif kind == 3:
        piece = content[start:end]
        del content[start:end]
        at = chance.randrange(len(content) + 1)
        content[at:at] = piece
    else:
        words = (b"fn=", b"\n", b"(1)", b"calls=", b"totals: ", b"part: 2\n", b"\0", b"\xff", b"- ")
        content[start:start] = chance.choice((*words, b"9" * 5000, b"events: Ir\n", b"'2"))


def test_an_empty_region_is_subtracted() -> None:
    """A real region minus the empty one keeps the sum true and leaves no (0, 0) row."""
    whole, empty = parse_profile(DATA / "cp311-json.out"), parse_profile(DATA / "cp311-empty.out")
    rest = whole - empty
    assert rest.total == whole.total - empty.total == sum(row.ir for row in rest.rows.values())
    assert Row(0, 0) not in rest.rows.values()
    assert any(name in empty.rows and name not in rest.rows for name in whole.rows)


@every_sample
def test_subtraction_of_itself_and_of_nothing(sample: Path) -> None:
    """Itself leaves no rows; nothing leaves all; nothing minus (nothing minus a) is a."""
    profile = parse_profile(sample)
    nothing = Profile(0, {})
    assert profile - profile == nothing
    assert profile - nothing == profile
    assert nothing - (nothing - profile) == profile


def test_subtraction_by_hand() -> None:
    """Rows of one side only count too; a difference may be negative."""
    a = Profile(10, {"x": Row(7, 1), "y": Row(3, 2), "z": Row(0, 1)})
    b = Profile(8, {"x": Row(7, 0), "y": Row(3, 2), "w": Row(-2, 5)})
    assert a - b == Profile(2, {"x": Row(0, 1), "z": Row(0, 1), "w": Row(2, -5)})


def test_only_profiles_are_subtracted() -> None:
    """A number is not a Profile."""
    with pytest.raises(TypeError):
        Profile(1, {}) - 1  # type: ignore[operator]
