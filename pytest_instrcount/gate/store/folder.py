"""A folder of baselines as a whole, read as a stranger's: each file checked, nothing followed."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.baseline import load_baseline
from pytest_instrcount.gate.store.calls import CallTable, parse_calls, render_calls
from pytest_instrcount.gate.store.names import (
    CALLS_SUFFIX,
    file_error,
    file_name,
    folder_parts,
    is_file_name,
    own_key,
    printable,
    safe_part,
    shown_path,
)
from pytest_instrcount.gate.store.parts import ATTRIBUTES, ATTRIBUTES_TEXT, parts_of
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.gate.store.shard import SUFFIX
from pytest_instrcount.gate.store.textfile import read_text, room_at, unreadable
from pytest_instrcount.gate.store.updating import updating

#: Names of folders and of the file, from the folder of the baselines down; none is "" or "..".
Place: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One baseline or table of calls, and where it was found."""

    path: Path
    #: environment first
    place: Place
    content: Baseline | CallTable

    @property
    def nodeid(self) -> str:
        """The test's id."""
        return self.content.nodeid


def read_folder(root: Path) -> Iterator[StoredFile]:
    """All baselines and tables of calls below a folder, of all environments, by path.

    What ends in no ``.json`` is passed over. Raises InstrcountError as `load_baseline` and
    `parse_calls`; "baseline-mismatch" for a file that is not where its test's belongs, or has no name of
    a test's, and "baseline-unreadable" for a symbolic link.
    """
    for _, found in read_each(root):
        if isinstance(found, InstrcountError):
            raise found
        yield found


def read_each(root: Path) -> Iterator[tuple[Path, StoredFile | InstrcountError]]:
    """As `read_folder`, with the error in the place of each file that has one, and its path.

    Raises InstrcountError "baseline-unreadable" for a folder.
    """
    for path in _files(root):
        try:
            _refuse_link(path)
            found = _read_file(path, root) if path.name.endswith(".json") else None
        except InstrcountError as error:
            yield path, error
        else:
            if found is not None:
                yield path, found


def _read_file(path: Path, root: Path) -> StoredFile | None:
    if not is_file_name(path.name):
        raise _elsewhere(path, root, "no baseline of a test, and so does not belong")
    if path.name.endswith(CALLS_SUFFIX):
        text = read_text(path)
        content: Baseline | CallTable | None = None if text is None else parse_calls(text, path)
    else:
        content = load_baseline(path)
    return None if content is None else StoredFile(path, _place(path, root, content), content)


def shard_files(root: Path) -> list[tuple[Path, str]]:
    """Files of shards right below the environments of a folder, with the environment."""
    found = []
    for path in _files(root):
        _refuse_link(path)
        found += [path] if path.name.endswith(SUFFIX) else []
    return [(path, path.parent.name) for path in found if path.parent.parent == root]


def _files(root: Path) -> Iterator[Path]:
    """All files, and all links."""

    def fail(error: OSError) -> None:
        raise unreadable(root, error)

    for folder, folders, files in os.walk(root, onerror=fail):
        folders.sort()
        links = [name for name in folders if Path(folder, name).is_symlink()]
        yield from (Path(folder, name) for name in (*links, *sorted(files)))


def _refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise InstrcountError(
            "baseline-unreadable",
            f"{shown_path(path)} is a symbolic link, and none is followed",
            f"ls -l {shown_path(path)}    # in a folder of baselines it can go",
        )


def _place(path: Path, root: Path, content: Baseline | CallTable) -> Place:
    name = file_name(content.nodeid)
    if isinstance(content, CallTable):
        name = name.removesuffix(".json") + CALLS_SUFFIX
    place = path.relative_to(root).parts
    if place[1:] == (*folder_parts(content.nodeid), name) and place[0] == safe_part(place[0]):
        return place
    what = f"the baseline of {printable(content.nodeid)[:200]}, which belongs elsewhere"
    # beside its own it is a copy, in what is a folder of baselines
    fix = f"rm {shown_path(path)}    # then measure its test again"
    raise _elsewhere(path, root, what, fix if place[1:-1] == folder_parts(content.nodeid) else "")


def _elsewhere(path: Path, root: Path, what: str, fix: str = "") -> InstrcountError:
    """The error for a file in what may be no folder of baselines: without a ``fix`` the command only looks."""
    look = f"ls {shown_path(root)}    # the folder to name has one for each environment, like {own_key()}"
    why = f"{shown_path(path)} is {what} below {shown_path(root)}"
    return InstrcountError("baseline-mismatch", why, fix or look)


def add_baselines(out: Path, contents: Mapping[Place, Baseline | CallTable]) -> None:
    """Write baselines and tables of calls below a folder; as `add_files`."""
    files: dict[Place, bytes] = {}
    if not os.path.lexists(out / ATTRIBUTES):
        files[(ATTRIBUTES,)] = ATTRIBUTES_TEXT.encode()
    for place, content in contents.items():
        if isinstance(content, CallTable):
            files[place] = render_calls(content).encode()
        else:
            parts = parts_of(content, Path(*place))
            files |= {path.parts: data for path, data in parts.items()}
    if contents:
        add_files(out, files)


def add_files(out: Path, files: Mapping[Place, bytes]) -> None:
    """Write these files below a folder, all or none; what is there stays as it is.

    Into a new folder they are made beside it, which is then renamed. Raises InstrcountError "merge-write",
    and "baseline-busy" where others are storing.
    """
    out = Path(os.path.abspath(out))
    try:
        if os.path.lexists(out):
            _add_to(out, files)
        else:
            _make(out, files)
    except OSError as error:
        raise file_error("merge-write", out, error, room_at(out.parent)) from error


def _make(out: Path, files: Mapping[Place, bytes]) -> None:
    temp = out.parent / f".{secrets.token_hex(6)}.instrcount-tmp"
    temp.mkdir(parents=True)
    try:
        for place, data in files.items():
            path = temp.joinpath(*place)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        os.rename(temp, out)
    finally:
        shutil.rmtree(temp, ignore_errors=True)


def _add_to(out: Path, files: Mapping[Place, bytes]) -> None:
    """As an update of baselines: after an error, or a kill, nothing of it is there."""
    try:
        with updating(out) as update:
            update.begin()
            for place, data in files.items():
                path = out.joinpath(*place)
                if os.path.lexists(path):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
                update.add(path, data)
    except InstrcountError as error:
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from None
        raise
