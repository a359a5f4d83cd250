"""Inputs of any size, each of a shape that could cost more than its size: what must stay linear."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from fuzz.targets import make_nvprof
from pytest_instrcount.gate.store.baseline_json import SCHEMA
from pytest_instrcount.report.bundle import SCHEMA as SCHEMA_OF_BUNDLES

Grown = Callable[[int], bytes]


def _profile(body: Callable[[int], str], total: int = 0) -> Grown:
    return lambda n: f"part: 1\nevents: Ir\n{body(n)}totals: {total * n}\n".encode()


def _each(line: str) -> Callable[[int], str]:
    return lambda n: "".join(line.format(n=i, next=i + 1) for i in range(n))


def _baseline(**values: Callable[[int], object]) -> Grown:
    """A whole baseline; the values of some keys grow."""

    def grown(n: int) -> bytes:
        found: dict[str, object] = {
            "schema": SCHEMA,
            "nodeid": "test_x.py::test_a",
            "ir": 100,
            "total_ir": 100,
            "calls": 1,
            "warmup": 20,
            "isolation": "fork",
            "environment": {},
            "packages": {},
            "functions": {"a.c:f": [100, 1, 100]},
            "work": {},
            "python": None,
            "ledger": [],
            "body": "",
            "lost": "",
            "denoised": {
                "rules": 1,
                "noisy": [],
                "wavering": [],
                "kept": [100, 99],
                "kinds": {},
                "calls": {},
            },
        }
        found.update({key: value(n) for key, value in values.items() if key in found})
        denoised = found["denoised"]
        assert isinstance(denoised, dict)
        denoised.update({key: value(n) for key, value in values.items() if key in denoised})
        return json.dumps(found).encode()

    return grown


def _tree(rows: Callable[[int], list[list[object]]]) -> Callable[[int], object]:
    def grown(n: int) -> object:
        depths, names, *counts = zip(*rows(n), strict=True)
        places = {name: place for place, name in enumerate(dict.fromkeys(names))}
        columns = [depths, [places[name] for name in names], *counts]
        return {"how": "tracer", "calls": 1, "names": list(places), "rows": columns}

    return grown


def _bundle(
    values: Callable[[int], Mapping[str, object]], number: Callable[[int], int] = lambda _: 1
) -> Grown:
    def grown(n: int) -> bytes:
        test: dict[str, object] = {
            "nodeid": "test_x.py::test_a",
            "verdict": "regressed",
            "text": [],
            "numbers": {},
            "profiles": {},
        }
        found = {
            "kind": "pytest-instrcount bundle",
            "schema": SCHEMA_OF_BUNDLES,
            "command": "",
            "commit": "",
            "versions": {},
            "environment": {},
            "tests": [{**test, **values(n)}] * number(n),
        }
        return json.dumps(found).encode()

    return grown


def _event(kind: int, handle: int) -> list[object]:
    return [1, kind, "e", 0, handle, 0, 5, 0, 0, 0, -1, -1, 0, False, False, [], ""]


def _nvprof(statements: str) -> Grown:
    count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {})"
    tables = """
        CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY, value TEXT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER(
            _id_ INTEGER PRIMARY KEY, id INT, name INT, timestamp INT, objectKind INT, objectId BLOB);
        INSERT INTO StringTable VALUES (1, 'a');
    """
    return lambda n: make_nvprof(tables + statements.replace("COUNT", count.format(n)))


#: Target -> shape -> input of that size.
GROWING: Mapping[str, Mapping[str, Grown]] = {
    "callgrind": {
        "functions": _profile(_each("fn=({n}) f{n}\n0 1\n"), 1),
        "files": _profile(_each("fl=({n}) /a/f{n}.c\nfn=(1) f\n0 1\n"), 1),
        "costs": _profile(lambda n: "fn=f\n" + _each("{n} 1\n")(n), 1),
        "chain": _profile(_each("fn=({n}) f{n}\n0 1\ncfn=({next}) f{next}\ncalls=1 0\n0 1\n"), 1),
        "callers": _profile(_each("fn=({n}) f{n}\ncfn=(0) malloc.c:malloc\ncalls=1 0\n0 1\n")),
        "recursion": _profile(_each("fn=({n}) f'{next}\n0 1\n"), 1),
        "quotes": _profile(lambda n: "fn=f" + "'1" * min(n, 30_000) + "\n0 0\n"),
        "long names": _profile(
            lambda n: f"fl=(1) {'x' * n}\n" + _each("fn=({n}) f{n}\n0 0\n")(min(n, 60_000))
        ),
        "parts": lambda n: b"part: 1\nevents: Ir\nfn=f\n0 1\ntotals: 1\n" * n,
        "jumps": _profile(_each("jump=1 {n}\n{n}\n")),
        "clones": _profile(
            lambda n: "fn=f" + ".constprop.0" * min(n, 5_000) + "\n0 0\n" + "fn=f.isra.0\n0 0\n" * n
        ),
    },
    "names": {
        "functions": lambda n: _each("{n:x} b py:{n}:f{n}:/a.py\n")(n).encode(),
        "digits": lambda n: b"f" * n + b" b py:1:f:/a.py\n" + b"7 b py:" + b"1" * n + b":f:/a\n",
    },
    "baseline": {
        "functions": _baseline(functions=lambda n: {f"a.c:f{i}": [1, 1, 1] for i in range(n)}),
        "noisy": _baseline(noisy=lambda n: {f"a.c:f{i}": 1 for i in range(n)}),
        "called": _baseline(calls=lambda n: {f"a.c:f{i}": [0, 1] for i in range(n)}),
        "facts": _baseline(environment=lambda n: {f"f{i}": "x" for i in range(n)}),
        "packages": _baseline(packages=lambda n: {f"f{i}": "x" for i in range(n)}),
        "wide": _baseline(python=_tree(lambda n: [[0, f"a:f{i}", 1, 1] for i in range(n)])),
        "branches": _baseline(
            python=_tree(lambda n: [[0, "a:f", 1, 1], *([1, f"a:f{i}", 1, 1] for i in range(n))])
        ),
        "combs": _baseline(python=_tree(lambda n: [[i % 100, f"a:f{i}", 1, 1] for i in range(n)])),
        "name": _baseline(nodeid=lambda n: "x" * n),
        "controls": _baseline(nodeid=lambda n: "\x1b" * n),
        "brackets": lambda n: b"[" * n,
        "objects": lambda n: b"[" + b"{}," * n + b"{}]",
        "digits": lambda n: b'{"schema": ' + b"9" * n + b"}",
        "blanks": lambda n: b" " * n + b"<<<<<<",
    },
    "calls": {
        "functions": lambda n: json.dumps(
            {
                "calls": {f"m:f{i}": i for i in range(n)},
                "environment": {f"f{i}": "x" for i in range(n)},
                "memory": {f"r{i}": i for i in range(n)},
                "nodeid": "t.py::a",
                "schema": 1,
            }
        ).encode(),
    },
    "bundle": {
        "text": _bundle(lambda n: {"text": ["::line\x1b"] * n}),
        "tests": _bundle(lambda n: {}, lambda n: n),
        "numbers": _bundle(lambda n: {"numbers": {f"n{i}": i for i in range(n)}}),
        "profiles": _bundle(lambda n: {"profiles": {".callgrind.out": "0 1\n" * n}}),
    },
    "events": {
        "ranges": lambda n: json.dumps(
            [1, [0, "T", 7, 0, [_event(k, i) for i in range(n) for k in (1, 2)]]]
        ).encode(),
        "nested": lambda n: json.dumps(
            [
                1,
                [
                    0,
                    "T",
                    7,
                    0,
                    [*(_event(1, i) for i in range(n)), *(_event(2, i) for i in range(n))],
                ],
            ]
        ).encode(),
        "threads": lambda n: json.dumps([1, *([i, "T", i, i, []] for i in range(n))]).encode(),
    },
    "limit": {"digits": lambda n: b"9" * n + b"%", "parts": lambda n: b"1%|" * n},
    "nvprof": {
        "ranges": _nvprof(
            "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER COUNT SELECT i, i, 1, i, 0, 0 FROM n;"
            "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER COUNT SELECT -i, i, 0, i + 1, 0, 0 FROM n;"
        ),
        "strings": _nvprof("INSERT INTO StringTable COUNT SELECT i + 1, 'x' FROM n;"),
    },
    "channel": {
        "messages": lambda n: b"\x02\x00\x00\x00{}" * n,
        "questions": lambda n: b"\xff\xff\xff\xff" * n,
    },
}
