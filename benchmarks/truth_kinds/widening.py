"""Strings whose characters get wider."""

A, B, C, T = "a" * 1000, "b" * 2000, "c" * 7000, "t" * 100
PARTS, LONGER = ["p" * 300] * 5 + ["€"], ["p" * 900] * 5 + ["€"]
X, Y = ("x" * 300 + "€").encode(), ("x" * 3000 + "€").encode()

# euro: times=53 rounds=0
A + "€"
# becomes
B + "€"

# euro_long: times=24 rounds=0
A + "€"
# becomes
C + "€"

# emoji: times=1 rounds=17
A + "😀"
# becomes
B + "😀"

# join_wide: times=3 rounds=5
"".join(PARTS)
# becomes
"".join(LONGER)

# decode: times=69 rounds=0
X.decode()
# becomes
Y.decode()

# copied_then_widened: times=81 rounds=1
B + T
# becomes
B + "€"
