"""Fuzz one target, guided by coverage: ``python -m fuzz.run callgrind -max_total_time=600``.

Needs ``pip install atheris`` (Python 3.11 to 3.13). Further arguments are libFuzzer's. What breaks a
promise is left in a file ``NAME-crash-*`` here. A folder among the arguments keeps what widens the
coverage of the committed corpus; ``-merge=1 TO FROM`` takes from one folder what widens another.
"""

from __future__ import annotations

import sys
import tempfile
import tracemalloc
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["pytest_instrcount", "json"]):
    from fuzz import targets


def main() -> None:
    """Fuzz until libFuzzer is told to stop, or a target raises."""
    name, *arguments = sys.argv[1:]
    arguments.append(f"-artifact_prefix={name}-")
    tracemalloc.start()

    def test_one_input(data: bytes) -> None:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        targets.run(name, data)
        _, peak = tracemalloc.get_traced_memory()
        if peak - before > targets.MOST_BYTES * len(data) + targets.LEAST_BYTES:
            raise MemoryError(f"{peak - before:,} bytes for {len(data):,}")

    with tempfile.TemporaryDirectory() as folder:
        itself = Path(folder, "itself")  # a merge starts it again, to outlive a crash
        itself.write_text(f'#!/bin/sh\nexec {sys.executable} -m fuzz.run {name} "$@"\n')
        itself.chmod(0o700)
        words = Path(folder, "words")
        lines = [
            word.replace("\\", "\\\\").replace('"', '\\"')
            for word in targets.WORDS[name].split(",")
        ]
        words.write_text("".join(f'"{line}"\n' for line in lines))
        corpus = [each for each in arguments if not each.startswith("-")] or [folder]
        if not any(each.startswith("-merge") for each in arguments):
            corpus.append(str(Path(__file__).parent / "corpus" / name))
        options = [each for each in arguments if each.startswith("-")]
        atheris.Setup(
            [str(itself), f"-dict={words}", "-timeout=20", "-rss_limit_mb=2048", *options, *corpus],
            test_one_input,
        )
        atheris.Fuzz()


if __name__ == "__main__":
    main()
