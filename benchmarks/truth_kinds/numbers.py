"""Ints, small and big, and floats."""

import math

SMALL, BIG, LARGER, HUGE = 7**20, 7**200, 7**230, 7**600
INTS, BIG_INTS = list(range(100)), list(range(10**12, 10**12 + 100))
FLOATS, MORE_FLOATS = [each / 7 for each in range(50)], [each / 7 for each in range(300)]

# multiplication: times=16 rounds=2
BIG * BIG
# becomes
HUGE * HUGE

# multiplication_few: times=1 rounds=18
BIG * BIG
# becomes
LARGER * LARGER

# sum_of_ints: times=12 rounds=3
sum(INTS)
# becomes
sum(BIG_INTS)

# power: times=1 rounds=11
pow(3, 50, SMALL)
# becomes
pow(3, BIG, SMALL)

# division: times=2 rounds=11
LARGER // SMALL
# becomes
BIG // SMALL
