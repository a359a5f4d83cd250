"""Names of files and folders made from names of tests; nothing here touches the disk."""

from __future__ import annotations

import hashlib
import platform
import re
import shlex
import sys
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_instrcount.errors import STARTED, InstrcountError
from pytest_instrcount.host.text import escape_unprintable

_LONGEST_SLUG = 60
_LONGEST_PART = 80
# All folders of one test together: with root and file name far from the 4,096 of Linux.
_LONGEST_FOLDER = 240


def env_key(implementation: str, version: tuple[int, int], system: str, machine: str) -> str:
    """The folder name of an environment; what is no letter, digit, ``_``, ``.`` or ``-`` is ``_``.

    >>> env_key("cp", (3, 11), "linux", "x86_64")
    'cp311-linux-x86_64'
    """
    return safe_part(f"{implementation}{version[0]}{version[1]}-{system}-{machine}")


def own_key() -> str:
    """The folder name of the environment that this process is in."""
    return env_key("cp", sys.version_info[:2], sys.platform, platform.machine())


def hash8(text: str) -> str:
    """The first 8 hex digits of the text's SHA-256; any str works, lone surrogates too.

    >>> hash8("tests/test_x.py::test_a")
    '3d491c41'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def file_name(nodeid: str) -> str:
    """The name of a test's baseline: readable slug, then the hash that keeps it unique.

    >>> file_name("tests/test_x.py::TestA::test_b[1/2]")
    'TestA.test_b_1_2-401c53e4.json'
    """
    _, _, test = nodeid.partition("::")
    slug = _sanitised(test.replace("::", ".")).strip("_.-")[:_LONGEST_SLUG].rstrip("_.-")
    return f"{slug or 'test'}-{hash8(nodeid)}.json"


def is_file_name(name: str) -> bool:
    """True if this can be the name of a test's baseline, or of its table of calls.

    >>> is_file_name("test_a-3d491c41.calls.json"), is_file_name("package.json")
    (True, False)
    """
    suffix = rf"(\.json|{re.escape(CALLS_SUFFIX)})"
    return re.fullmatch(r".+-[0-9a-f]{8}" + suffix, name, re.DOTALL) is not None


def folder_parts(nodeid: str) -> tuple[str, ...]:
    """The folders of a test's baseline below the environment's, from the test file's path.

    Safe for any nodeid: no part is absolute, empty, ``.``, ``..`` or long, and neither is the sum.

    >>> folder_parts("tests/unit/test_x.py::test_a")
    ('tests', 'unit', 'test_x')
    >>> folder_parts("/../etc/test_x.py::test_a")
    ('__', 'etc', 'test_x')
    """
    file, _, _ = nodeid.partition("::")
    file = file.removesuffix(".py")
    parts = [safe_part(part) for part in file.split("/") if part not in ("", ".")]
    kept: list[str] = []
    for part in parts:
        if sum(map(len, kept)) + len(kept) + len(part) > _LONGEST_FOLDER:
            return (*kept, hash8(file))
        kept.append(part)
    return tuple(kept)


#: What files of call counts end in; those of instruction counts end in ``.json`` alone.
CALLS_SUFFIX = ".calls.json"


def safe_part(part: str) -> str:
    """One folder name from any text: never empty, ``.`` or ``..``, at most 80 characters.

    >>> safe_part("a b"), safe_part(".."), safe_part("")
    ('a_b', '__', '_')
    """
    safe = _sanitised(part)
    if set(safe) <= {"."}:
        safe = "_" * max(1, len(safe))
    if len(safe) > _LONGEST_PART:
        safe = f"{safe[: _LONGEST_PART - 9]}-{hash8(part)}"
    return safe


def _sanitised(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text)


def reason_of(error: Exception) -> str:
    """The system's words for an error, without the path, which a message has already.

    >>> reason_of(OSError(28, "No space left on device", "b.json")), reason_of(ValueError("NUL"))
    ('No space left on device', 'NUL')
    """
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return printable(str(error))


def file_error(
    slug: str, path: Path, error: Exception, fix: str, deed: str = "written"
) -> InstrcountError:
    """The error for a file that cannot be written, or that something else cannot be done to.

    >>> print(file_error("baseline-write", Path("b"), OSError(28, "No space left"), "df b"))
    instrcount: b cannot be written: No space left [baseline-write]
      fix: df b
    """
    return InstrcountError(slug, f"{shown_path(path)} cannot be {deed}: {reason_of(error)}", fix)


def printable(text: str) -> str:
    r"""The text with all that a terminal could obey, or show at another width than 1, escaped.

    >>> print(printable("a\x1b[31m\n中é"))
    a\x1b[31m\n\u4e2dé
    """
    return "".join(char if _harmless(char) else _escaped(char) for char in text)


def named(names: Sequence[str], most: int = 3) -> str:
    """The first of some names, and how many more there are.

    >>> named(["t.py::a", "t.py::b", "t.py::c", "t.py::d"])
    't.py::a, t.py::b, t.py::c and 1 more'
    """
    shown = ", ".join(map(printable, names[:most]))
    more = len(names) - most
    return f"{shown} and {more} more" if more > 0 else shown


def _harmless(char: str) -> bool:
    if " " <= char <= "~":
        return True
    return (
        char.isprintable()
        and unicodedata.category(char)[0] not in "MCZ"
        and unicodedata.east_asian_width(char) not in "WF"
        # the conjoining letters of Hangul have no width of their own
        and not "\u1160" <= char <= "\u11ff"
    )


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def shown_path(path: Path) -> str:
    """A path as it may stand in a message and in a command: escaped, then quoted for the shell.

    >>> shown_path(Path("a b.json"))
    "'a b.json'"
    """
    return shlex.quote(escape_unprintable(str(path)))


#: What a command needs of the present run's options, as the folder of baselines.
_options: list[str] = []
#: How a test is to be typed where the run was started.
_typed: list[Callable[[str], str]] = [str]


def advise_with(
    program: Sequence[str], options: Sequence[str], typed: Callable[[str], str] = str
) -> None:
    """Have commands that are advised start so, with these options, too, and name tests as ``typed``."""
    STARTED[:], _options[:], _typed[:] = program, options, [typed]


def remeasure(path: Path, nodeid: str = "") -> str:
    """The command that makes a baseline anew where the present file is of no use, and no other.

    >>> remeasure(Path("b.json"), "test_x.py::test_a[1]")
    "rm b.json && pytest --instrcount-update-baseline 'test_x.py::test_a[1]'"
    >>> remeasure(Path("b.json"))
    'rm b.json && pytest --instrcount-update-baseline --instrcount-update-policy=missing'
    """
    return f"rm {shown_path(path)} && {measure(nodeid)}"


def measure(*nodeids: str) -> str:
    """The command that stores baselines where none, or not all, can be read.

    >>> measure("test_x.py::test_a[1]")
    "pytest --instrcount-update-baseline 'test_x.py::test_a[1]'"
    """
    words = [_typed[0](each) for each in nodeids if each]
    return measure_all(*words or ["--instrcount-update-policy=missing"])


def measure_all(*words: str) -> str:
    """The command that stores whatever it measures; ``words`` say what."""
    return shlex.join(
        [*STARTED, "--instrcount-update-baseline", *map(escape_unprintable, words), *_options]
    )
