"""Sorting."""

INTS, MIXED = list(range(100)), [each * 7919 % 1009 for each in range(100)]
STRS = [f"name {each}" for each in MIXED]
LONG, LESS = MIXED * 3, (MIXED * 3)[:292]
NEARLY = INTS[:90] + INTS[90:][::-1]
PAIRS = [(each % 10, each) for each in MIXED]

# ints: times=18 rounds=0
sorted(INTS)
# becomes
sorted(MIXED)

# ints_few: times=1 rounds=12
sorted(INTS)
# becomes
sorted(NEARLY)

# strs: times=4 rounds=1
sorted(MIXED)
# becomes
sorted(STRS)

# key: times=1 rounds=7
sorted(STRS)
# becomes
sorted(STRS, key=len)

# pairs: times=1 rounds=6
sorted(MIXED)
# becomes
sorted(PAIRS)
