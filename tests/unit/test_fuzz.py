"""Everything that is read from files, fed with what it does not expect: ours is the only error."""

from __future__ import annotations

import os
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz import targets
from fuzz.growing import GROWING
from fuzz.targets import LEAST_BYTES, MOST_BYTES, TARGETS, WORDS
from pytest_instrcount.errors import InstrcountError

CORPUS = Path(targets.__file__).parent / "corpus"
SEEDS = {name: sorted((CORPUS / name).iterdir()) for name in TARGETS}
SHAPES = [(name, shape) for name, shapes in GROWING.items() for shape in shapes]
#: Executed lines may grow by so much where the input doubles.
_MOST_GROWTH = 2.2

every_target = pytest.mark.parametrize("name", TARGETS)
every_shape = pytest.mark.parametrize(
    ("name", "shape"), SHAPES, ids=[f"{name}-{shape}" for name, shape in SHAPES]
)
quick = settings(
    max_examples=int(os.environ.get("INSTRCOUNT_FUZZ_EXAMPLES", "40")),
    derandomize="INSTRCOUNT_FUZZ_EXAMPLES" not in os.environ,
)


@every_target
def test_the_corpus(name: str) -> None:
    """What fuzzers have found worth keeping: read, or refused as it should be."""
    assert SEEDS[name]
    for path in SEEDS[name]:
        targets.run(name, path.read_bytes())


@every_target
def test_the_corpus_is_read(name: str) -> None:
    """The seeds are not all refused at their first byte: something is read whole."""
    read = 0
    for path in SEEDS[name]:
        try:
            TARGETS[name](path.read_bytes())
            read += 1
        except InstrcountError:
            pass
    assert read


def test_the_corpus_is_small() -> None:
    files = [path for paths in SEEDS.values() for path in paths]
    assert len(files) < 600
    assert sum(path.stat().st_size for path in files) < 600_000


@every_target
@quick
@given(data=st.data())
def test_changed_seeds(name: str, data: st.DataObject) -> None:
    """Seeds with pieces cut out, doubled, swapped for those of others, and for words of the format."""
    seed = data.draw(st.sampled_from(SEEDS[name])).read_bytes()
    other = data.draw(st.sampled_from(SEEDS[name])).read_bytes()
    words = [word.encode() for word in WORDS[name].split(",")]
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(seed)))
        end = min(len(seed), start + data.draw(st.integers(0, 40)))
        begin = data.draw(st.integers(0, len(other)))
        middle = data.draw(
            st.sampled_from(words)
            | st.binary(max_size=8)
            | st.just(seed[start:end] * 2)
            | st.just(other[begin : begin + 40])
        )
        seed = seed[:start] + middle + seed[end:]
    targets.run(name, seed)


@every_target
@quick
@given(
    data=st.binary(max_size=200)
    | st.text(max_size=100).map(lambda text: text.encode(errors="replace"))
)
def test_anything(name: str, data: bytes) -> None:
    targets.run(name, data)


def executed_lines(what: Callable[..., object], *arguments: object) -> int:
    """How many lines of Python run: time without a clock."""
    lines = 0

    def note(frame: object, event: str, argument: object) -> object:
        nonlocal lines
        lines += event == "line"
        return note

    before = sys.gettrace()
    sys.settrace(note)  # type: ignore[arg-type]
    try:
        what(*arguments)
    finally:
        sys.settrace(before)
    return lines


@every_shape
def test_time_is_linear(name: str, shape: str) -> None:
    """Twice the input, at most twice the lines."""
    small, large = (GROWING[name][shape](size) for size in (250, 500))
    targets.run(name, large)  # what is imported and cached at first is not the input's doing
    first, second = (executed_lines(targets.run, name, each) for each in (small, large))
    assert second <= first * _MOST_GROWTH


@every_shape
def test_memory_is_linear(name: str, shape: str) -> None:
    """No more than is promised for each byte."""
    data = GROWING[name][shape](2_000)
    tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        targets.run(name, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before <= MOST_BYTES * len(data) + LEAST_BYTES // 100


def test_lines_are_counted() -> None:
    """The test of time can fail: what is quadratic is seen."""

    def quadratic(size: int) -> None:
        for _ in range(size):
            for _ in range(size):
                pass

    first, second = (executed_lines(quadratic, size) for size in (50, 100))
    assert second > first * 3
