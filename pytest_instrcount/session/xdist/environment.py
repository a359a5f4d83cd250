"""Describes the environment without pytest-xdist: sent by the controller, restored by a worker."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_instrcount.session.zygote import LaunchContext

#: What xdist puts first on ``sys.path`` and into PYTHONPATH of a worker elsewhere is its folder;
#: there it has put these, and what the user has it copy.
_COPIED_ALWAYS = {"pytest", "_pytest", "__pycache__"}


def describe_context(
    sys_path: Sequence[str], folder: Path, rootdir: Path
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The folder, seen from rootdir, and ``sys.path`` as pairs of an anchor and what follows it."""
    anchors = _anchors(rootdir)
    return os.path.relpath(folder, rootdir), tuple(_anchored(each, anchors) for each in sys_path)


def _anchors(rootdir: Path) -> dict[str, str]:
    """Folders that are elsewhere on another machine; the innermost first."""
    found = {
        "root": str(rootdir),
        "site": sysconfig.get_path("purelib"),
        "stdlib": sysconfig.get_path("stdlib"),
        "prefix": sys.prefix,
        "base": sys.base_prefix,
    }
    return dict(sorted(found.items(), key=lambda pair: -len(pair[1])))


def _anchored(path: str, anchors: Mapping[str, str]) -> tuple[str, str]:
    for name, folder in anchors.items():
        if path == folder or path.startswith(folder.rstrip("/") + "/"):
            return name, path[len(folder) :]
    return "", path


def restore_context(
    told: tuple[str, Sequence[tuple[str, str]]],
    sys_path: Sequence[str],
    rootdir: Path,
    here: Path,
    environment: Mapping[str, str],
) -> LaunchContext:
    """Those of a worker elsewhere, whose own folder is ``here``.

    What the controller imports from is looked for at the same place below rootdir and the
    interpreter; what else this Python imports from follows.
    """
    relative, paths = told
    found = _existing(paths, _anchors(rootdir))
    used = _COPIED_ALWAYS | {rootdir.relative_to(here).parts[0] if here in rootdir.parents else ""}
    if set(os.listdir(here)) <= used:
        sys_path = [path for path in sys_path if path != str(here)]
    server = [path for path in sys_path if path.endswith("/execnet/script")]
    found += [path for path in sys_path if path not in (*found, *server)]
    pythonpath = environment.get("PYTHONPATH", "").removeprefix(f"{here}{os.pathsep}")
    return LaunchContext(
        found,
        Path(os.path.normpath(rootdir / relative)),
        {**environment, "PYTHONPATH": pythonpath},
    )


def _existing(paths: Sequence[tuple[str, str]], anchors: Mapping[str, str]) -> list[str]:
    """The controller's folders, each at the same place below its anchor, as far as they are here."""
    found = (anchors[anchor] + path if anchor else path for anchor, path in paths)
    return [path for path in found if not path or os.path.exists(path) or path.endswith(".zip")]
