"""Base against head with real Valgrind: both sides counted, the user's files untouched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.callgrind.conftest import valgrind_processes
from tests.conftest import TWO_LAYOUTS

PACKAGE = """
def total(numbers):
    found = 0
    for number in numbers:
        found += number
    return found

def longest(words):
    return max(words, key=len)
"""
TESTS = """
import pytest, shop

pytestmark = pytest.mark.instrcount(max_delta="0.2%")

def test_total():
    assert shop.total(range(200)) == 19900

def test_longest():
    assert shop.longest(["a", "bb", "ccc"] * 20) == "ccc"

def test_path(tmp_path):
    assert len(str(shop.__file__).split("/")) > 1

def test_native_alone(): assert True
"""
SLOWER = """
def total(numbers):
    found = 0
    for number in numbers:
        found += number
    (None, None), (None, None), (None, None)
    for number in range(3): found += number - number
    return found
"""


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(folder: Path) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "one")
    return git(folder, "rev-parse", "HEAD").strip()


def state(folder: Path) -> list[tuple[str, int]]:
    """Every file, git's own included, but for byte code: which the user's pytest writes."""
    return sorted(
        (str(path), path.lstat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    )


class Shop:
    """A project with a package in src, and an environment where that is installed or not."""

    def __init__(self, folder: Path, temporary: Path) -> None:
        self.folder = folder
        self.temporary = temporary
        self.environment: dict[str, str] = dict(os.environ) | TWO_LAYOUTS
        self.environment.pop("CI", None)
        self.environment["TMPDIR"] = str(temporary)
        self.python = sys.executable
        self.write("pyproject.toml", "[project]\nname = 'shop'\nversion = '1'\n")
        self.write("src/shop/__init__.py", PACKAGE)
        self.write("tests/test_shop.py", TESTS)
        git(folder, "init", "--quiet")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def install(self, folder: Path, *, finder: bool) -> None:
        """Install the package as ``pip install -e`` does: by a path, or by setuptools' finder."""
        home = folder / "environment"
        venv.create(home, system_site_packages=False, with_pip=False)
        version = "python{}.{}".format(*sys.version_info)
        site = home / "lib" / version / "site-packages"
        ours = [each for each in sys.path if each.endswith("site-packages")]
        lines = [*ours, str(Path(__file__).parents[2])]
        if finder:
            (site / "__editable___shop_1_finder.py").write_text(FINDER.format(self.folder))
            lines.append("import __editable___shop_1_finder as f; f.install()")
        else:
            lines.append(str(self.folder / "src"))
        (site / "all.pth").write_text("\n".join(lines))
        self.python = str(home / "bin" / "python")

    def command(self, *args: str) -> list[str]:
        return [self.python, "-m", "pytest", "-p", "no:cacheprovider", *args]

    def run(self, *args: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        report = self.temporary / "report.json"
        report.unlink(missing_ok=True)
        done = subprocess.run(
            self.command(f"--instrcount-report=json:{report}", *args),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        tests = json.loads(report.read_text())["tests"] if report.exists() else []
        report.unlink(missing_ok=True)
        return done, {test["nodeid"].rpartition("::")[2]: test for test in tests}


FINDER = """
import sys
from importlib.util import spec_from_file_location

MAPPING = {{"shop": "{0}/src/shop"}}
NAMESPACES = {{}}

class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name in MAPPING:
            return spec_from_file_location(name, MAPPING[name] + "/__init__.py")

def install():
    sys.meta_path.append(Finder)
"""


@pytest.fixture
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """In a folder deep enough for a temporary one with a path of as many parts."""
    folder = tmp_path_factory.mktemp("a-folder") / "with" / "a-long-name"
    folder.mkdir(parents=True)
    return Shop(folder, tmp_path_factory.mktemp("t"))


@pytest.mark.valgrind
@pytest.mark.parametrize(
    "finder",
    [
        pytest.param(False, id="path", marks=pytest.mark.long),
        pytest.param(True, id="finder", marks=pytest.mark.long),
    ],
)
def test_small_regression_in_an_editable_install(shop: Shop, tmp_path: Path, finder: bool) -> None:
    """A few instructions are found and named, another test is equal to the last one; the user's files,
    git's own included, are as they were to the last time stamp, and no other file is left.
    """
    shop.install(tmp_path, finder=finder)
    base = commit(shop.folder)
    shop.write("README", "Not committed, and none of the tests' business.")
    shop.write(
        "src/shop/__init__.py", PACKAGE.replace(PACKAGE[: PACKAGE.index("def longest")], SLOWER)
    )
    git(shop.folder, "status")  # writes the index
    before = state(shop.folder)
    done, tests = shop.run(f"--instrcount-against={base[:10]}")
    assert done.returncode == 1, done.stdout + done.stderr
    found = tests["test_total"]
    assert found["verdict"] == "regressed"
    assert 0.002 < found["delta"] < 0.05
    assert found["python"]["functions"][0]["name"] == "total"
    assert found["python"]["functions"][0]["file"].endswith("shop/__init__.py")
    assert tests["test_longest"]["verdict"] == "unchanged"
    assert abs(tests["test_longest"]["delta"]) <= 0.0002
    assert tests["test_path"]["verdict"] == "unchanged"
    assert state(shop.folder) == before
    assert not list(shop.temporary.iterdir())


@pytest.mark.valgrind
def test_commit_with_other_tests(shop: Shop, tmp_path: Path) -> None:
    """From a subfolder, with ``pythonpath``: what was not there is new, what failed there is told, and a
    test that came to the file moves none of the others.

    Byte code is written, as most users have it, but not where tests find it that run meanwhile.
    """
    shop.environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    shop.write("pytest.ini", "[pytest]\npythonpath = src\n")
    shop.write("tests/conftest.py", "import os, sys\n")
    shop.write("tests/test_shop.py", TESTS.replace('== "ccc"', '== "bb"'))
    commit(shop.folder)
    shop.write("tests/test_shop.py", TESTS + "\ndef test_added(): shop.total([1])\n")
    shop.write("docs/index.md", "Docs.")
    commit(shop.folder)
    git(shop.folder, "status")  # writes the index
    root, before = shop.folder, state(shop.folder)
    shop.folder /= "tests"
    done, tests = shop.run("--instrcount-against=HEAD~1", "-k", "not path")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {name: test["verdict"] for name, test in tests.items()} == {
        "test_total": "unchanged",
        "test_longest": "incomparable",
        "test_native_alone": "unchanged",
        "test_added": "new",
    }
    assert "test_longest: compared with nothing, since it fails" in done.stdout
    assert state(root) == before
    assert not list(shop.temporary.iterdir())


@pytest.mark.valgrind
@pytest.mark.long
def test_under_xdist(shop: Shop, tmp_path: Path) -> None:
    """The workers compare with what was measured before they started.

    pytest-xdist makes pytest's own temporary folder, which pytest would keep: it is elsewhere.
    """
    shop.write("pytest.ini", "[pytest]\npythonpath = src\n")
    commit(shop.folder)
    text = (shop.folder / "src/shop/__init__.py").read_text()
    shop.write("src/shop/__init__.py", text.replace("found += number", "found += number + 0"))
    done, tests = shop.run(
        "--instrcount-against=HEAD",
        "-n2",
        "-k",
        "total or longest",
        f"--basetemp={tmp_path / 'base'}",
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert {name: test["verdict"] for name, test in tests.items()} == {
        "test_total": "regressed",
        "test_longest": "unchanged",
    }
    assert not list(shop.temporary.iterdir())


@pytest.mark.valgrind
@pytest.mark.long
def test_ctrl_c_leaves_nothing(shop: Shop) -> None:
    """Neither a process nor a folder, while the other commit is measured."""
    shop.write("pytest.ini", "[pytest]\npythonpath = src\n")
    shop.write(
        "tests/test_slow.py",
        "import pytest, time\n@pytest.mark.instrcount\ndef test_slow(): time.sleep(100)\n",
    )
    commit(shop.folder)
    process = subprocess.Popen(
        shop.command("--instrcount-against=HEAD"),
        cwd=shop.folder,
        env=shop.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

    def room() -> Path | None:
        return next((path.parent for path in shop.temporary.rglob(".git")), None)

    def wait(what: Any) -> None:
        end = time.monotonic() + 120
        while not what() and time.monotonic() < end:
            time.sleep(0.2)
        assert what()

    wait(room)
    folder = room()
    assert folder is not None
    wait(lambda: valgrind_processes(folder))
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, said
    wait(lambda: not valgrind_processes(folder) and not valgrind_processes(shop.folder))
    wait(lambda: not list(shop.temporary.iterdir()))


@pytest.mark.valgrind
@pytest.mark.long
def test_what_cannot_be_compared(shop: Shop, tmp_path: Path) -> None:
    """A package that is installed and not editable is the same on both sides; a conftest that fails."""
    shop.install(tmp_path, finder=False)
    commit(shop.folder)
    site = next((tmp_path / "environment" / "lib").glob("*/site-packages"))
    lines = (site / "all.pth").read_text().splitlines()[:-1]
    (site / "all.pth").write_text("\n".join(lines))
    (site / "shop").mkdir()
    (site / "shop" / "__init__.py").write_text(PACKAGE)
    done, _ = shop.run("--instrcount-against=HEAD")
    assert done.returncode == 4
    assert f"instrcount: shop is imported from {site}/shop, so the same code" in done.stderr
    assert f"[against-installed]\n  fix: {shop.python}" in done.stderr
    shop.write("tests/conftest.py", "raise RuntimeError('it breaks')\n")
    broken = commit(shop.folder)
    shop.write("tests/conftest.py", "")
    done, _ = shop.run("--instrcount-against=HEAD")
    assert done.returncode == 4
    assert "E   RuntimeError: it breaks [against-failed]" in done.stderr
    assert f"fix: git worktree add --detach ../{broken[:7]} {broken[:7]}" in done.stderr
    assert not list(shop.temporary.iterdir())
