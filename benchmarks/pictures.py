"""The pictures of the docs: terminal and page of a run in which one function of the examples got slower.

    python benchmarks/pictures.py

Needs a Chromium on PATH and playwright (`pip install -e '.[page]'`). Writes docs/pictures/*.png.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

from copied_examples import copy_examples
from playwright.sync_api import Browser, sync_playwright
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
WIDTH = 80
SLOWER = ("counts[letter] += 1  #", "counts[letter] += len(letter)  #")
TESTS = ("tests/test_workload.py", "tests/test_stdlib.py")


def measure(folder: Path, *args: str) -> str:
    """What pytest prints, in colours; a regression is no error here."""
    command = [sys.executable, "-m", "pytest", "--color=yes", *TESTS, *args]
    environment = {**os.environ, "COLUMNS": str(WIDTH)}
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode not in (0, 1):
        sys.exit(done.stdout)
    return done.stdout


def picture_terminal(browser: Browser, printed: str) -> None:
    """The failure and the summary of a run, as a terminal shows them."""
    lines = printed.splitlines()
    first = next(number for number, line in enumerate(lines) if " FAILURES " in line)
    console = Console(width=WIDTH, record=True, file=io.StringIO())
    console.print(Text.from_ansi("\n".join(["$ pytest --instrcount", *lines[first:]])))
    opened = browser.new_page(viewport={"width": 960, "height": 640})
    opened.set_content(console.export_svg(title="", theme=SVG_EXPORT_THEME))
    opened.locator("svg").screenshot(path=PICTURES / "terminal.png")


def main() -> None:
    """Measure, slow one function down, measure again, and photograph the page."""
    if CHROMIUM is None:
        sys.exit("there is no Chromium on PATH: apt-get install chromium")
    folder = copy_examples()
    measure(folder, "--instrcount-update-baseline")
    workload = folder / "workload.py"
    workload.write_text(workload.read_text().replace(*SLOWER))
    page = folder.parent / "page.html"
    printed = measure(folder, "--instrcount", f"--instrcount-report=html:{page}")
    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM)
        picture_terminal(browser, printed)
        opened = browser.new_page(viewport={"width": 960, "height": 640})
        opened.goto(page.as_uri())
        opened.screenshot(path=PICTURES / "overview.png")
        opened.get_by_role("link", name="test_count_vowels").first.click()
        opened.wait_for_selector(".flame [role=treeitem]")
        opened.screenshot(path=PICTURES / "failure.png")
        browser.close()


if __name__ == "__main__":
    main()
