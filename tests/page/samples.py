"""Runs to be shown: a small one as people have them, a large one, and one whose names attack."""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]

#: Depth, name, self, calls.
BEFORE = [
    [0, "test_report", 1_200, 1],
    [1, "shop.report.render", 4_000, 1],
    [2, "shop.report.rows", 22_000, 1],
    [3, "shop.orders.total", 30_000, 40],
    [4, "shop.money.Money.__add__", 42_000, 120],
    [4, "shop.money.rate", 6_000, 40],
    [3, "str.format", 18_000, 40],
    [2, "shop.report.legacy_header", 9_000, 1],
    [1, "json.dumps", 3_000, 1],
    [2, "json.encoder.JSONEncoder.encode", 14_000, 1],
]
NOW = [
    [0, "test_report", 1_200, 1],
    [1, "shop.report.render", 4_100, 1],
    [2, "shop.report.rows", 22_000, 1],
    [3, "shop.orders.total", 31_000, 40],
    [4, "shop.money.Money.__add__", 42_000, 120],
    [4, "shop.money.rate", 24_000, 160],
    [5, "decimal.Decimal.quantize", 12_000, 160],
    [3, "str.format", 18_000, 40],
    [1, "json.dumps", 3_000, 1],
    [2, "json.encoder.JSONEncoder.encode", 11_500, 1],
]
PYTHON: Record = {
    "how": "trampolines",
    "unit": "Ir",
    "functions": [
        {
            "name": "shop.money.rate",
            "file": "shop/money.py",
            "line": 31,
            "self": 18_000,
            "inclusive": 30_000,
            "calls_before": 40,
            "calls_after": 160,
        },
        {
            "name": "decimal.Decimal.quantize",
            "file": "decimal.py",
            "line": 2501,
            "self": 12_000,
            "inclusive": 12_000,
            "calls_before": 0,
            "calls_after": 160,
        },
        {
            "name": "shop.report.legacy_header",
            "file": "shop/report.py",
            "line": 8,
            "self": -9_000,
            "inclusive": -9_000,
            "calls_before": 1,
            "calls_after": 0,
        },
    ],
    "old": BEFORE,
    "new": NOW,
}
C_FUNCTIONS: list[Record] = [
    {
        "name": "ceval.c:_PyEval_EvalFrameDefault",
        "self": 14_210,
        "inclusive": 19_700.5,
        "calls_before": 204,
        "calls_after": 484,
    },
    {
        "name": "dictobject.c:unicodekeys_lookup_unicode",
        "self": 3_100,
        "inclusive": 3_100,
        "calls_before": 310,
        "calls_after": 412,
    },
    {
        "name": "_json.c:encoder_listencode_obj",
        "self": -2_500,
        "inclusive": -2_410,
        "calls_before": 12,
        "calls_after": 12,
    },
]


def a_test(nodeid: str, verdict: str = "unchanged", **more: object) -> Record:
    return {
        "nodeid": nodeid,
        "verdict": verdict,
        "baseline_ir": 149_200,
        "ir": 149_205,
        "delta": 0.0000335,
        "limit": "+1 %",
        "detects": 0.0002,
        "spread": [149_180, 149_260],
        "differences": [],
        "packages": [],
        "functions": [],
        "python": None,
        "history": [],
        **more,
    }


def a_run(*tests: Record, title: str = "pytest-instrcount: shop") -> Record:
    return {
        "title": title,
        "created": "2026-03-14T10:15:00+00:00",
        "environment": {
            "python": "3.11.7 (main, Mar 1 2026)",
            "valgrind": "3.19.0",
            "glibc": "2.36",
            "cpu": "x86_64 AVX2",
            "hashseed": "0",
        },
        "tests": list(tests),
    }


def with_budgets() -> Record:
    """Two tests and their budgets: one kept, one not, and one of a test that is not there."""
    return {
        **a_run(a_test("a.py::test_dear"), a_test("a.py::test_well")),
        "budgets": [
            a_budget("a.py::test_well", "max_ratio", "kept", "0.3", "0.5"),
            a_budget("a.py::test_dear", "max_ir", "over-budget", "25,114", "20,000"),
            a_budget("a.py::test_gone", "scaling", "failed", "not judged", "-"),
        ],
    }


