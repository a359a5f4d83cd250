"""Blocks of pymalloc, and larger ones."""

P = b"p" * 5000
TEN = range(10)
FEW, MANY = [1] * 5, [1] * 80

# forty_or_six_hundred: times=9 rounds=0
kept = [P[each:40] for each in TEN]
# becomes
kept = [P[each:600] for each in TEN]

# forty_or_six_hundred_some: times=2 rounds=5
kept = [P[each:40] for each in TEN]
# becomes
kept = [P[each:600] for each in TEN]

# forty_or_six_hundred_few: times=1 rounds=44
kept = [P[each:40] for each in TEN]
# becomes
kept = [P[each:600] for each in TEN]

# tuples: times=298 rounds=0
tuple(FEW)
# becomes
tuple(MANY)

# pymalloc_again: times=2 rounds=5
kept = [P[each:600] for each in TEN]
# becomes
kept = [P[each:40] for each in TEN]

# large_blocks: times=11 rounds=0
kept = [P[each:700] for each in TEN]
# becomes
kept = [P[each:4900] for each in TEN]
