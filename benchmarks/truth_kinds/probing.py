"""Looking for a place in dicts and sets, and giving them more."""

NUMBERS, SOME, MORE = range(1000, 1100), range(1000, 1120), range(1000, 1600)
KEY, LONG_KEY = "k" * 300 + "x", "k" * 3000 + "x"
EQUAL, LONG_EQUAL = "".join(["k" * 300, "x"]), "".join(["k" * 3000, "x"])
TABLE = {KEY: 1, LONG_KEY: 2}
KNOWN = {KEY, LONG_KEY}
hash(EQUAL), hash(LONG_EQUAL)
D, E, F = dict.fromkeys(range(20)), dict.fromkeys(range(9, 30)), dict.fromkeys(range(9, 300))

# dict_equal_key: times=159 rounds=3
TABLE[KEY]
# becomes
TABLE[LONG_EQUAL]

# set_equal_key: times=153 rounds=0
KEY in KNOWN
# becomes
LONG_EQUAL in KNOWN

# set_of_numbers: times=2 rounds=2
set(NUMBERS)
# becomes
set(MORE)

# dict_of_numbers: times=1 rounds=7
dict.fromkeys(NUMBERS)
# becomes
dict.fromkeys(SOME)

# intersection: times=2 rounds=5
F.keys() & E.keys()
# becomes
E.keys() & D.keys()
