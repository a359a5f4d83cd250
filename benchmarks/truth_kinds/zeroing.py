"""Memory that is filled."""

import ctypes

try:
    import numpy as np
except ImportError:
    np = None

# bytes: times=1 rounds=4
bytes(2000)
# becomes
bytes(60000)

# bytearray: times=1 rounds=6
bytearray(500)
# becomes
bytearray(5000)

# bytearray_huge: times=1 rounds=0
bytearray(34_000_000)
# becomes
bytearray(40_800_000)

# array: times=3 rounds=4
np.zeros(500)
# becomes
np.zeros(14000)

# bytes_few: times=1 rounds=58
bytes(300)
# becomes
bytes(3000)

# buffer: times=1 rounds=10
ctypes.create_string_buffer(9000)
# becomes
ctypes.create_string_buffer(100)
