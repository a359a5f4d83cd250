"""What a test put into ``extra_info``, as the JSON report can have it."""

from __future__ import annotations

import math
from typing import Any


def plain_info(value: Any) -> Any:
    """The value in JSON's terms; what JSON has no word for as its ``repr``.

    >>> plain_info({"size": 3, 4: (1.5, float("nan")), "path": {1}})
    {'size': 3, '4': [1.5, None], 'path': '{1}'}
    """
    if isinstance(value, dict):
        return {str(name): plain_info(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_info(each) for each in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return repr(value)
