"""Copying what is longer, or shorter."""

A, B, T = "a" * 4000, "b" * 8000, "t" * 100
P, Q = b"p" * 3000, b"q" * 4000
FEW, MANY = list(range(400)), list(range(1600))
SHORT, LONG = ["s" * 500] * 8, ["s" * 3000] * 8
D, E = dict.fromkeys(range(50)), dict.fromkeys(range(400))

# concatenation: times=65 rounds=0
A + T
# becomes
B + T

# slice_of_str: times=59 rounds=0
B[1:500]
# becomes
B[1:7000]

# bytes_concatenation: times=11 rounds=12
P + P
# becomes
Q + P

# slice_of_list: times=1 rounds=5
MANY[:400]
# becomes
MANY[:800]

# join: times=30 rounds=0
"".join(SHORT)
# becomes
"".join(LONG)

# dict_copy: times=3 rounds=2
E.copy()
# becomes
D.copy()
