"""The functions of ``os`` as they are: pyfakefs and others put theirs into every module they find.

>>> os.getpid() == __import__("os").getpid()
True
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os as os
else:
    import os as _os

    os = SimpleNamespace(**vars(_os))  # no module, and so not replaced
