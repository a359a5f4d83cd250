"""The page of a run: one HTML file that opens from disk, asks no network and runs nobody else's script.

Names come from outside: they are JSON in the file, and become text in the page, never markup.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from string import Template
from typing import cast

#: In this order: a script uses what stands before it.
_SCRIPTS = ("dom.js", "table.js", "plot.js", "flame.js", "page.js")
#: What the table shows; the rest of a test is read when it is opened.
_ROW = (
    *("nodeid", "verdict", "baseline_ir", "ir", "delta", "limit", "detects"),
    *("differences", "cause"),
)
_DETAILS = ("packages", "functions", "work", "why")
_ALONE = ("spread", "layouts", "raw", "reason", "functions_left", "no_python")

_Record = Mapping[str, object]
_Tree = Sequence[tuple[int, str, float, float]]


def render_page(data: Mapping[str, object]) -> str:
    """The page as text, ASCII only, from plain values.

    ``data`` has "title", "created" (ISO 8601), "environment" (fact -> value) and "tests", each with
    "nodeid", "verdict", "baseline_ir" and "ir" (instructions per call), "delta" and "detects"
    (fractions), "limit" (as people read it), "spread" (least and most instructions per call over
    layouts), "differences" and "packages" (name, in the baseline, now), "functions" (of C: name, growth of
    self and inclusive, calls_before, calls_after; all per call), "history" (commit, "" for this run, date,
    ir; the oldest first) and "python": None, or "how", "unit", "functions" (also file, line and doing),
    "old" and "new", trees as lists of depth, name, self and calls in preorder. Anything but the names
    and texts may be None.

    What may be left out: "notes" of the run, "accept" (the command), and its "budgets" (nodeid, budget,
    verdict, now, allowed and why it is not kept: texts), its "calls" (of traced tests: nodeid, verdict, limit,
    why, texts, and numbers before and now); of a test "raw" (baseline and now, where others
    are compared), "work" (kind, before, now), "layouts" (their number), "cause" (function, what it did,
    the same without numbers), "why" (the text of the failure, by lines), "reason" (why there is no
    count), "functions_left" (how many are not listed; in "python", too), "no_python" (why that is None),
    in "python" "from_baseline", and of a function "share" (its part of the change, a fraction).

    Raises ValueError for a number that is infinite or no number.

    >>> page = render_page({"title": "<run>", "created": "", "environment": {}, "tests": []})
    >>> "<title>&lt;run&gt;</title>" in page
    True
    """
    tests = cast("Sequence[_Record]", data["tests"])
    run = {name: data[name] for name in ("title", "created", "environment")}
    for name, none in (("notes", []), ("budgets", []), ("calls", []), ("accept", "")):
        run[name] = data.get(name) or none
    run["tests"] = [{name: test.get(name) for name in _ROW} for test in tests]
    # tests share commits: each is there once
    commits: dict[tuple[object, object], int] = {}
    blocks = [_block(f"test-{n}", _details(test, commits)) for n, test in enumerate(tests)]
    blocks.insert(0, _block("run", {**run, "commits": list(commits)}))
    script = "\n".join(map(_read, _SCRIPTS))
    style = _read("page.css")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hash(style)}",
            f"script-src {_hash(script)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return Template(_read("page.html")).substitute(
        policy=policy,
        title=html.escape(str(data["title"])).encode("ascii", "xmlcharrefreplace").decode(),
        style=style,
        data="\n".join(blocks),
        script=script,
    )


def _read(name: str) -> str:
    return resources.files("pytest_instrcount.report").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    """The hash by which a Content-Security-Policy allows this text alone."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _block(name: str, value: object) -> str:
    # "<" alone could end the element or begin a comment, whatever follows it
    text = json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>'


def _details(test: _Record, commits: dict[tuple[object, object], int]) -> dict[str, object]:
    python = cast("_Record | None", test.get("python"))
    points = cast("Sequence[_Record]", test.get("history") or ())
    return {
        **{name: test.get(name) or [] for name in _DETAILS},
        **{name: test.get(name) for name in _ALONE if test.get(name)},
        "history": [
            [commits.setdefault((point["commit"], point["date"]), len(commits)), point["ir"]]
            for point in points
        ],
        "python": python and _python(python),
    }


def _python(python: _Record) -> dict[str, object]:
    """With trees as flat lists of numbers: each name is there once, in "names"."""
    numbers: dict[str, int] = {}
    old, new = (_flat(cast("_Tree | None", python.get(each)), numbers) for each in ("old", "new"))
    return {**python, "old": old, "new": new, "names": list(numbers)}


def _flat(tree: _Tree | None, numbers: dict[str, int]) -> list[float] | None:
    if tree is None:
        return None
    return list(_flattened(tree, numbers))


def _flattened(tree: _Tree, numbers: dict[str, int]) -> Iterable[float]:
    for depth, name, own, calls in tree:
        yield from (depth, numbers.setdefault(name, len(numbers)), own, calls)
