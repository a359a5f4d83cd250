"""Baselines as files, one for each test, in a folder for each environment.

<root>/<environment key>/<path of the test file>/<slug>-<hash>.json, and its profile beside it
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.baseline_json import (
    CONFLICT,
    LARGEST_FILE,
    OLDER,
    render_baseline,
)
from pytest_instrcount.gate.store.names import (
    CALLS_SUFFIX,
    file_name,
    folder_parts,
    printable,
    remeasure,
    safe_part,
    shown_path,
)
from pytest_instrcount.gate.store.parts import (
    ATTRIBUTES,
    ATTRIBUTES_TEXT,
    PROFILE_SUFFIX,
    join_parts,
    parts_of,
    profile_path,
    profiles_beside,
    summary_path,
)
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.gate.store.summary import parse_summary
from pytest_instrcount.gate.store.textfile import Put, Remove, read_text, unwritable, write_data
from pytest_instrcount.host.files import files_below, replace_file


def read_baseline(path: Path, nodeid: str, *, updating: bool = False) -> Baseline | None:
    """The baseline of one test; None if there is no file.

    Raises InstrcountError as `load_baseline` does, and "baseline-mismatch" if the file is of
    another test (a copied or renamed file). To an update, one of an older format is none, and so is
    one that git could not merge.

    >>> read_baseline(Path("no/such/file.json"), "test_x.py::test_a") is None
    True
    """
    return checked(lambda: load_baseline(path, nodeid), path, nodeid, updating=updating)


def checked(
    load: Callable[[], Baseline | None], path: Path, nodeid: str, *, updating: bool
) -> Baseline | None:
    """What was loaded for a test from ``path``, if it is the test's. As `read_baseline`."""
    try:
        found = load()
    except InstrcountError as error:
        if updating and error.slug in (OLDER, CONFLICT):  # it will be replaced
            return None
        raise
    if found is not None and found.nodeid != nodeid:
        other, this = printable(found.nodeid)[:200], printable(nodeid)[:200]
        raise InstrcountError(
            "baseline-mismatch",
            f"{shown_path(path)} is the baseline of {other}, not of {this}",
            remeasure(path, nodeid),
        )
    return found


def load_baseline(path: Path, nodeid: str = "") -> Baseline | None:
    """The baseline in a file, whichever test it is of; ``nodeid`` is whose it should be, if known.

    Raises InstrcountError: "baseline-damaged" (cut short, no JSON, wrong types, no UTF-8, above
    5 MB), "baseline-conflict" (merge markers), "baseline-newer" (schema of a later release),
    "baseline-unreadable" (no permission, a folder, a device).
    """
    text = read_text(path, nodeid)
    return None if text is None else join_parts(text, path, nodeid)


def write_baseline(
    path: Path, baseline: Baseline, put: Put = replace_file, remove: Remove = Path.unlink
) -> bool:
    """Store a baseline by ``put``, and ``remove`` its older profiles; False if the same was there.

    What is equal is left untouched. A present file that is not a readable baseline of this test is
    never overwritten: raises InstrcountError as `read_baseline` does. Raises "baseline-write" if
    the file cannot be written (read-only, disk full); then no temp file stays.
    """
    known = read_baseline(path, baseline.nodeid, updating=True)
    text = render_baseline(baseline)
    if known is not None and render_baseline(known) == text:
        return False
    if len(text) > LARGEST_FILE:
        why = f"it would have {len(text):,} bytes, {LARGEST_FILE:,} are allowed"
        raise unwritable(path, ValueError(why))
    parts = parts_of(baseline, path)
    older = [each for each in profiles_beside(path) if each not in parts]
    for place, data in parts.items():
        write_data(place, data, put)
    for each in older:
        try:
            remove(each)
        except OSError as error:
            raise unwritable(each, error) from error
    return True


def changed_meanwhile(path: Path) -> InstrcountError:
    """The error for a file that another run has stored since this one read it."""
    return InstrcountError(
        "baseline-changed",
        f"{shown_path(path)} was stored by somebody else while this run measured; "
        "this run has stored nothing",
        "pytest --instrcount    # compares with what is there now",
    )


