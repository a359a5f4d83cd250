"""A page of ours in a real browser: opened from disk, as people open it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.report.page import render_page

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """A headless Chromium of the system.

    Ended with these tests: playwright runs an event loop, and tests elsewhere have their own.
    """
    driver = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: pip install 'pytest-instrcount[page]'"
    )
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip("needs a Chromium on PATH, such as Debian's package chromium")
    with driver.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=program)
        yield chromium
        chromium.close()


Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Open the page of some data; in the end no script may have failed, nothing been asked for."""
    asked: list[str] = []
    said: list[str] = []
    contexts: list[Any] = []

    def opened(data: Mapping[str, object], fragment: str = "", **looks: Any) -> Any:
        path = tmp_path / f"report-{len(contexts)}.html"
        path.write_text(render_page(data), encoding="utf-8")
        contexts.append(
            browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **looks})
        )
        page = contexts[-1].new_page()
        page.set_default_timeout(10_000)
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(path.as_uri() + fragment)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(tmp_path.as_uri())] == []
