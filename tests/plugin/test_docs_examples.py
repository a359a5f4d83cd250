"""Each block of code in README.md and docs/ is tried, as far as that can be without Valgrind."""

from __future__ import annotations

import ast
import doctest
import glob
import gzip
import inspect
import itertools
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from pytest_instrcount.callgrind.timer.timer import Timer
from pytest_instrcount.cli import main as cli
from pytest_instrcount.config.options import MARKER_LINE
from pytest_instrcount.fixtures.instrcount import InstrCount
from pytest_instrcount.gate.store.names import env_key, file_name
from pytest_instrcount.gate.store.parts import ATTRIBUTES
from pytest_instrcount.gate.store.summary import parse_summary, summary_text
from tests.blocks import BLOCKS, PAGES, ROOT, Block, blocks
from tests.plugin.conftest import Project
from tests.plugin.test_verdicts import check_schema
from tests.reader import FILES

SCHEMAS = ROOT / "docs/reference/schemas"

#: Kinds that other modules try.
ELSEWHERE = {
    "counted": "tests/callgrind/test_docs_examples.py",
    "tutorial": "tests/callgrind/test_docs_examples.py",
}


def each(*kinds: str) -> pytest.MarkDecorator:
    """Run a test for each block of these kinds, by its page and line."""
    found = blocks(*kinds)
    assert found
    return pytest.mark.parametrize("block", found, ids=lambda block: block.place)


def test_each_block_is_of_a_kind() -> None:
    """What is new and of no kind is tried by nothing: tests/blocks.py says what there is."""
    assert [block.place for block in BLOCKS if not block.kind] == []
    assert len({block.page for block in BLOCKS}) > 25


def test_each_kind_is_tried() -> None:
    """By a test of this module, or of the one that is named."""
    for kind in {block.kind for block in BLOCKS}:
        path = ROOT / ELSEWHERE.get(kind, "tests/plugin/test_docs_examples.py")
        tried = re.findall(r"(?:each|blocks)\(((?:\"\w+\"(?:, )?)+)\)", path.read_text())
        assert f'"{kind}"' in ", ".join(tried), kind


@pytest.fixture
def reader(project: Project) -> Project:
    """The project of a reader, in which examples find what they take for granted."""
    for name, text in FILES.items():
        path = project.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    project.pytester.syspathinsert()
    return project


# --- Python ---------------------------------------------------------------------------------------

#: What pytest is to load beside us where a test is a coroutine.
ASYNC = (
    "-ppytest_asyncio.plugin",
    "-panyio.pytest_plugin",
    "-oasyncio_mode=auto",
    "-oasyncio_default_fixture_loop_scope=function",
)

#: What tests of the examples cost, if not all the same.
COSTS: dict[str, int | dict[str, int]] = {"test_parse_slowly": 30_000}


@each("tests")
def test_tests(block: Block, reader: Project) -> None:
    """They pass natively and measured, without a warning, and each is measured."""
    test = reader.path / "test_example.py"
    more = "from training import *\n" if "torch" in block.text else ""
    test.write_text(f"from mine import *\n{more}{block.text}")
    args: list[str | Path] = ["-Werror", "--strict-markers", test]
    if "async def" in block.text:
        pytest.importorskip("pytest_asyncio")  # it knows no pytest that is as old as ours may be
        args += ASYNC
    native = reader.run(*args)
    assert native.ret == pytest.ExitCode.OK
    number = native.parseoutcomes()
    assert number.keys() == {"passed"}
    reader.valgrind.costs.update(COSTS)
    measured = reader.measure(*args)
    assert (measured.ret, measured.parseoutcomes()) == (pytest.ExitCode.OK, number)
    new = re.findall(r"^instrcount(?:, calls)?: (\d+) new$", measured.stdout.str(), re.MULTILINE)
    assert sum(map(int, new)) == number["passed"]


@each("hook")
def test_hooks(block: Block, reader: Project) -> None:
    """In a conftest they are called, and give nothing that is refused."""
    (reader.path / "conftest.py").write_text(block.text + SPY)
    (reader.path / "test_numpy.py").write_text(
        "import pytest\n@pytest.mark.io\n@pytest.mark.instrcount\ndef test_a(): pass\n"
        "def test_b(trace_profile): trace_profile(len, '')"
    )
    result = reader.measure("-Werror", "-s", "-omarkers=io", "test_numpy.py")
    result.assert_outcomes(passed=2)
    names = set(re.findall(r"^def (pytest_\w+)", block.text, re.MULTILINE))
    assert names == set(re.findall(r"^called (pytest_\w+)", result.stdout.str(), re.MULTILINE))


