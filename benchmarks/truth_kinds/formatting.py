"""Formatting."""

N, F, W = 123456, 3.14159, "word"
FEW, MOST, MANY = list(range(10)), list(range(96)), list(range(100))

# f_string: times=67 rounds=5
f"{W}: {W}"
# becomes
f"{W}: {N:>12,} {W}"

# f_string_few: times=1 rounds=21
f"{W}: {W}"
# becomes
f"{W}: {N:>12,} {W}"

# floats: times=125 rounds=2
f"{F:.3f}"
# becomes
f"{F:.300f}"

# repr: times=13 rounds=4
repr(FEW)
# becomes
repr(MANY)

# repr_less: times=1 rounds=28
repr(MANY)
# becomes
repr(MOST)
