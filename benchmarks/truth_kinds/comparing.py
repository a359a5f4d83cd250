"""Comparing what is equal and not identical."""

A, B = "a" * 500 + "x" * 500, "a" * 500 + "x" * 500
C, D = "c" * 9000 + "x", "".join(["c" * 9000, "x"])
E, F = tuple(range(1000, 1050)), tuple(range(1000, 1050))
G, H = tuple(range(1000, 1300)), tuple(range(1000, 1300))
I, J = tuple(range(1000, 1056)), tuple(range(1000, 1056))
P, Q = b"p" * 900 + b"x", b"".join([b"p" * 900, b"x"])
R, S = b"p" * 90_000 + b"x", b"".join([b"p" * 90_000, b"x"])

# equal_strs: times=296 rounds=2
A == B
# becomes
C == D

# tuples: times=13 rounds=2
E == F
# becomes
G == H

# tuples_few: times=1 rounds=11
E == F
# becomes
I == J

# bytes: times=1 rounds=13
P == Q
# becomes
R == S

# prefix: times=60 rounds=3
C.startswith(A)
# becomes
C.startswith(D)
