"""Which variables are said to be missing under Valgrind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

READS = {
    "get": 'os.environ.get("GREETING")',
    "key": "os.environ['GREETING']",
    "compared": 'os.environ["GREETING"] == "1"',
    "bare": 'environ.get("GREETING", "")',
    "getenv": 'os.getenv(\n    "GREETING", "no")',
    "in": '"GREETING" in os.environ',
    "not in": '"GREETING" not in environ',
}
LEFT_ALONE = {
    "another": 'os.environ.get("SALUTE")',
    "a word": 'kinds = ["GREETING"]',
    "set": 'os.environ["GREETING"] = "2"; os.environ["GREETING"]',
    "a default": 'os.environ.setdefault("GREETING", "2"); os.environ["GREETING"]',
    "set by a fixture": 'monkeypatch.setenv("GREETING", "2"); os.environ["GREETING"]',
}


def said(folder: Path, source: str, *let_through: str, below: str = "") -> str:
    """What is said in a process that has GREETING, and has imported a file with this code."""
    file = folder / below / "app.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"if 0:\n    {source}\n")
    code = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(file.parent)!r})
import app
from pytest_instrcount.session.variables import missing_variables
print(*missing_variables(Path({str(folder)!r}), {let_through!r}), sep="\\n")
"""
    env = {**os.environ, "GREETING": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize("kind", READS)
def test_a_variable_that_is_read(tmp_path: Path, kind: str) -> None:
    assert said(tmp_path, READS[kind]) == (
        "GREETING is set, and not there under Valgrind: app.py would find it "
        "(instrcount_env = GREETING in the ini file)"
    )


@pytest.mark.parametrize("kind", LEFT_ALONE)
def test_one_that_is_not(tmp_path: Path, kind: str) -> None:
    assert said(tmp_path, LEFT_ALONE[kind]) == ""


def test_one_that_is_there(tmp_path: Path) -> None:
    assert said(tmp_path, READS["get"], "GREETING") == ""
    assert said(tmp_path, 'os.environ["HOME"]') == ""


def test_no_lazy_module_is_imported(tmp_path: Path) -> None:
    """Nor does anything fail that stands there and is no module, or whose file is gone."""
    code = f"""
import importlib.util, sys
from pathlib import Path
from types import ModuleType
from pytest_instrcount.session.variables import missing_variables
spec = importlib.util.find_spec("json.tool")
lazy = sys.modules["json.tool"] = importlib.util.module_from_spec(spec)
importlib.util.LazyLoader(spec.loader).exec_module(lazy)
gone = sys.modules["gone"] = ModuleType("gone")
gone.__file__ = {str(tmp_path / "gone.py")!r}
sys.modules["odd"] = object()
assert not list(missing_variables(Path({str(tmp_path)!r}), ()))
assert type(lazy).__name__ == "_LazyModule"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_code_of_others(tmp_path: Path) -> None:
    assert said(tmp_path, READS["get"], below=".venv/lib/site-packages") == ""


def test_what_was_set_since(tmp_path: Path) -> None:
    """A conftest that sets it does so inside, too, by whatever way: a file of settings, say."""
    code = f"""
import os, sys
from pathlib import Path
os.environ["LATER"] = "1"
sys.path.insert(0, {str(tmp_path)!r})
import app
from pytest_instrcount.session.variables import missing_variables
assert not list(missing_variables(Path({str(tmp_path)!r}), ()))
"""
    (tmp_path / "app.py").write_text('import os\nos.environ.get("LATER")\n')
    subprocess.run([sys.executable, "-c", code], check=True)


def test_another_file_sets_it(tmp_path: Path) -> None:
    """A conftest, say, whose fixture does no more."""
    conftest = tmp_path / "conftest.py"
    conftest.write_text("def greet(monkeypatch): monkeypatch.setenv('GREETING', '2')\n")
    assert said(tmp_path, "import conftest; os.environ['GREETING']") != ""
    assert said(tmp_path, "pass\nimport os, conftest\nos.environ['GREETING']") == ""
