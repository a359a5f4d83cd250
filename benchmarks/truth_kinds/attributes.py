"""Writing attributes."""

import types

_NAMES = [f"name{number}" for number in range(30)]
FEW, MANY = dict.fromkeys(_NAMES[:5], 1), dict.fromkeys(_NAMES, 1)
_MIXINS = [type(f"Mixin{number}", (), {}) for number in range(12)]
PLAIN, DEEP = type("Plain", (), {})(), type("Deep", tuple(_MIXINS), {})()
PARTS = ["a", "b", "c"]


class WithDict:
    def __init__(self, first, second):
        self.first = first
        self.second = second


class WithSlots:
    __slots__ = ("first", "second")

    def __init__(self, first, second):
        self.first = first
        self.second = second


class WithMore:
    def __init__(self, first, second):
        self.first = self.a = self.b = self.c = self.d = self.e = first
        self.second = self.f = self.g = self.h = self.i = self.j = second


# namespace: times=35 rounds=0
types.SimpleNamespace(**FEW)
# becomes
types.SimpleNamespace(**MANY)

# namespace_few: times=1 rounds=26
types.SimpleNamespace(**FEW)
# becomes
types.SimpleNamespace(**MANY)

# of_deep_class: times=13 rounds=3
for part in PARTS:
    setattr(PLAIN, "at_" + part, 1)
# becomes
for part in PARTS:
    setattr(DEEP, "at_" + part, 1)

# slots: times=61 rounds=0
WithDict(1, 2)
# becomes
WithSlots(1, 2)

# more: times=42 rounds=0
WithDict(1, 2)
# becomes
WithMore(1, 2)
