"""Queries to git: the commit that a name stands for, and its files in a folder of their own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.names import shown_path
from pytest_instrcount.host.git import git_command, git_environment, why_silent, work_tree
from pytest_instrcount.host.programs import run_program

_SECONDS = 600
#: Settings by which git writes other bytes into a work tree than it has stored.
_CONVERSIONS = r"^(core\.(autocrlf|eol|symlinks|filemode)|filter\..*)$"


class GitFailed(Exception):
    """git ended with an error; the text is what it said last."""


@dataclass(frozen=True, slots=True)
class Repository:
    """The work tree that a folder is in."""

    #: as git has it: without symbolic links
    path: Path

    def git(self, *words: str) -> str:
        """The output of a git command. Raises GitFailed."""
        return run_git(self.path, *words)

    def resolve(self, ref: str) -> str:
        """The full id of a commit. Raises InstrcountError "against-ref", with what fetches it."""
        if ref and not ref.startswith(("-", "^")):  # an option; commits that are left out
            # in two steps: nothing can be put behind the text of ":/text"
            for found in self._lines("rev-parse", "--verify", "--quiet", ref):
                for commit in self._lines(
                    "rev-parse", "--verify", "--quiet", f"{found}^{{commit}}"
                ):
                    return commit
        why = f"git knows no commit {ref!r} here"
        if self._is_shallow():
            why += ": this is a shallow clone"
        raise InstrcountError("against-ref", why, self._remedy(ref))

    def _remedy(self, ref: str) -> str:
        """The line that makes the commit known, as far as its name tells."""
        remotes = self._lines("remote")
        remote, _, branch = ref.partition("/")
        if remote in remotes and branch:
            return _fetch(remote, f"{branch}:refs/remotes/{remote}/{branch}")
        for each in remotes:
            if self._knows(f"{each}/{ref}"):
                return f"pytest --instrcount {shlex.quote(f'--instrcount-against={each}/{ref}')}"
        steps = re.fullmatch(r"(?:HEAD|@)((?:[\^~]\d*)+)", ref)
        if steps and remotes and self._is_shallow():
            return f"git fetch --deepen={_depth(steps[1])} {remotes[0]}"
        if not remotes or not ref or re.search(r"[\s~^:?*\[\\]|^-|@\{", ref):
            return "git log --oneline --all    # the commits that there are"
        if re.fullmatch(r"[0-9a-f]{7,64}", ref):
            return _fetch(remotes[0], ref)
        return f"{_fetch(remotes[0], ref)} && git tag {shlex.quote(ref)} FETCH_HEAD"

    @property
    def shown(self) -> str:
        """The path of the work tree from where pytest was started, for a command."""
        return shown_path(Path(os.path.relpath(self.path)))

    def _knows(self, ref: str) -> bool:
        return bool(self._lines("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}"))

    def _is_shallow(self) -> bool:
        return self._lines("rev-parse", "--is-shallow-repository") == ["true"]

    def _lines(self, *words: str) -> list[str]:
        try:
            return self.git(*words).split()
        except GitFailed:
            return []

    def tracked(self) -> list[str]:
        """Files that git knows, from the top of the work tree."""
        return self._named("ls-files", "-z")

    def ignored(self) -> list[str]:
        """Files, and whole folders with a slash, that git ignores: most often made by a build."""
        words = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
        return self._named(*words)

    def is_at(self, commit: str) -> bool:
        """True if the work tree has this commit's files, without a change."""
        if self._lines("rev-parse", "HEAD") != [commit]:
            return False
        # which changes git was told to overlook it does not say
        overlooked = any(not each.startswith("H ") for each in self._named("ls-files", "-v", "-z"))
        return not overlooked and not self._named("status", "--porcelain", "-z", commit=commit)

    def files_of(self, commit: str) -> list[str]:
        """Files of a commit."""
        return self._named("ls-tree", "-r", "-z", "--name-only", commit, commit=commit)

    def _named(self, *words: str, commit: str = "") -> list[str]:
        try:
            return [name for name in self.git(*words).split("\0") if name]
        except GitFailed as error:
            raise self._untaken(commit, error) from error

    def submodules_of(self, commit: str) -> Iterator[tuple[str, str]]:
        """Folder and commit of each submodule."""
        for line in self._named("ls-tree", "-r", "-z", commit, commit=commit):
            facts, _, path = line.partition("\t")
            if facts.startswith("160000 "):
                yield path, facts.split()[2]

    def check_out(self, commit: str, folder: Path) -> None:
        """Write the files of a commit into a new repository in an empty folder.

        It borrows the objects of this one, and nothing is written here. Not an archive: attributes
        may leave tests out of those. Not a clone: that knows branches alone. Submodules that are
        here are checked out as well. Raises InstrcountError "against-tree".
        """
        try:
            self._check_out(commit, folder)
            for path, wanted in self.submodules_of(commit):
                if not (self.path / path / ".git").exists():
                    continue  # not here either
                submodule = Repository(self.path / path)
                if not submodule._knows(wanted):
                    raise InstrcountError(
                        "against-ref",
                        f"the submodule {submodule.shown} has no commit {wanted}",
                        f"git -C {submodule.shown} fetch --depth=1 origin {wanted}",
                    )
                submodule.check_out(wanted, folder / path)
        except (GitFailed, OSError) as error:
            raise self._untaken(commit, error) from error

    def _untaken(self, commit: str, error: Exception) -> InstrcountError:
        what = commit[:12] or "this work tree"
        if self._lines("config", "--get-regexp", r"^remote\..*\.promisor$"):
            return InstrcountError(
                "against-tree",
                f"the files of {what} are not all here: this is a partial clone, and nothing is "
                "fetched unasked",
                f"git -C {self.shown} archive {commit or 'HEAD'} >/dev/null",
            )
        return InstrcountError(
            "against-tree",
            f"the files of {what} cannot be taken: {error}",
            "git fsck --connectivity-only; df",
        )

    def _check_out(self, commit: str, folder: Path) -> None:
        common = Path(self.path, self.git("rev-parse", "--git-common-dir").removesuffix("\n"))
        form = self._lines("rev-parse", "--show-object-format") or ["sha1"]
        run_git(folder, "init", "--quiet", "--template=", f"--object-format={form[0]}")
        own = folder / ".git"
        (own / "objects" / "info").mkdir(parents=True, exist_ok=True)
        (own / "objects" / "info" / "alternates").write_bytes(quoted(common / "objects") + b"\n")
        if (common / "shallow").exists():
            (own / "shallow").write_bytes((common / "shallow").read_bytes())
        run_git(folder, "config", "lfs.storage", str(common / "lfs"))
        for name, value in self._conversions():
            run_git(folder, "config", "--add", name, value)
        if (common / "info" / "attributes").exists():
            (own / "info").mkdir(exist_ok=True)
            shutil.copy(common / "info" / "attributes", own / "info")
        no_hooks = ("-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false")
        run_git(folder, *no_hooks, "checkout", "--quiet", "--detach", "--force", commit)

    def _conversions(self) -> Iterator[tuple[str, str]]:
        """The settings of this clone alone that make other bytes of files: line ends, filters."""
        try:
            found = self.git("config", "--local", "--null", "--get-regexp", _CONVERSIONS)
        except GitFailed:  # there are none
            return
        for each in found.split("\0")[:-1]:
            name, _, value = each.partition("\n")
            yield name, value


