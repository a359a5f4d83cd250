"""Keys of one hash, or that begin their search in one place."""

SPREAD, SAME = list(range(1 << 20, (1 << 20) + 40)), [each << 20 for each in range(40)]
FLAT, DEEP = dict.fromkeys(SPREAD), dict.fromkeys(SAME)
APART, TOGETHER = set(SPREAD), set(SAME)
SOME = SPREAD[:34] + SAME[:6]
FIRST, LAST = SPREAD[0], SAME[39]

# set: times=5 rounds=4
set(SPREAD)
# becomes
set(SAME)

# set_few: times=1 rounds=42
set(SPREAD)
# becomes
set(SOME)

# dict: times=6 rounds=0
dict.fromkeys(SPREAD)
# becomes
dict.fromkeys(SAME)

# key: times=301 rounds=0
FLAT[FIRST]
# becomes
DEEP[LAST]

# member: times=13 rounds=5
FIRST in APART
# becomes
LAST in TOGETHER
