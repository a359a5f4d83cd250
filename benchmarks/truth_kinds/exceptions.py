"""Exceptions."""

TABLE, ROWS = {"a": 1}, [1, 2, 3]


class Quiet:
    known = 1


QUIET = Quiet()


def raises(depth):
    if depth:
        raises(depth - 1)
    else:
        raise ValueError(depth)


# key_error: times=231 rounds=3
TABLE["a"]
# becomes
try:
    TABLE["b"]
except KeyError:
    pass

# key_error_few: times=1 rounds=26
TABLE["a"]
# becomes
try:
    TABLE["b"]
except KeyError:
    pass

# value_error: times=9 rounds=4
int("123456")
# becomes
try:
    int("12345x")
except ValueError:
    pass

# deeper: times=8 rounds=0
try:
    raises(1)
except ValueError:
    pass
# becomes
try:
    raises(9)
except ValueError:
    pass

# no_attribute: times=1 rounds=5
QUIET.known
# becomes
try:
    QUIET.unknown
except AttributeError:
    pass