@dataclass(frozen=True, slots=True)
class Store:
    """The baselines of one environment. Creating it touches nothing on disk."""

    #: the baseline folder, all environments
    root: Path
    #: as `env_key` makes it
    env_key: str

    @property
    def folder(self) -> Path:
        """The folder of this environment's baselines."""
        return self.root / safe_part(self.env_key)

    def path(self, nodeid: str) -> Path:
        """The path of a test's baseline, present or not; inside `folder` for any text.

        >>> str(Store(Path("b"), "cp311-linux-x86_64").path("tests/test_x.py::test_a"))
        'b/cp311-linux-x86_64/tests/test_x/test_a-3d491c41.json'
        """
        return self.folder.joinpath(*folder_parts(nodeid), file_name(nodeid))

    def read(self, nodeid: str, *, updating: bool = False) -> Baseline | None:
        """The baseline of a test; raises InstrcountError as `read_baseline`, and "baseline-link".

        To an update, some are none.
        """
        return read_baseline(self.keep_inside(self.path(nodeid)), nodeid, updating=updating)

    def write(
        self, baseline: Baseline, put: Put = replace_file, remove: Remove = Path.unlink
    ) -> bool:
        """Store a baseline; False if the same was there. Raises as `write_baseline`, and "baseline-link"."""
        return write_baseline(self.keep_inside(self.path(baseline.nodeid)), baseline, put, remove)

    def keep_inside(self, path: Path) -> Path:
        """The path, if no link on it leads out of `root`; `root` itself may be one, it was named.

        Raises InstrcountError "baseline-link": links can be in a pull request, and what they lead to
        is not read, written or deleted in a baseline's place.
        """
        root, there = os.path.realpath(self.root), os.path.realpath(path)
        if there.startswith(root.rstrip(os.sep) + os.sep):
            return path
        below = (path, *path.parents)
        links = [each for each in below if self.root in each.parents and each.is_symlink()]
        link = shown_path(links[-1] if links else path)
        raise InstrcountError(
            "baseline-link",
            f"{link} is a link that leads out of {shown_path(self.root)}",
            f"rm {link}",
        )

    def list(self, known: Collection[Path] = ()) -> Iterator[tuple[Path, str | InstrcountError]]:
        """All baselines of this environment: path and nodeid, in the order of the paths.

        Those in ``known`` are left out, unread.

        A file that cannot be read, or is not where its test's baseline belongs, comes with the
        error in place of the nodeid.
        """
        for folder, folders, files in os.walk(self.folder):
            folders.sort()
            for name in sorted(files):
                if not name.endswith(".json") or name.endswith(CALLS_SUFFIX):
                    continue
                path = Path(folder, name)
                if path in known:
                    continue
                try:
                    text = read_text(self.keep_inside(path))
                    if text is not None:
                        yield path, self._owner(path, parse_summary(text, path).nodeid)
                except InstrcountError as error:
                    yield path, error

    def _owner(self, path: Path, nodeid: str) -> str:
        if path != self.path(nodeid):
            raise InstrcountError(
                "baseline-mismatch",
                f"{shown_path(path)} is the baseline of {printable(nodeid)[:200]}, "
                "which is stored elsewhere",
                f"rm {shown_path(path)}",
            )
        return nodeid

    def other_environments(self, nodeid: str) -> tuple[str, ...]:
        """Keys of the other environments that have a baseline of this test, sorted."""
        place = self.path(nodeid).relative_to(self.folder)
        try:
            keys = sorted(entry.name for entry in self.root.iterdir() if entry.is_dir())
        except OSError:
            return ()
        return tuple(
            key
            for key in keys
            if key != self.folder.name and os.path.isfile(self.root / key / place)
        )

    def mark_profiles(self, put: Put = replace_file) -> None:
        """Tell git that profiles are not for people, unless the folder tells git something already.

        Raises InstrcountError "baseline-write".
        """
        path = self.root / ATTRIBUTES
        if not os.path.lexists(path):
            write_data(path, ATTRIBUTES_TEXT.encode(), put)

    def unnamed_profiles(self) -> Iterator[Path]:
        """Profiles that no summary names, by path: what a merge of two branches leaves."""
        for path in files_below(self.folder, PROFILE_SUFFIX):
            summary = summary_path(path)
            try:
                text = read_text(self.keep_inside(summary))
                named = text is not None and parse_summary(text, summary).lost
            except InstrcountError:
                continue  # whoever measures that test says so
            if not named or path != profile_path(summary, named):
                yield path

    def delete(self, path: Path) -> None:
        """Delete one baseline with its profiles, and the folders below `folder` that this leaves empty.

        A file that is gone already is none the worse. Raises InstrcountError "baseline-write" if
        the file is outside `folder` or cannot be deleted, and "baseline-link".
        """
        folder, path = Path(os.path.abspath(self.folder)), Path(os.path.abspath(path))
        if folder not in path.parents:
            raise unwritable(path, ValueError(f"it is outside {shown_path(folder)}"))
        self.keep_inside(path.parent / "file")  # the entry itself may be a link: that goes
        try:
            for each in (*profiles_beside(path), path):
                each.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(path, error) from error
        for parent in path.parents:
            if parent == folder:
                return
            try:
                parent.rmdir()
            except OSError:  # not empty: the usual end
                return
