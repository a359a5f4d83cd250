"""A baseline on disk: its summary, and beside it its profile, which is for programs.

The name of a profile has a digest of what is in it: two branches never write the same file, and a profile of
another state is not taken for this one's. It is packed, and unpacks to the text of the whole baseline.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import re
from pathlib import Path

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.baseline_json import (
    LARGEST_FILE,
    damaged,
    parse_baseline,
    render_baseline,
)
from pytest_instrcount.gate.store.ledger import MOST_ENTRIES, Entry
from pytest_instrcount.gate.store.reading import read_bytes, unpack_json
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.gate.store.summary import (
    PROFILE_DIGITS,
    parse_summary,
    summary_text,
    without_profile,
)
from pytest_instrcount.gate.store.textfile import unreadable

#: What the files of profiles end in.
PROFILE_SUFFIX = ".profile.gz"
#: The file that tells git, and who shows its diffs, that profiles are not for people; and its text.
ATTRIBUTES = ".gitattributes"
ATTRIBUTES_TEXT = f"# by pytest-instrcount\n*{PROFILE_SUFFIX} binary linguist-generated\n"


def profile_path(path: Path, profile: str) -> Path:
    """The path of a profile, beside that of the summary.

    >>> str(profile_path(Path("b/test_a-3d491c41.json"), "9f2c6e0a41b7"))
    'b/test_a-3d491c41.9f2c6e0a41b7.profile.gz'
    """
    return path.with_name(f"{path.name.removesuffix('.json')}.{profile}{PROFILE_SUFFIX}")


def profiles_beside(path: Path) -> list[Path]:
    """All profiles of the test whose summary this is: merges of branches can leave several."""
    stem = re.escape(path.name.removesuffix(".json"))
    pattern = re.compile(rf"{stem}\.[0-9a-f]{{{PROFILE_DIGITS}}}{re.escape(PROFILE_SUFFIX)}")
    try:
        names = os.listdir(path.parent)
    except OSError:
        return []
    return [path.with_name(name) for name in sorted(names) if pattern.fullmatch(name)]


def summary_path(profile: Path) -> Path:
    """The path of the summary that a profile lies beside."""
    return profile.with_name(profile.name.removesuffix(PROFILE_SUFFIX).rpartition(".")[0] + ".json")


def parts_of(baseline: Baseline, path: Path) -> dict[Path, bytes]:
    """The files of a baseline whose summary is to be at a path: the profile, if there is one, comes first."""
    if baseline.lost:
        return {path: summary_text(baseline, baseline.lost).encode()}
    text = render_baseline(baseline).encode()
    profile = _digest(text)
    return {
        profile_path(path, profile): gzip.compress(text, mtime=0),
        path: summary_text(baseline, profile).encode(),
    }


def summary_of(baseline: Baseline) -> Baseline:
    """What is read of a baseline whose profile is not there."""
    return without_profile(baseline, _digest(render_baseline(baseline).encode()))


def join_parts(text: str, path: Path, nodeid: str = "") -> Baseline:
    """The baseline with this text of its summary, and with its profile if that is there.

    Raises InstrcountError as `load_baseline` does.
    """
    summary = parse_summary(text, path, nodeid)
    profile = _read_profile(profile_path(path, summary.lost), summary.lost)
    if profile is None:
        return summary
    baseline = parse_baseline(profile, path, nodeid)
    if without_profile(baseline, summary.lost) != summary:
        raise damaged(path, "its numbers are not those of its profile", nodeid)
    return baseline


def ledger_beside(path: Path, nodeid: str) -> tuple[Entry, ...]:
    """The entries of all profiles beside a summary that cannot be read, as where branches conflict."""
    found: dict[Entry, None] = {}
    for each in profiles_beside(path):
        digest = each.name.removesuffix(PROFILE_SUFFIX).rpartition(".")[2]
        with contextlib.suppress(InstrcountError):
            text = _read_profile(each, digest)
            ledger = () if text is None else parse_baseline(text, path, nodeid).ledger
            found |= dict.fromkeys(ledger)
    return tuple(found)[-MOST_ENTRIES:]


def _read_profile(path: Path, digest: str) -> str | None:
    """What a profile unpacks to; None if it is not there, or is another one."""
    try:
        data = unpack_json(read_bytes(path, LARGEST_FILE), LARGEST_FILE)
        text = data.decode()
    except (FileNotFoundError, ValueError):
        return None
    except OSError as error:
        raise unreadable(path, error) from error
    return text if _digest(data) == digest and not path.is_symlink() else None


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:PROFILE_DIGITS]
