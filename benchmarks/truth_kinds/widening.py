"""Strings whose characters get wider."""

A, B, C, T = "a" * 1000, "b" * 2000, "c" * 7000, "t" * 100
PARTS, LONGER = ["p" * 300] * 5 + ["€"], ["p" * 900] * 5 + ["€"]
X, Y = ("x" * 300 + "€").encode(), ("x" * 3000 + "€").encode()

# euro: times=131 rounds=0
A + "€"
# becomes
B + "€"

# euro_long: times=59 rounds=0
A + "€"
# becomes
C + "€"

# emoji: times=3 rounds=23
A + "😀"
# becomes
B + "😀"

# join_wide: times=7 rounds=5
"".join(PARTS)
# becomes
"".join(LONGER)

# decode: times=182 rounds=0
X.decode()
# becomes
Y.decode()

# copied_then_widened: times=217 rounds=1
B + T
# becomes
B + "€"
