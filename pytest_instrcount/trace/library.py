"""Modules that are not the user's: the standard library, and what is installed."""

from __future__ import annotations

import sys
import sysconfig

#: The standard library, and the code that it makes: of named tuples and the like.
_STANDARD = frozenset((*sys.stdlib_module_names, "builtins", "<string>"))


def is_standard(module: str) -> bool:
    """True for a module of the standard library.

    >>> is_standard("json.decoder"), is_standard("shop.cart")
    (True, False)
    """
    return module.partition(".")[0] in _STANDARD


def is_library(module: str) -> bool:
    """True for a module of the standard library, or of an installed package.

    >>> is_library("json.decoder"), is_library("pluggy._hooks"), is_library("shop.cart")
    (True, True, False)
    """
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    paths = sysconfig.get_paths()
    return is_standard(module) or file.startswith((paths["purelib"], paths["platlib"]))