#: Says which hooks of a conftest are called.
SPY = """

def pytest_configure(config):
    def before(name, found, arguments):
        if "instrcount" in name and any(one.plugin_name == __file__ for one in found):
            print("\\ncalled", name)

    config.pluginmanager.add_hookcall_monitoring(before, lambda *_: None)
"""


@each("fixture")
def test_fixtures(block: Block, reader: Project) -> None:
    """A test can take them."""
    (name,) = re.findall(r"^def (\w+)\(", block.text, re.MULTILINE)
    (reader.path / "conftest.py").write_text(f"from mine import *\n{block.text}")
    reader.write(f"import pytest\n@pytest.mark.instrcount\ndef test_a({name}): pass")
    reader.run("test_it.py").assert_outcomes(passed=1)
    reader.measure("test_it.py").assert_outcomes(passed=1)


@each("script")
def test_scripts(block: Block, tmp_path: Path) -> None:
    """As a file that Python runs, with warnings for errors."""
    path = tmp_path / "example.py"
    path.write_text(block.text)
    subprocess.run([sys.executable, "-Werror", str(path)], cwd=tmp_path, check=True)


def _signature(text: str) -> list[tuple[str, Any, Any]]:
    names: dict[str, Any] = {}
    exec(f"def made{text[text.index('(') :].strip()}: ...", names)
    return _parts(names["made"])


