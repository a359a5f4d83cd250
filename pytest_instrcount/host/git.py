"""git, asked without anything from the repository's files being run, and without the network.

Files of a pull request can look like a repository: a folder with ``HEAD``, ``objects``, ``refs`` and a
``config``, which git takes for a bare one if it is started in there, and a ``config`` names programs.
What cannot be in a pull request is a ``.git``: git is started beside one only.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from pytest_instrcount.host.programs import run_program

_FOREIGN = """
    GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_COMMON_DIR GIT_DIR GIT_GRAFT_FILE GIT_INDEX_FILE
    GIT_OBJECT_DIRECTORY GIT_PREFIX GIT_SHALLOW_FILE GIT_WORK_TREE
"""
#: What a hook of git sets for its own repository, which need not be ours (see
#: `git rev-parse --local-env-vars`).
FOREIGN = frozenset(_FOREIGN.split())
#: More than this no answer takes, of a large repository either.
_SECONDS = 60


def work_tree(folder: Path) -> Path | None:
    """The nearest folder from this one upwards that has a ``.git``; None if there is none."""
    start = Path(os.path.realpath(folder))
    return next((each for each in (start, *start.parents) if os.path.lexists(each / ".git")), None)


def why_silent(folder: Path, error: Exception) -> tuple[str, str] | None:
    """Why git cannot be asked about a folder at all, and what to type; None for another ``error``.

    >>> why_silent(Path("/proc"), ValueError())
    ('/proc is in no repository of git', 'run it in a clone of the repository')
    """
    tree = work_tree(folder)
    if isinstance(error, FileNotFoundError):
        return "there is no git to run", "sudo apt-get install git"
    if tree is None:
        return f"{folder} is in no repository of git", "run it in a clone of the repository"
    if "safe.directory" in str(getattr(error, "stderr", error)):
        trust = f"git config --global --add safe.directory {shlex.quote(str(tree))}"
        return f"git does not trust {tree}: it belongs to another user", trust
    return None


def git_command(tree: Path, *arguments: str) -> list[str]:
    """A function that asks git about a work tree, as `work_tree` returns it."""
    return ["git", "-C", str(tree), "-c", "safe.bareRepository=explicit", *arguments]


def git_environment() -> Mapping[str, str]:
    """The environment for it: of a partial clone nothing is downloaded, and the index is not written."""
    kept = {name: text for name, text in os.environ.items() if name not in FOREIGN}
    return {
        **kept,
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",  # heeded from 2.45 on
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }


def run_git(tree: Path, *arguments: str) -> bytes:
    """Ask git about a work tree. Raises OSError, ValueError or subprocess.SubprocessError."""
    done = run_program(git_command(tree, *arguments), _SECONDS, env=git_environment())
    done.check_returncode()
    return done.stdout
