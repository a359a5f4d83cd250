"""Whether this is a machine of CI."""

from __future__ import annotations

import os
from collections.abc import Mapping

#: That which is set decides, the first of several; Jenkins and Azure Pipelines set no ``CI``.
CI_VARIABLES = ("CI", "BUILD_NUMBER", "TF_BUILD")
_TOX = "TOX_ENV_NAME"
#: Without these a process is outside CI.
OF_CI = (*CI_VARIABLES, _TOX)


def ci_variable(environ: Mapping[str, str]) -> str:
    """The variable that says that this is a machine of CI; "" if it is none.

    >>> ci_variable({"CI": "true"}), ci_variable({"BUILD_NUMBER": "7"})
    ('CI', 'BUILD_NUMBER')
    >>> ci_variable({"CI": "0", "BUILD_NUMBER": "7"}), ci_variable({})
    ('', '')
    """
    outer, process = environ, os.getppid()
    while _TOX in outer:  # which hands few variables on, also to a shell that starts pytest
        from pytest_instrcount.host.procfs import environment_of, parent_of  # not at each start

        outer, process = environment_of(process), parent_of(process)
        environ = {**outer, **environ}
    name = next((each for each in CI_VARIABLES if each in environ), "")
    return name if environ.get(name, "").lower() not in ("", "0", "false") else ""
