"""Names of builtin functions and methods: the same from both backends, and without addresses."""

from __future__ import annotations

from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final

from pytest_instrcount.host.foreign import attribute, mro_of, name_of, names_of
from pytest_instrcount.trace.stream import CFunction

_IN_C: Final = (MethodDescriptorType, ClassMethodDescriptorType, BuiltinFunctionType, staticmethod)


class CFunctions:
    """Makes one ``CFunction`` of each C function, once per trace.

    The three rules that make both backends say the same: a ``MethodType`` around a builtin is that
    builtin; ``issubclass`` (``Pattern.match`` has a type of its own); a method has the name of the
    class that defines it, because ``sys.setprofile`` hands out the bound one only.

    >>> functions = CFunctions()
    >>> functions.find(len), functions.find("".find), functions.find(str.find)
    (builtins.len, builtins.str.find, builtins.str.find)
    >>> functions.find(print) is functions.find(print)
    True
    >>> functions.find(lambda: 0)
    """

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], CFunction] = {}
        self._plain: dict[object, CFunction] = {}
        # id of the class of self -> name -> function; two steps, because a tuple is tracked, and
        # ids, because a metaclass may have a hash of its own
        self._methods: dict[int, dict[str, CFunction | None]] = {}
        self._class_methods: dict[int, dict[str, CFunction | None]] = {}
        self._pinned: list[type] = []

    def find(self, called: Any) -> CFunction | None:
        """Describe a call of this object if it is implemented in C."""
        if issubclass(type(called), MethodType):
            called = called.__func__
        kind = type(called)
        if issubclass(kind, BuiltinFunctionType):
            owner = called.__self__
            if owner is None or issubclass(type(owner), ModuleType):
                return self._plain.get(called) or self._add_plain(called)
            table, cls = self._methods, type(owner)
            if issubclass(cls, type):
                table, cls = self._class_methods, owner
            name: str = called.__name__
        elif issubclass(kind, MethodDescriptorType):
            table, cls, name = self._methods, called.__objclass__, called.__name__
        else:
            return None
        try:
            found = table[id(cls)][name]
        except KeyError:
            found = self._add_method(table, cls, name)
        if found is None:
            # several classes define it: ask which of them this one is
            return self._ask(called, cls, name)
        return found

    def find_kept(self, called: Any) -> tuple[CFunction | None, bool, bool]:
        """The same of what is in C; and whether it follows from class and C function, from class and name.

        The class is that of its self.

        The C function does not where it has several names, or none that the class knows; the name does
        not where several classes define it.

        >>> functions = CFunctions()
        >>> functions.find_kept([].append), functions.find_kept(int.mro)
        ((builtins.list.append, True, True), (builtins.int.mro, False, True))
        """
        function = self.find(called)
        owner = attribute(called, "__self__")
        if owner is None or issubclass(type(owner), ModuleType):
            return function, True, True
        of_class = issubclass(type(owner), type)
        cls = owner if of_class else type(owner)
        table = self._class_methods if of_class else self._methods
        names = {
            name
            for each in mro_of(cls)
            for name, descriptor in names_of(each).items()
            if isinstance(descriptor, _IN_C) and _bound(descriptor, called, cls) == called
        }
        by_name = table[id(cls)][called.__name__] is not None
        return function, names == {called.__name__}, by_name

    def _add_plain(self, called: Any) -> CFunction:
        module = called.__module__ or getattr(called.__self__, "__name__", None) or "builtins"
        made = self._plain[called] = self._make(str(module), called.__name__)
        return made

    def _add_method(
        self, table: dict[int, dict[str, CFunction | None]], cls: type, name: str
    ) -> CFunction | None:
        owners = _owners(cls, name)
        made = None
        if len(owners) < 2:
            made = self._method(owners[0] if owners else cls, name)
        self._pinned.append(cls)
        table.setdefault(id(cls), {})[name] = made
        return made

    def _ask(self, called: Any, cls: type, name: str) -> CFunction:
        owners = _owners(cls, name)
        if isinstance(called, MethodDescriptorType):
            return self._method(called.__objclass__, name)
        for owner in owners:
            if _bound(names_of(owner)[name], called, cls) == called:
                return self._method(owner, name)
        return self._method(owners[0], name)

    def _method(self, cls: type, name: str) -> CFunction:
        return self._make(str(attribute(cls, "__module__")), f"{name_of(cls)}.{name}")

    def _make(self, module: str, qualname: str) -> CFunction:
        found = self._made.get((module, qualname))
        if found is None:
            found = self._made[module, qualname] = CFunction(module, qualname)
        return found


def _owners(cls: type, name: str) -> list[type]:
    """Classes of the MRO that define a method in C, the first first."""
    return [each for each in mro_of(cls) if isinstance(names_of(each).get(name), _IN_C)]


def _bound(descriptor: Any, called: Any, cls: type) -> object:
    """What a class has, for the object or class that a builtin is bound to.

    The same C function bound to the same object is equal; no code of the object runs.
    """
    if isinstance(descriptor, BuiltinFunctionType):  # __new__ knows its class
        return descriptor
    owner = called.__self__
    if isinstance(descriptor, (ClassMethodDescriptorType, staticmethod)):
        owner = None
    elif not issubclass(
        type(owner), descriptor.__objclass__
    ):  # bound to the class, by its metaclass
        return None
    bound = descriptor.__get__(owner, cls)
    return bound if isinstance(bound, BuiltinFunctionType) else None
