"""Environments of processes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

#: That which is set decides, the first of several; Jenkins and Azure Pipelines set no ``CI``.
CI_VARIABLES = ("CI", "BUILD_NUMBER", "TF_BUILD")
_TOX = "TOX_ENV_NAME"
#: Without these a process is outside CI.
OF_CI = (*CI_VARIABLES, _TOX)


def environment_of(process: int | str) -> dict[str, str]:
    """What a process, or ``self``, was started with; nothing where that cannot be read."""
    try:
        pairs = os.fsdecode(Path(f"/proc/{process}/environ").read_bytes()).split("\0")
    except OSError:  # not every process may read it, nor has every system the file
        return {}
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def ci_variable(environ: Mapping[str, str]) -> str:
    """The variable that says that this is a machine of CI; "" if it is none.

    >>> ci_variable({"CI": "true"}), ci_variable({"BUILD_NUMBER": "7"})
    ('CI', 'BUILD_NUMBER')
    >>> ci_variable({"CI": "0", "BUILD_NUMBER": "7"}), ci_variable({})
    ('', '')
    """
    if _TOX in environ:  # it hands few variables on
        environ = {**environment_of(os.getppid()), **environ}
    name = next((each for each in CI_VARIABLES if each in environ), "")
    return name if environ.get(name, "").lower() not in ("", "0", "false") else ""
