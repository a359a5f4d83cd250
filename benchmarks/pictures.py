"""The pictures of the docs: the page of a run in which one function of the examples got slower.

    python benchmarks/pictures.py

Needs a Chromium on PATH and playwright (`pip install -e '.[page]'`). Writes docs/pictures/*.png.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from copied_examples import copy_examples
from playwright.sync_api import sync_playwright

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
SLOWER = ("counts[letter] += 1  #", "counts[letter] += len(letter)  #")
TESTS = ("tests/test_workload.py", "tests/test_stdlib.py")


def measure(folder: Path, *args: str) -> None:
    """Run the tests; a regression is no error here."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, *args]
    done = subprocess.run(command, cwd=folder, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.returncode)


def main() -> None:
    """Measure, slow one function down, measure again, and photograph the page."""
    if CHROMIUM is None:
        sys.exit("there is no Chromium on PATH: apt-get install chromium")
    folder = copy_examples()
    measure(folder, "--instrcount-update-baseline")
    workload = folder / "workload.py"
    workload.write_text(workload.read_text().replace(*SLOWER))
    page = folder.parent / "page.html"
    measure(folder, "--instrcount", f"--instrcount-report=html:{page}")
    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM)
        opened = browser.new_page(viewport={"width": 960, "height": 640})
        opened.goto(page.as_uri())
        opened.screenshot(path=PICTURES / "overview.png")
        opened.get_by_role("link", name="test_count_vowels").first.click()
        opened.wait_for_selector(".flame [role=treeitem]")
        opened.screenshot(path=PICTURES / "failure.png")
        browser.close()


if __name__ == "__main__":
    main()
