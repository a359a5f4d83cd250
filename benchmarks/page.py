"""How long a report's page takes to open, and to be searched, in the system's Chromium.

    python benchmarks/page.py

The page is one of 500 tests, the yardstick one of six in the same browser, since machines differ.
The best of five; fails above eight times the yardstick.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parent.parent))
from pytest_instrcount.report.page import render_page
from tests.page import samples

_MOST = 8


def seconds(
    browser: Any, file: Path, data: Mapping[str, object], search: str
) -> tuple[float, float]:
    """The least time from asking for the page to its table, and from typing to the one test found."""
    file.write_text(render_page(data), encoding="utf-8")
    opening, searching = [], []
    for _ in range(5):
        page = browser.new_page()
        tests = page.locator("#overview tbody tr[class=opens]")
        began = time.perf_counter()
        page.goto(file.as_uri())
        tests.first.wait_for()
        opening.append(time.perf_counter() - began)
        began = time.perf_counter()
        page.get_by_role("searchbox", name="Search tests").fill(search)
        assert tests.count() == 1
        searching.append(time.perf_counter() - began)
        page.close()
    return min(opening), min(searching)


def main() -> int:
    """Print both, and their ratios."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(executable_path=chromium)
        file = Path(folder, "report.html")
        few = seconds(browser, file, samples.small(), "test_xml")
        many = seconds(browser, file, samples.large(500), "case-499")
        browser.close()
    ratios = [large / small for large, small in zip(many, few, strict=True)]
    for what, small, large, ratio in zip(("open", "search"), few, many, ratios, strict=True):
        print(f"{what:<7} 6 tests {small:.3f} s, 500 tests {large:.3f} s, {ratio:.1f} times")
    return max(ratios) > _MOST


if __name__ == "__main__":
    raise SystemExit(main())