def find_repository(folder: Path) -> Repository:
    """The repository that a folder is in.

    Raises InstrcountError "against-git": no git, no repository, or one that git does not trust.
    """
    top = work_tree(folder) or folder
    try:
        path = run_git(top, "rev-parse", "--show-toplevel").removesuffix("\n")
        if not path:
            raise GitFailed("it is no work tree")
    except (GitFailed, OSError) as error:
        told = why_silent(folder, error)
        raise InstrcountError(
            "against-git",
            *(told or (f"git fails in {top}: {error}", f"git -C {shlex.quote(str(top))} status")),
        ) from None
    return Repository(Path(path))


def run_git(folder: Path, *words: str) -> str:
    """The output of a git command. Raises GitFailed, FileNotFoundError without git."""
    try:
        environment = {**git_environment(), "LC_ALL": "C"}
        done = run_program(git_command(folder, *words), _SECONDS, env=environment, cwd=folder)
    except subprocess.TimeoutExpired:
        raise GitFailed(f"git {words[0]} did not end") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-3:]
        raise GitFailed(" / ".join(said) or f"git {words[0]} failed")
    return os.fsdecode(done.stdout)


def quoted(path: Path) -> bytes:
    r"""A path as git has it in a file of lines: any byte may be in it.

    >>> quoted(Path("/a\nb"))
    b'"/a\\012b"'
    """
    plain = (
        b"\\%03o" % byte if byte < 32 or byte in b'"\\' else b"%c" % byte for byte in bytes(path)
    )
    return b'"' + b"".join(plain) + b'"'


def _fetch(remote: str, what: str) -> str:
    return f"git fetch --depth=1 {shlex.quote(remote)} {shlex.quote(what)}"


def _depth(steps: str) -> int:
    """The number of commits that ``~2^`` and the like go back; ``^2`` is one step to another parent."""
    return sum(
        int(step[1:] or 1) if step[0] == "~" else 1 for step in re.findall(r"[\^~]\d*", steps)
    )
