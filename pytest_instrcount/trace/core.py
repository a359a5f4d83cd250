"""Which of the two cores records: that in C, which not every installation has, or that in Python."""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
from types import ModuleType
from typing import Final

from pytest_instrcount.errors import InstrcountError

#: "python" or "c" in it chooses; else it is C where it was built.
VARIABLE: Final = "PYTEST_INSTRCOUNT_CORE"
_MODULE: Final = "pytest_instrcount.trace._core"


def load_native() -> ModuleType | None:
    """The core in C; None if it is not built, or not wanted.

    Raises InstrcountError ``tracer-backend`` if it is wanted, and not built; and for an unknown name.
    """
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "python", "c"):
        raise InstrcountError(
            "tracer-backend",
            f"{VARIABLE}={wanted}: there is no such core",
            f"{VARIABLE}=c or python",
        )
    if wanted == "python" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None
    try:
        return importlib.import_module(_MODULE)
    except ImportError as error:
        if wanted != "c":
            return None
        raise InstrcountError(
            "tracer-backend",
            f"{VARIABLE}=c, and the tracer's core in C is not here: {error}",
            f"unset {VARIABLE}; or install a C compiler and the headers of Python, then "
            "pip install --force-reinstall --no-binary=pytest-instrcount pytest-instrcount",
        ) from error


def load_core(backend: str) -> ModuleType | None:
    """The core in C if it has this backend: the only one that each version needs.

    >>> load_core("setprofile") is None or sys.version_info < (3, 12)
    True
    """
    # PyEval_SetProfile() is not in the limited API that the core of 3.12 and later is built with
    its_own = "monitoring" if sys.version_info >= (3, 12) else "setprofile"
    return load_native() if backend == its_own else None


def core_name(backend: str) -> str:
    """The core that records with this backend, "c" or "python".

    >>> core_name("setprofile") in ("c", "python")
    True
    """
    return "python" if load_core(backend) is None else "c"
