"""Formatting."""

N, F, W = 123456, 3.14159, "word"
FEW, MOST, MANY = list(range(10)), list(range(96)), list(range(100))

# f_string: times=25 rounds=4
f"{W}: {W}"
# becomes
f"{W}: {N:>12,} {W}"

# f_string_few: times=1 rounds=48
f"{W}: {W}"
# becomes
f"{W}: {N:>12,} {W}"

# floats: times=47 rounds=2
f"{F:.3f}"
# becomes
f"{F:.300f}"

# repr: times=5 rounds=3
repr(FEW)
# becomes
repr(MANY)

# repr_less: times=1 rounds=62
repr(MANY)
# becomes
repr(MOST)
