"""A project of workloads, and changes to it that have nothing to do with what its tests run."""

from __future__ import annotations

import ast
import json
import pickle
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outside_ci import outside_ci

from pytest_instrcount.counts.measurement import Measurement

WORKLOADS = Path(__file__).parent / "noise_workloads"
_RECORDED = Path(__file__).parent / "recorded.py"


@dataclass(frozen=True, slots=True)
class Counted:
    """What one run says of one test."""

    #: its entry in the JSON report
    report: dict[str, Any]
    measurement: Measurement


@dataclass(slots=True)
class Project:
    """A copy of the workloads, with its own arguments of pytest and its own environment."""

    folder: Path
    args: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def tests(self) -> list[Path]:
        """The files with tests."""
        return sorted(self.folder.glob("test_*.py"))

    def copy(self, folder: Path) -> Project:
        """The same project, with its baselines, in another folder."""
        shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns("__pycache__"))
        return Project(folder, list(self.args), dict(self.environment))

    def measure(self, *args: str) -> dict[str, Counted]:
        """Nodeid -> what was counted. Ends the benchmark where a test failed."""
        report = self.folder.parent / "report.json"
        record = self.folder.parent / "record.pickle"
        for path in (report, record):
            path.unlink(missing_ok=True)
        command = [sys.executable, str(_RECORDED), str(record), "--instrcount", "-q"]
        command += ["-p", "no:cacheprovider", f"--instrcount-report=json:{report}"]
        command += ["--instrcount-max-delta=0.1%", *self.args, *args]
        environment = outside_ci("PYTHONDONTWRITEBYTECODE")
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment | self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        # 1: a regression, which is what is counted here
        if done.returncode not in (0, 1) or not record.exists() or " error" in done.stdout[-200:]:
            sys.exit(done.stdout + done.stderr)
        reports = {test["nodeid"]: test for test in json.loads(report.read_text())["tests"]}
        measured = pickle.loads(record.read_bytes())
        return {nodeid: Counted(reports[nodeid], measured[nodeid]) for nodeid in measured}


