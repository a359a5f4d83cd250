"""The classes whose objects a trace tells apart: what the ini names and the hook gives."""

from __future__ import annotations

import pytest

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.options import INI_ERRORS
from pytest_instrcount.trace.recognize import Recognizer, recognize_class


def load_recognizers(config: pytest.Config) -> tuple[Recognizer, ...]:
    """What the ini names and the hook gives; imports the modules of the classes that are named.

    Raises pytest.UsageError with all names that are none.
    """
    found: list[Recognizer] = []
    mistakes: list[str] = []
    try:
        names = config.getini("instrcount_recognizers")
    except INI_ERRORS as error:
        names = []
        mistakes.append(
            f"instrcount_recognizers: {error}\n  fix: instrcount_recognizers = package.module.Class"
        )
    for name in names:
        try:
            found += recognize_class(name)
        except InstrcountError as error:
            mistakes.append(f"instrcount_recognizers: {error.why}\n  fix: {error.fix}")
    for given in config.hook.pytest_instrcount_recognizers(config=config):
        for each in given if isinstance(given, (tuple, list)) else (given,):
            if isinstance(each, Recognizer):
                found.append(each)
            else:
                mistakes.append(
                    f"pytest_instrcount_recognizers gave {each!r}, which is no Recognizer\n"
                    '  fix: return recognize_class("package.module.Class")'
                )
    if mistakes:
        lines = ["instrcount: wrong classes to recognise [trace-recognizer]", *mistakes]
        raise pytest.UsageError("\n".join(lines))
    return tuple(found)
