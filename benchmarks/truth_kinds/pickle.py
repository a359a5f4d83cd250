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

# dumps: times=33 rounds=3
pickle.dumps(FEW)
# becomes
pickle.dumps(MANY)

# dumps_few: times=2 rounds=21
pickle.dumps(TABLE)
# becomes
pickle.dumps(SOME)

# loads: times=12 rounds=4
pickle.loads(DUMP)
# becomes
pickle.loads(DUMPS)

# protocol: times=1 rounds=8
pickle.dumps(MANY)
# becomes
pickle.dumps(MANY, 0)