def write_project(folder: Path) -> Project:
    """A new project in ``folder``; without the tests whose packages are not installed."""
    shutil.copytree(WORKLOADS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return Project(folder)


def _edit(path: Path, top: str = "", bottom: str = "") -> None:
    """Insert lines below the docstring of a file, and at its end."""
    first, _, rest = path.read_text().partition("\n")
    path.write_text(f"{first}\n\n{top}\n{rest}\n\n{bottom}\n")


def _names(pick: random.Random, number: int) -> list[str]:
    return [f"thing_{pick.randrange(10**6)}_{each}" for each in range(number)]


def add_comments(project: Project, pick: random.Random) -> None:
    """Comments at the top and at the end of each file."""
    comment = "# what is said here is of no consequence\n" * pick.randrange(5, 60)
    for path in [*project.tests, project.folder / "conftest.py"]:
        _edit(path, comment, comment)


def add_docstrings(project: Project, pick: random.Random) -> None:
    """A docstring in each test."""
    text = "Says what is tested, and why. " * pick.randrange(1, 12)
    for path in project.tests:
        lines = path.read_text().splitlines()
        bodies = [
            node.lineno  # a signature is one line here
            for node in ast.parse("\n".join(lines)).body
            if isinstance(node, ast.FunctionDef)
        ]
        for number in reversed(bodies):
            lines.insert(number, f'    """{text}"""')
        path.write_text("\n".join(lines) + "\n")


def import_in_tests(project: Project, pick: random.Random) -> None:
    """Another import in each file of tests."""
    names = ("wave", "xmlrpc.client", "fractions", "calendar", "mailbox", "colorsys", "cmd")
    for path in project.tests:
        _edit(path, f"import {', '.join(pick.sample(names, 3))}")


def import_in_conftest(project: Project, pick: random.Random) -> None:
    """More of the standard library in the conftest."""
    names = ("asyncio", "unittest.mock", "http.server", "concurrent.futures", "ipaddress")
    _edit(project.folder / "conftest.py", f"import {', '.join(pick.sample(names, 3))}")


def import_packages(project: Project, pick: random.Random) -> None:
    """Packages from PyPI in the conftest, before the files of tests import them."""
    names = ["sqlparse", "markdown", "pygments.lexers.python", "mistune", "packaging.version"]
    pick.shuffle(names)
    lines = "".join(f"with contextlib.suppress(ImportError):\n    import {n}\n" for n in names)
    _edit(project.folder / "conftest.py", f"import contextlib\n\n{lines}")


def add_tests_before(project: Project, pick: random.Random) -> None:
    """More tests at the top of each file."""
    names = _names(pick, pick.randrange(1, 6))
    text = "\n".join(f"def test_{name}():\n    assert sorted('{name}')\n\n" for name in names)
    for path in project.tests:
        _edit(path, text)


def add_tests_after(project: Project, pick: random.Random) -> None:
    """One more test at the end of each file."""
    (name,) = _names(pick, 1)
    for path in project.tests:
        _edit(path, "", f"def test_{name}(text):\n    assert [word for word in text.split()]")


def add_file_of_tests(project: Project, pick: random.Random) -> None:
    """Another file of tests."""
    names = _names(pick, pick.randrange(1, 9))
    text = '"""Others."""\n\nimport string\n\n'
    text += "\n".join(f"def test_{name}():\n    assert string.digits\n\n" for name in names)
    (project.folder / f"test_{names[0]}.py").write_text(text)


def add_classes(project: Project, pick: random.Random) -> None:
    """Classes with methods in each file of tests."""
    text = "".join(
        f"class {name}:\n    size = {number}\n\n"
        f"    def __init__(self, value=0):\n        self.value = value\n\n"
        f"    @property\n    def double(self):\n        return self.value * 2\n\n"
        for number, name in enumerate(_names(pick, pick.randrange(1, 9)))
    )
    for path in project.tests:
        _edit(path, text)


def add_functions(project: Project, pick: random.Random) -> None:
    """Functions and constants in each file of tests."""
    text = "".join(
        f"{name.upper()} = ({number}.5, '{name} is a constant', b'{number}')\n\n"
        f"def {name}(a, *rest, key='{name}', **more):\n"
        f"    return [each + a for each in rest if each not in more] + {name.upper()}[:1]\n\n"
        for number, name in enumerate(_names(pick, pick.randrange(1, 20)))
    )
    for path in project.tests:
        _edit(path, text)


def add_fixtures(project: Project, pick: random.Random) -> None:
    """Fixtures in the conftest, and one more for each test of a file whose tests have one."""
    first, second = _names(pick, 2)
    for path, options in (("conftest.py", ""), ("test_memory.py", "(autouse=True)")):
        _edit(
            project.folder / path,
            "",
            f"@pytest.fixture{options}\ndef {first}():\n    yield {{'{first}': 1}}\n\n"
            f"@pytest.fixture\ndef {second}():\n    yield ['{second}']",
        )


def add_first_fixture(project: Project, pick: random.Random) -> None:
    """A fixture for every test, which is the first one of most."""
    (name,) = _names(pick, 1)
    text = f"@pytest.fixture(autouse=True)\ndef {name}():\n    yield ['{name}']"
    _edit(project.folder / "conftest.py", "", text)


def add_objects(project: Project, pick: random.Random) -> None:
    """Lists and dicts that live on in each file of tests."""
    amount = pick.randrange(100, 3000)
    text = (
        f"TABLE = {{f'row{{n}}': [n, str(n), (n, n / 2)] for n in range({amount})}}\n"
        f"SEEN = {{('seen', n) for n in range({amount // 3})}}\n"
        f"BLOCKS = [bytes(n) for n in range({amount // 2})][::3]\n"
    )
    for path in project.tests:
        _edit(path, text)


def import_helper(project: Project, pick: random.Random) -> None:
    """A module of the project's own, which each file of tests imports."""
    (name,) = _names(pick, 1)
    lines = "".join(f"def {each}():\n    return '{each}'\n\n" for each in _names(pick, 12))
    (project.folder / f"{name}.py").write_text(f'"""Helps."""\n\nimport collections\n\n{lines}')
    for path in project.tests:
        _edit(path, f"from {name} import *")


def reverse_tests(project: Project, pick: random.Random) -> None:
    """The tests of each file in another order."""
    for path in project.tests:
        lines = path.read_text().splitlines()
        parts = [
            (node.lineno - 1, node.end_lineno)
            for node in ast.parse("\n".join(lines)).body
            if isinstance(node, ast.FunctionDef) and not node.decorator_list
        ]
        bodies = [lines[start:stop] for start, stop in parts]
        pick.shuffle(bodies)
        for (start, stop), body in reversed(list(zip(parts, bodies))):
            lines[start:stop] = body
        path.write_text("\n".join(lines) + "\n")


def use_plugin(project: Project, pick: random.Random) -> None:
    """A plugin of pytest, and markers in its ini-file."""
    project.args += ["-p", "pytester"]
    names = "".join(f"    {name}: is one more\n" for name in _names(pick, 6))
    with (project.folder / "pytest.ini").open("a") as ini:
        ini.write(f"markers =\n{names}")


def lengthen_path(project: Project, pick: random.Random) -> None:
    """A longer path."""
    folder = project.folder.parent / "-".join(_names(pick, 3)) / "src"
    folder.parent.mkdir()
    project.folder.rename(folder)
    project.folder = folder


def change_environment(project: Project, pick: random.Random) -> None:
    """Other variables of the environment."""
    home = project.folder.parent / "-".join(_names(pick, 2))
    home.mkdir()
    project.environment |= {"HOME": str(home), "TMPDIR": str(home), "EDITOR": "ed" * 90}
    project.environment |= dict.fromkeys(_names(pick, 20), "set")


def add_files(project: Project, pick: random.Random) -> None:
    """Files and folders beside the tests."""
    for name in _names(pick, pick.randrange(1, 30)):
        (project.folder / f"{name}.md").write_text(name)
        (project.folder / f"{name}.py").write_text(f'"""{name}."""\n')
    (project.folder / "data").mkdir()


def write_no_byte_code(project: Project, pick: random.Random) -> None:
    """No byte code is kept."""
    del pick
    project.environment["PYTHONDONTWRITEBYTECODE"] = "1"


Change = Callable[[Project, random.Random], None]

SINGLE: dict[str, Change] = {
    change.__name__: change
    for change in (
        add_comments,
        add_docstrings,
        import_in_tests,
        import_in_conftest,
        import_packages,
        add_tests_before,
        add_tests_after,
        add_file_of_tests,
        add_classes,
        add_functions,
        add_fixtures,
        add_objects,
        import_helper,
        reverse_tests,
        use_plugin,
        lengthen_path,
        change_environment,
        add_files,
        write_no_byte_code,
    )
}


def change_all(project: Project, pick: random.Random) -> None:
    """All of that at once."""
    for change in SINGLE.values():
        change(project, pick)


CHANGES: dict[str, Change] = {
    **SINGLE,
    "change_all": change_all,
    "add_first_fixture": add_first_fixture,
}
