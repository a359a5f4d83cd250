"""Finding methods, with the cache of them and without."""

_KINDS = ["list", "name", "call", "tuple", "number"]
_MIXINS = [type(f"Mixin{number}", (), {f"other_{number}": 1}) for number in range(12)]
_VISITS = {f"visit_{kind}": lambda self: None for kind in _KINDS}
_BASE = type("Base", (), _VISITS | {"x" * 120: 1, "plain": lambda self: None})
TWO = type("Two", (*_MIXINS[:2], _BASE), {})()
TWELVE = type("Twelve", (*_MIXINS, _BASE), {})()
LONG = "x" * 120
WRITTEN, OTHER = type("Written", (_BASE,), {"value": 0}), type("Other", (_BASE,), {"value": 0})
HELD = WRITTEN()


class Upper:
    def call(self):
        return 1


class Lower(Upper):
    def call(self):
        return super().call()


LOWER, UPPER = Lower(), Upper()

# visitor: times=26 rounds=2
for kind in _KINDS:
    getattr(TWO, "visit_" + kind)
# becomes
for kind in _KINDS:
    getattr(TWELVE, "visit_" + kind)

# visitor_fewer_calls: times=18 rounds=3
for kind in _KINDS:
    getattr(TWO, "visit_" + kind)
# becomes
for kind in _KINDS:
    getattr(TWELVE, "visit_" + kind)

# visitor_few: times=2 rounds=26
getattr(TWO, "visit_" + _KINDS[0])
# becomes
getattr(TWELVE, "visit_" + _KINDS[0])

# missing: times=68 rounds=0
getattr(TWO, "no" + "pe" * len(_KINDS), None)
# becomes
getattr(TWELVE, "no" + "pe" * len(_KINDS), None)

# long_names: times=130 rounds=0
getattr(TWO, LONG)
# becomes
getattr(TWELVE, LONG)

# cache_lost: times=88 rounds=0
OTHER.value = 1
HELD.plain
HELD.visit_list
HELD.visit_name
# becomes
WRITTEN.value = 1
HELD.plain
HELD.visit_list
HELD.visit_name

# cache_lost_some: times=10 rounds=5
OTHER.value = 1
HELD.plain
HELD.visit_list
HELD.visit_name
# becomes
WRITTEN.value = 1
HELD.plain
HELD.visit_list
HELD.visit_name

# super: times=141 rounds=5
UPPER.call()
# becomes
LOWER.call()
