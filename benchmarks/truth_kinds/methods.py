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

# visitor: times=10 rounds=2
for kind in _KINDS:
    getattr(TWO, "visit_" + kind)
# becomes
for kind in _KINDS:
    getattr(TWELVE, "visit_" + kind)

# visitor_fewer_calls: times=7 rounds=2
for kind in _KINDS:
    getattr(TWO, "visit_" + kind)
# becomes
for kind in _KINDS:
    getattr(TWELVE, "visit_" + kind)

# visitor_few: times=1 rounds=30
getattr(TWO, "visit_" + _KINDS[0])
# becomes
getattr(TWELVE, "visit_" + _KINDS[0])

# missing: times=27 rounds=0
getattr(TWO, "no" + "pe" * len(_KINDS), None)
# becomes
getattr(TWELVE, "no" + "pe" * len(_KINDS), None)

# long_names: times=52 rounds=0
getattr(TWO, LONG)
# becomes
getattr(TWELVE, LONG)

# cache_lost: times=35 rounds=0
OTHER.value = 1
HELD.plain
HELD.visit_list
HELD.visit_name
# becomes
WRITTEN.value = 1
HELD.plain
HELD.visit_list
HELD.visit_name

# cache_lost_some: times=4 rounds=5
OTHER.value = 1
HELD.plain
HELD.visit_list
HELD.visit_name
# becomes
WRITTEN.value = 1
HELD.plain
HELD.visit_list
HELD.visit_name

# super: times=54 rounds=4
UPPER.call()
# becomes
LOWER.call()
