"""Growing in place."""

import collections
import io

FEW, SOME, MANY = [1] * 100, [1] * 120, [1] * 600
SHORT, LONG = b"s" * 400, b"l" * 3000
A, B = "a" * 300, "b" * 3000

# list: times=7 rounds=2
list(filter(None, FEW))
# becomes
list(filter(None, MANY))

# list_few: times=1 rounds=36
list(filter(None, FEW))
# becomes
list(filter(None, SOME))

# bytearray: times=5 rounds=4
buffer = bytearray()
buffer += SHORT
buffer += SHORT
buffer += SHORT
# becomes
buffer = bytearray()
buffer += LONG
buffer += LONG
buffer += LONG

# str_in_place: times=42 rounds=0
text = ""
text += A
text += A
text += A
# becomes
text = ""
text += B
text += B
text += B

# deque: times=16 rounds=2
collections.deque(FEW)
# becomes
collections.deque(MANY)