def a_budget(nodeid: str, budget: str, verdict: str, now: str, allowed: str) -> Record:
    why = "" if verdict == "kept" else f"{nodeid}: <b>too much</b>\n  make it cheaper"
    found = {"nodeid": nodeid, "budget": budget, "verdict": verdict}
    return {**found, "now": now, "allowed": allowed, "why": why}


def small() -> Record:
    """Six tests with different verdicts; the first has everything."""
    counts = [131_000, 131_400, 148_000, 148_050, 149_200, 149_190, 140_000, 149_200]
    return a_run(
        a_test(
            "tests/test_cart.py::test_add",
            history=[{"commit": "a" * 40, "date": "2026-01-01", "ir": 9}],
        ),
        a_test(
            "tests/test_report.py::test_report[40 orders]",
            "regressed",
            ir=168_800,
            delta=0.1313,
            functions=C_FUNCTIONS,
            python=PYTHON,
            packages=[["babel", "2.14.0", "2.15.0"]],
            history=[
                {
                    "commit": f"{number:040x}",
                    "date": f"2026-03-{number + 1:02}T09:00:00+01:00",
                    "ir": ir,
                }
                for number, ir in enumerate(counts)
            ],
        ),
        a_test("tests/test_cart.py::test_remove", "improved", ir=120_000, delta=-0.1957),
        a_test(
            "tests/test_export.py::test_csv",
            "new",
            baseline_ir=None,
            delta=None,
            detects=None,
            spread=None,
        ),
        a_test(
            "tests/test_export.py::test_pdf",
            "incomparable",
            delta=None,
            differences=[["glibc", "2.31", "2.36"], ["kernel", "5.10", "(none)"]],
        ),
        a_test(
            "tests/test_export.py::test_xml",
            "failed",
            **dict.fromkeys(("baseline_ir", "ir", "delta", "detects", "spread")),
        ),
    )


def large(tests: int = 500) -> Record:
    """As many tests, each with functions, trees and a history."""
    return a_run(
        *(
            a_test(
                f"tests/test_module_{number % 20}.py::TestGroup::test_{number}[case-{number}]",
                "regressed" if number % 50 == 7 else "unchanged",
                baseline_ir=100_000 + 977 * number,
                ir=100_000 + 978 * number,
                delta=(number * 37 % 101 - 50) / 10_000,
                functions=[
                    {
                        "name": f"file{each}.c:function_{each}",
                        "self": each - 40,
                        "inclusive": 2 * each,
                        "calls_before": each,
                        "calls_after": each + 1,
                    }
                    for each in range(80)
                ],
                python=PYTHON | {"old": tree(300), "new": tree(310)},
                history=[
                    {"commit": f"{each:040x}", "date": "2026-03-01", "ir": 100_000 + each}
                    for each in range(20)
                ],
            )
            for number in range(tests)
        )
    )


def tree(size: int) -> list[list[object]]:
    """A bush that is up to seven calls deep."""
    return [[0, "root", 10, 1]] + [
        [1 + each % 7, f"package.module{each % 13}.function_{each % 40}", 100 + each, each % 9]
        for each in range(size)
    ]


#: Ends the script, is markup, breaks lines of scripts, is no character, turns text around.
HOSTILE = (
    '</script><img src=x onerror="window.harmed=1">\'`${alert(1)}&lt;<!--<script>'
    "\u2028\u2029\udc80\u202e\x00\n__proto__"
)


def hostile() -> Record:
    """Every text is an attack."""
    function: Record = {**C_FUNCTIONS[0], "name": HOSTILE}
    named: list[list[object]] = [
        [0, HOSTILE, 10, 1],
        [1, "__proto__", 10, 1],
        [1, "constructor", 5, 2],
    ]
    found = a_run(
        a_test(
            f"tests/test_x.py::test_a[{HOSTILE}]",
            verdict=HOSTILE,
            limit=HOSTILE,
            differences=[[HOSTILE, HOSTILE, HOSTILE]],
            packages=[[HOSTILE, HOSTILE, HOSTILE]],
            functions=[function],
            python={
                "how": HOSTILE,
                "unit": HOSTILE,
                "functions": [function | {"file": HOSTILE, "line": 1}],
                "old": named,
                "new": named,
            },
            history=[{"commit": HOSTILE, "date": HOSTILE, "ir": ir} for ir in (5, 6)],
        ),
        title=f"run {HOSTILE}",
    )
    return found | {"created": HOSTILE, "environment": {HOSTILE: HOSTILE}}