def _parts(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    parameters = inspect.signature(function).parameters.values()
    return [(one.name, one.default, one.kind) for one in parameters if one.name != "self"]


@each("signature")
def test_signatures(block: Block) -> None:
    """They have the names, the order and the defaults of the code."""
    name = block.text.partition("(")[0]
    of_the_code = {
        "@pytest.mark.instrcount": _signature(MARKER_LINE.partition("): ")[0] + ")"),
        "instrcount.pedantic": _parts(InstrCount.pedantic),
        "Timer": _parts(Timer.__init__),
        "collect_callgrind": _parts(Timer.collect_callgrind),
    }
    assert _signature(block.text) == of_the_code[name]


#: Pages whose times are others each time.
LOOSE = {"reference/profile.md": doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE}


def _sessions() -> Iterator[tuple[Block, ...]]:
    """Blocks that go on from one another: those of a page, but that a fixture can be used but once."""
    for _, found in itertools.groupby(blocks("session"), key=lambda block: block.page):
        one: tuple[Block, ...] = ()
        for block in found:
            if one and "getfixture" in block.text:
                yield one
                one = ()
            one += (block,)
        yield one


@pytest.mark.parametrize("session", [*_sessions()], ids=lambda session: session[0].place)
def test_sessions(
    session: tuple[Block, ...], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They print what they say."""
    monkeypatch.setenv("COLUMNS", "80")
    names = {"getfixture": request.getfixturevalue}
    text = "\n".join(block.text for block in session)
    page, line = session[0].page, session[0].line
    test = doctest.DocTestParser().get_doctest(text, names, page, page, line)
    failed, tried = doctest.DocTestRunner(optionflags=LOOSE.get(page, 0)).run(test)
    assert (failed, tried) == (0, len(re.findall("^>>> ", text, re.MULTILINE)))


@each("diff")
def test_diffs(block: Block) -> None:
    """What is put in can be imported, and what is left is Python."""
    after = "\n".join(line[1:] for line in block.text.splitlines() if not line.startswith("-"))
    compile(after, block.place, "exec")
    (line,) = re.findall(r"^\+(from .+)$", block.text, re.MULTILINE)
    exec(line, {})


# --- settings, files, workflows -------------------------------------------------------------------


@each("ini")
def test_settings(block: Block, reader: Project) -> None:
    """They may stand in pytest.ini, and what they say can be done."""
    (reader.path / "tox.ini").unlink()
    (reader.path / "pytest.ini").write_text(block.text)
    result = reader.measure("-Werror", "--strict-config")
    assert result.ret == pytest.ExitCode.OK
    assert result.parseoutcomes().keys() == {"passed"}


#: Page -> the file that an example is taken from.
EXCERPTS = {
    "how-to/macos.md": "docs/ci/Dockerfile",
    "how-to/write-a-plugin.md": "examples/plugin/pyproject.toml",
}


@each("excerpt")
def test_excerpts(block: Block) -> None:
    """Word for word what a file has, which other tests use."""
    assert block.text in (ROOT / EXCERPTS[block.page]).read_text()


@each("report")
def test_reports(block: Block) -> None:
    """As the schema says."""
    report = json.loads(block.text)
    check_schema(report, json.loads((SCHEMAS / f"report-{report['schema']}.json").read_text()))


@each("summary")
def test_summaries(block: Block) -> None:
    """As the schema says, as they are written, and with numbers that fit together."""
    check_schema(json.loads(block.text), json.loads((SCHEMAS / "baseline-6.json").read_text()))
    found = parse_summary(block.text, Path())
    assert summary_text(found, found.lost) == block.text


def test_workflows(tmp_path: Path) -> None:
    """What is shown of a workflow is valid in one, by the schemas of check-jsonschema."""
    found = blocks("workflow")
    for number, block in enumerate(found):
        text = block.text
        if text.lstrip().startswith("- "):
            text = f"jobs:\n  one:\n    steps:\n{text}"
        workflow = YAML(typ="safe").load(text)
        workflow.setdefault("on", "push")
        for job in workflow["jobs"].values():
            job.setdefault("runs-on", "ubuntu-24.04")
        (tmp_path / f"{number}.json").write_text(json.dumps(workflow))
    files = sorted(tmp_path.glob("*.json"))
    assert files
    command = ["check_jsonschema", "--builtin-schema", "vendor.github-workflows", *map(str, files)]
    subprocess.run([sys.executable, "-m", *command], check=True)


# --- commands -------------------------------------------------------------------------------------

#: Commands that are not run here, and why.
NOT_RUN = {
    "pip": "needs a network",
    "sudo": "makes the machine",
    "examples/run": "installs, and measures 45 tests; tests/callgrind measures some of them",
    "tox": "makes environments; what it hands to pytest is read",
    "docker": "needs its daemon; what it hands to pytest is read",
    "kcachegrind": "opens a window",
    "callgrind_annotate": "comes with Valgrind; tests/callgrind/test_keep.py runs it",
}
#: Commands that a shell runs in the reader's project.
SHELL = ("git", "rm", "mv")
#: Options of pytest that start others, or ask git: they are read here, and tried where they are tested.
ONLY_READ = (
    *("-n", "--dist=load", "--instrcount-against"),
    *(("--instrcount-backend=bytecode",) if sys.version_info < (3, 12) else ()),
)
#: The command of ours that needs Valgrind.
DOCTOR = "doctor"

#: What CI or a shell fills in.
FILLED_IN = re.compile(r"\$\{\{.*?\}\}|\$\(.*?\)|\$\w+")


#: The folder of baselines that this Python has, in the place of the one that is shown.
ENVIRONMENT = env_key("cp", sys.version_info[:2], sys.platform, platform.machine())
#: Who commits, and how a message is typed.
AUTHOR = {
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"), "a@example.com"),
    **dict.fromkeys(("GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"), "a@example.com"),
    "GIT_EDITOR": "echo accepted >",
}


def commands_in(text: str) -> Iterator[list[str]]:
    """The words of each simple command in some lines of shell."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(FILLED_IN.sub("1", line), posix=True, punctuation_chars="&|;")
        lexer.whitespace_split = True
        parts = itertools.groupby(lexer, lambda word: set(word) <= set("&|;"))
        yield from (list(words) for is_between, words in parts if not is_between)


def read(project: Project, words: list[str]) -> None:
    """Let whoever would run a command read its arguments; an unknown option is an error."""
    first, *args = words
    if first == "docker" and args[0] == "run":
        rest = args[args.index("instrcount") + 1 :]
        return read(project, rest or ["pytest"])
    if first == "tox":
        return read(project, ["pytest", *args[args.index("--") + 1 :]])
    if first == "python" and args[:2] in (["-m", "pytest"], ["-m", "pip"]):
        return read(project, args[1:])
    if first == "pytest":
        project.pytester.parseconfig(*with_plugins(args))
    elif first == "python" and args[:2] == ["-m", "pytest_instrcount"]:
        cli._parser().parse_args(args[2:])
    elif first == "python":
        script = (ROOT / args[0]).read_text()
        assert [arg for arg in args if arg.startswith("--") and f'"{arg}"' not in script] == []
    elif first == "pip":
        assert [arg for arg in args if arg.startswith("./") and not (ROOT / arg).exists()] == []
    else:
        assert first in (*SHELL, *NOT_RUN), f"say how {first} is to be tried"
    return None


def with_plugins(args: list[str]) -> list[str]:
    """With those that these arguments are for, since no plugin is loaded by itself."""
    needed = {
        "-n": "xdist.plugin",
        "--dist=load": "xdist.plugin",
        "--splits": "pytest_split.plugin",
    }
    return [*(f"-p{plugin}" for name, plugin in needed.items() if name in args), *args]


def run(project: Project, words: list[str]) -> None:
    """Run a command in the reader's project, if it can be: it must succeed."""
    words = [re.sub(r"\bcp\d+-\w+-\w+\b", ENVIRONMENT, word) for word in words]
    first, *args = (hit for word in words for hit in sorted(glob.glob(word)) or [word])
    if first == "pytest" and not any(arg.startswith(ONLY_READ) for arg in args):
        assert project.run("-Werror", *with_plugins(args)).ret == pytest.ExitCode.OK
    elif words[:3] == ["python", "-m", "pytest_instrcount"] and args[2] != DOCTOR:
        assert cli.main(args[2:]) == 0
    elif first in SHELL:
        subprocess.run([first, *args], check=True, env=os.environ | AUTHOR)


def a_bundle(project: Project) -> None:
    """A run has failed, and its bundle was brought here."""
    sample = (ROOT / "tests/data/bundles/schema2.json").read_bytes()
    (project.path / "instrcount.json.gz").write_bytes(gzip.compress(sample))
    (project.path / "PATH").write_bytes(sample)


def three_shards(project: Project) -> None:
    """What three jobs have uploaded, and another has downloaded."""
    for number in "123":
        (project.path / f"report-{number}").mkdir()
        report = f"--instrcount-report=json:report-{number}/report-{number}.json"
        group = with_plugins(["--instrcount-shard", "--splits", "3", "--group", number])
        assert project.update(report, *group).ret == pytest.ExitCode.OK
        (project.path / "instrcount_baselines").rename(project.path / f"shard-{number}")
    project.update()


def baselines_of_main(project: Project) -> None:
    """They are in the repository, and another branch is at work."""
    for command in ("add .", "commit", "checkout -b faster"):
        run(project, ["git", *command.split()])


BEFORE = {
    "how-to/look-into-a-failure.md": a_bundle,
    "how-to/shards.md": three_shards,
    "reference/command-line.md": baselines_of_main,
}


@each("commands")
def test_commands(block: Block, reader: Project) -> None:
    """Each is understood, and those that can be run succeed, one after the other."""
    commands = [*commands_in("\n".join(block.typed))]
    assert commands
    for words in commands:
        read(reader, words)
    if any(words[0] in SHELL for words in commands):
        subprocess.run(["git", "init", "-q", "-b", "main"], check=True)
        reader.update()
    if block.page in BEFORE:
        BEFORE[block.page](reader)
    for words in commands:
        run(reader, words)


@each("workflow")
def test_commands_of_workflows(block: Block, reader: Project) -> None:
    """They are understood; those of whole files are carried out by tests/callgrind/test_ci_examples.py."""
    workflow = YAML(typ="safe").load(block.text)
    scripts = [*scripts_in(workflow)]
    assert scripts
    lines = "\n".join(scripts).splitlines()
    for words in commands_in("\n".join(line for line in lines if "pytest" in line)):
        read(reader, words)


def scripts_in(value: Any) -> Iterator[str]:
    """What a workflow gives to a shell."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key in ("run", "script", "before_script"):
                yield from [part] if isinstance(part, str) else part
            else:
                yield from scripts_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from scripts_in(part)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_in_the_text(page: Path, reader: Project) -> None:
    """Whoever would run them knows their options."""
    found = re.findall(r"`((?:pytest|python) [^`]+)`", page.read_text())
    for line in found:
        for words in commands_in(" ".join(line.replace(" COMMAND", "").split())):
            if words[2:3] == ["pytest_instrcount"] and len(words) < 5:  # it is named, not typed
                with pytest.raises(SystemExit, match=r"^0$"):
                    read(reader, [*words, "--help"])
            else:
                read(reader, words)


# --- what is printed ------------------------------------------------------------------------------


@each("paths")
def test_paths(block: Block) -> None:
    """A test's file is named after its id; others have names of the same form."""
    for line in block.text.splitlines():
        if ".shard." in line:
            assert re.search(r"/cp\d+-\w+-\w+/[0-9a-f]{8}\.shard\.json\.gz$", line)
        elif not line.endswith(("/", ATTRIBUTES)):
            file, test = re.findall(r"(?:^DIR|cp\d+-linux-x86_64)/(.+)/(\w+)-", line)[0]
            name = Path(file_name(f"{file}.py::{test}")).stem
            ends = r"(\.calls)?\.json|\.[0-9a-f]{12}\.profile\.gz|\.callgrind\.out"
            assert re.search(rf"/{name}({ends})$", line), line


@each("drawing")
def test_drawings(block: Block) -> None:
    """A formula, and a tree of processes: what they name is there."""
    for name in re.findall(r"^(\w+)  ", block.text, re.MULTILINE):
        room = ROOT / "pytest_instrcount/callgrind" / name
        assert room.is_dir() or room.with_suffix(".py").exists(), name


#: Lines of pytest itself, of a file that is shown, or with what a user has typed.
NOT_OURS = re.compile(
    r"""collected\ \d+\ items | test_\w+\.py\ [.I]+\ .* | tests/test_\w+\.py\ [.I]+ | =+\ FAILURES\ =+
    | _+\ \S+\ _+ | (=+\ )?\d+\ failed,\ \d+\ passed(\ in\ .+)? | \.\.\. | ~*\^+~* | -{5}[- ]+
    | return\ .+ | \w[\w.]+\(.+\) | setup:\ .+ | (.*\s)?cubes\ are\ wanted | .*\(first\ baselines\)
    """,
    re.VERBOSE,
)
#: What is no word of a message: numbers, paths, names of functions, signs.
_OTHER = re.compile(
    r"\s{2,}|[\w.]+ \S+\.py:\d+(?=,| calls)|\S+\.py:\d+ \S+|\w+:\w\S*|"
    r"\S*[\d_./\\=`\[\]{}\"…^|]\S*|->|[+%:;,()-]+"
)


def words_of(text: str) -> str:
    """The words of a text, each between two blanks."""
    return f" {' '.join(re.findall('[A-Za-z-]*[A-Za-z]', text))} "


def written_by(*folders: str) -> Iterator[str]:
    """The texts in the code below these folders, but for those that explain it."""
    for path in (file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                node.value.value = ""
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


@pytest.fixture(scope="module")
def vocabulary() -> str:
    """All words that are printed, text by text."""
    script = (ROOT / "examples/run").read_text()
    return "\n".join(map(words_of, (*written_by("pytest_instrcount", "benchmarks"), script)))


def pieces_of(phrase: str, vocabulary: str) -> int:
    """Of how many texts of the code a phrase is made up, at least; 99 if one of its words is in none."""
    words = words_of(phrase).split()
    pieces = 0
    while words:
        number = len(words)
        while number and f" {' '.join(words[:number])} " not in vocabulary:
            number -= 1
        if not number:
            return 99
        words = words[number:]
        pieces += 1
    return pieces


@each("output", "commands")
def test_outputs(block: Block, vocabulary: str) -> None:
    """Each message is worded as in the code, and its slug has a heading in the page of messages."""
    lines = block.shown
    named = set(re.findall(r"\w+", "".join(b.text for b in BLOCKS if b.language == "python")))
    slugs = re.findall(r"\[([a-z]+(?:-[a-z]+)+)\]$", "\n".join(lines), re.MULTILINE)
    headings = (ROOT / "docs/reference/messages.md").read_text().splitlines()
    assert [slug for slug in slugs if f"### {slug}" not in headings] == []
    for line in lines:
        if NOT_OURS.fullmatch(line.strip()):
            continue
        phrases = [phrase for phrase in _OTHER.split(line) if phrase.strip() not in named]
        assert [each for each in phrases if pieces_of(each, vocabulary) > 2] == [], line
