"""Hashing what keeps no hash."""

import zlib

A, B = "a" * 500 + "x" * 500, "b" * 9000 + "x"
E, F = tuple(range(1000, 1010)), tuple(range(1000, 1060))
SMALL, BIG = 10**50, 10**900
P, Q = b"p" * 8000, b"q" * 9000

# long_strs: times=35 rounds=2
hash(B[1:500])
# becomes
hash(B[1:4000])

# long_strs_few: times=1 rounds=40
hash(B[1:500])
# becomes
hash(B[1:1200])

# tuples: times=49 rounds=0
hash(E)
# becomes
hash(F)

# big_ints: times=61 rounds=4
hash(SMALL)
# becomes
hash(BIG)

# crc: times=1 rounds=61
zlib.crc32(Q)
# becomes
zlib.crc32(P)
