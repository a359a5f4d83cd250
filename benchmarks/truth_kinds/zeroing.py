"""Memory that is filled."""

import ctypes

try:
    import numpy as np
except ImportError:
    np = None

# bytes: times=3 rounds=5
bytes(2000)
# becomes
bytes(60000)

# bytearray: times=2 rounds=5
bytearray(500)
# becomes
bytearray(5000)

# bytearray_huge: times=1 rounds=0
bytearray(50_000_000)
# becomes
bytearray(60_000_000)

# array: times=9 rounds=5
np.zeros(500)
# becomes
np.zeros(14000)

# bytes_few: times=1 rounds=26
bytes(300)
# becomes
bytes(3000)

# buffer: times=1 rounds=4
ctypes.create_string_buffer(9000)
# becomes
ctypes.create_string_buffer(100)
