"""Builds the tracer's core in C: into a wheel, or for an editable install beside its source.

Without a compiler, without the headers of Python, or with PYTEST_INSTRCOUNT_PURE=1, the wheel is pure.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "pytest_instrcount/trace"


class CoreBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles it; if that fails, the core in Python is used."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and name what was compiled; ``version`` is "standard" or "editable"."""
        name, flags, tag = _kind()
        folder = Path(self.root, FOLDER)
        self._scratch = tempfile.TemporaryDirectory()
        built = Path(self._scratch.name, name)
        is_built = _is_wanted() and _compile(folder / "c", built, flags)
        if version == "editable":
            Path(folder, name).unlink(missing_ok=True)
            if is_built:
                shutil.copy(built, folder)
        elif is_built:
            build_data["force_include"][str(built)] = f"{FOLDER}/{name}"
            build_data["pure_python"] = False
            build_data["tag"] = f"{tag}-linux_x86_64"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Forget what was compiled."""
        self._scratch.cleanup()


def _kind() -> tuple[str, list[str], str]:
    """File name, compiler flags and wheel tag. The limited API of 3.11 has not all that is used."""
    if sys.version_info < (3, 12):
        return f"_core{sysconfig.get_config_var('EXT_SUFFIX')}", [], "cp311-cp311"
    return "_core.abi3.so", ["-DPy_LIMITED_API=0x030C0000"], "cp312-abi3"


def _is_wanted() -> bool:
    return (
        not os.environ.get("PYTEST_INSTRCOUNT_PURE")
        and sysconfig.get_platform() == "linux-x86_64"
        and sys.implementation.name == "cpython"
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
    )


def _compile(sources: Path, target: Path, flags: list[str]) -> bool:
    compiler = shlex.split(os.environ.get("CC", "cc"))
    headers = sysconfig.get_path("include")
    if not shutil.which(compiler[0]) or not Path(headers, "Python.h").exists():
        return False
    command = [*compiler, "-O2", "-shared", "-fPIC", "-fvisibility=hidden", *flags, f"-I{headers}"]
    files = sorted(map(str, sources.glob("*.c")))
    done = subprocess.run([*command, *files, "-o", str(target)], check=False, capture_output=True)
    return done.returncode == 0
