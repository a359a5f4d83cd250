"""Pickle."""

import marshal
import pickle

FEW, MANY = list(range(20)), list(range(200))
TABLE, LARGE = (
    {f"key{each}": [each, str(each)] for each in range(5)},
    {f"key{each}": [each, str(each)] for each in range(40)},
)
SOME = TABLE | {"key": [1, "2"]}
DUMP, DUMPS = pickle.dumps(TABLE), pickle.dumps(LARGE)

# dumps: times=12 rounds=2
pickle.dumps(FEW)
# becomes
pickle.dumps(MANY)

# dumps_few: times=1 rounds=23
pickle.dumps(TABLE)
# becomes
pickle.dumps(SOME)

# loads: times=4 rounds=3
pickle.loads(DUMP)
# becomes
pickle.loads(DUMPS)

# protocol: times=1 rounds=18
pickle.dumps(MANY)
# becomes
pickle.dumps(MANY, 0)
