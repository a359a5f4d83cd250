"""SIGKILL and SIGSTOP of the zygote, of a file's process and of a test's, at every stage."""

from __future__ import annotations

import textwrap

import pytest

from tests.faults.conftest import Compared, Fault, Place

pytestmark = [pytest.mark.valgrind, pytest.mark.long]

#: Sends a signal to itself, its parent or its parent's parent; mostly once in all.
CONFTEST = """
import os, signal
from pathlib import Path

FLAGS = Path(__file__).parent.parent / "flags"

def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def hit(name, number, generation, once=True):
    if "INSTRCOUNT_CHILD" not in os.environ:
        return
    try:
        os.close(os.open(FLAGS / name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        if once:
            return
    pid = os.getpid()
    for _ in range(generation):
        pid = parent(pid)
    os.kill(pid, number)

hit("start", signal.SIGKILL, 0)
"""

#: Stage of a test -> its code, in which HIT stands for the blow. The process that repeats is a child
#: of the test's where there are fixtures, and the same without.
STAGES = {
    "set_up": """
        @pytest.fixture
        def blow():
            HIT
        def test_NAME(blow): pass
        """,
    "call": """
        def test_NAME(tmp_path):
            HIT
        """,
    "count": """
        CALLS_NAME = []
        def test_NAME(tmp_path):
            CALLS_NAME.append(1)
            if len(CALLS_NAME) == 5: HIT_FROM_REPETITION
        """,
    "tear_down": """
        @pytest.fixture
        def blow():
            yield
            HIT
        def test_NAME(blow): pass
        """,
    "after_the_result": """
        CALLS_NAME = []
        def test_NAME():
            CALLS_NAME.append(1)
            if len(CALLS_NAME) == 5: HIT
        """,
}
VICTIMS = {"test": 0, "file": 1, "zygote": 2}
SIGNALS = {"kill": "SIGKILL", "stop": "SIGSTOP"}

#: A zygote that is killed costs seconds, so not at every stage; nor one that is stopped.
BLOWS = [
    f"{stage}_{victim}_{blow}"
    for stage in STAGES
    for victim in VICTIMS
    for blow in SIGNALS
    if victim != "zygote"
    or (stage, blow) in [("set_up", "kill"), ("count", "kill"), ("call", "stop")]
]

#: What hits a file while it is imported: signal, and whose.
IMPORTS = {
    "import_file_kill": ("SIGKILL", 0),
    "import_zygote_kill": ("SIGKILL", 1),
    "import_zygote_stop": ("SIGSTOP", 1),
}

HEAD = """
import signal, pytest
from conftest import hit
pytestmark = pytest.mark.instrcount
"""


def stage_file(stage: str) -> str:
    """All blows at this stage, with good tests between them."""
    parts = [HEAD]
    for name in BLOWS:
        if not name.startswith(stage):
            continue
        _, victim, blow = name.rsplit("_", 2)
        hit = f'hit("{name}", signal.{SIGNALS[blow]}, {{}}, once={name not in LATE})'.format
        code = textwrap.dedent(STAGES[stage]).replace("def blow", f"def {name}")
        code = code.replace("(blow)", f"({name})").replace("NAME", name)
        code = code.replace("HIT_FROM_REPETITION", hit(VICTIMS[victim] + 1))
        code = code.replace("HIT", hit(VICTIMS[victim]))
        if name in LATE:
            code = code.replace("def test_", "@pytest.mark.instrcount(timeout=4)\ndef test_")
        parts += [code, f"def test_good_{name}(): assert sum(range(100)) == 4950\n"]
    return "\n".join(parts)


#: A test that is stopped is not told to go on: it is out of time.
LATE = {name for name in BLOWS if name.endswith("_test_stop")}


@pytest.fixture(scope="module")
def compared(module_place: Place) -> Compared:
    """All blows in one run; in the second run nothing is hit."""
    place = module_place
    place.path.parent.joinpath("flags").mkdir()
    place.write("conftest.py", CONFTEST)
    for stage in STAGES:
        place.write(f"test_{stage}.py", stage_file(stage))
    for name, (number, generation) in IMPORTS.items():
        good = f"def test_{name}(): pass\ndef test_good_{name}(): pass\n"
        place.write(
            f"test_{name}.py", f'{HEAD}\nhit("{name}", signal.{number}, {generation})\n{good}'
        )
    tree = place.tree()
    faulty = place.run()
    return Compared(place.run("-k", "good"), faulty, place, tree)


@pytest.mark.parametrize("name", [*BLOWS, *IMPORTS])
def test_blow(compared: Compared, name: str) -> None:
    """What was killed, or stopped beside the test, is made up for; what stands still is late."""
    late = Fault("", "failed", "did not end within 4 s")
    compared.assert_fault(name, late if name in LATE else Fault(""))
    assert compared.place.path.parent.joinpath("flags", name).exists()


def test_a_zygote_that_is_killed_as_it_starts(compared: Compared) -> None:
    """It is started once more."""
    assert compared.place.path.parent.joinpath("flags", "start").exists()
    assert compared.faulty.verdict("test_good_import_file_kill") == "new", compared.faulty.output


def test_the_others_are_equal(compared: Compared) -> None:
    compared.assert_others_equal()


def test_nothing_is_left(compared: Compared) -> None:
    compared.place.assert_nothing_left(compared.tree)
