"""Which of the two ways to hear of calls is used: chosen once, and named in the result."""

from __future__ import annotations

import sys
import sysconfig

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.core import load_core
from pytest_instrcount.trace.monitoring import Monitoring
from pytest_instrcount.trace.native import NativeMonitoring, NativeSetProfile
from pytest_instrcount.trace.recorder import Recorder
from pytest_instrcount.trace.setprofile import SetProfile


def choose_backend(name: str = "auto", *, native: bool = True) -> type[Recorder]:
    """The backend of this name; "auto" is ``sys.monitoring`` where Python has it (3.12+).

    ``native``: may it be the core in C?

    Raises InstrcountError ``tracer-backend`` if this Python does not have it, and
    ``tracer-free-threaded`` where to trace all threads is not safe.

    >>> choose_backend("setprofile").backend
    'setprofile'
    """
    if sysconfig.get_config_var("Py_GIL_DISABLED") and sys.version_info < (3, 14):
        raise InstrcountError(
            "tracer-free-threaded",
            "the free-threaded Python before 3.14 cannot trace all threads safely",
            "use its build with the GIL, or Python 3.14",
        )
    check_backend(name)
    if name == "setprofile" or (name == "auto" and sys.version_info < (3, 12)):
        return NativeSetProfile if native and load_core("setprofile") else SetProfile
    if sys.version_info < (3, 12):
        raise InstrcountError(
            "tracer-backend",
            f"sys.monitoring is in Python 3.12 and later; this is {sys.version.split()[0]}",
            'backend="auto", or for tests pytest --instrcount-trace-backend=auto',
        )
    return NativeMonitoring if native and load_core("monitoring") else Monitoring


def check_backend(name: object) -> None:
    """Raise InstrcountError ``tracer-backend`` if there is no backend of this name."""
    if name not in ("auto", "monitoring", "setprofile"):
        raise InstrcountError(
            "tracer-backend",
            f"there is no tracer backend {name!r}",
            'backend="auto", "monitoring" or "setprofile"',
        )
