"""Refactorings that trade one kind of work for another."""

import collections
import pickle
import re

TEXT = "key = value; other = 17; third = a longer value; " * 2
WORDS = TEXT.split() * 3
SOME = WORDS[:3]
NUMBERS = list(range(60))
DUMPED = {"s": [f"x{number}" for number in range(40)]}
FORTY = list(range(40))
TABLE = {word: number for number, word in enumerate(WORDS)}
Named = collections.namedtuple("Named", "first second third")
NAME = re.compile(r"[a-z]+$")


class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def by_attributes(self):
        total = 0
        for number in NUMBERS:
            total += self.x * number + self.y
        return total

    def by_locals(self):
        x, y, total = self.x, self.y, 0
        for number in NUMBERS:
            total += x * number + y
        return total


POINT = Point(3, 4)


def plain(value):
    return value


def starred(*args, **kwargs):
    return plain(*args, **kwargs)


def of_lines(words):
    return [word for word in words if word]


def any_in_a_loop():
    for word in WORDS:
        if word == "missing":
            return True
    return False


# slice_to_startswith: times=1 rounds=15
[word for word in SOME if word[:2] == "ot"]
# becomes
[word for word in SOME if word.startswith("ot")]

# slice_to_startswith_all: times=2 rounds=0
[word for word in WORDS if word[:2] == "ot"]
# becomes
[word for word in WORDS if word.startswith("ot")]

# comprehension_to_loop: times=7 rounds=0
[number + 1 for number in NUMBERS]
# becomes
rows = []
for number in NUMBERS:
    rows.append(number + 1)

# comprehension_to_loop_few: times=1 rounds=26
[number + 1 for number in NUMBERS]
# becomes
rows = []
for number in NUMBERS:
    rows.append(number + 1)

# concatenation_to_join: times=1 rounds=15
text = ""
for word in WORDS:
    text += word
# becomes
text = "".join([word for word in WORDS])

# get_to_try: times=1 rounds=6
for word in WORDS:
    TABLE.get(word, 0)
# becomes
for word in WORDS:
    try:
        TABLE[word]
    except KeyError:
        pass

# get_to_try_missing: times=26 rounds=0
for word in "abc":
    TABLE.get(word, 0)
# becomes
for word in "abc":
    try:
        TABLE[word]
    except KeyError:
        pass

# format_to_f_string: times=1 rounds=0
["{}={}".format(1, word) for word in WORDS]
# becomes
[f"{1}={word}" for word in WORDS]

# tuple_to_namedtuple: times=2 rounds=2
[(number, 1, 2)[0] for number in NUMBERS]
# becomes
[Named(number, 1, 2).first for number in NUMBERS]

# tuple_to_dict: times=1 rounds=2
[(number, 1, 2)[0] for number in NUMBERS]
# becomes
[{"first": number, "second": 1, "third": 2}["first"] for number in NUMBERS]

# loop_to_any: times=4 rounds=3
any_in_a_loop()
# becomes
any(word == "missing" for word in WORDS)

# attributes_to_locals: times=4 rounds=0
POINT.by_attributes()
# becomes
POINT.by_locals()

# attributes_to_locals_few: times=1 rounds=63
POINT.by_attributes()
# becomes
POINT.by_locals()

# regex_to_methods: times=1 rounds=2
[word for word in WORDS if NAME.match(word)]
# becomes
[word for word in WORDS if word.isalpha() and word.islower()]

# regex_to_methods_few: times=1 rounds=72
[word for word in SOME if NAME.match(word)]
# becomes
[word for word in SOME if word.isalpha() and word.islower()]

# two_passes_to_one: times=1 rounds=10
words = [word.upper() for word in WORDS]
words = [word for word in words if word]
# becomes
words = [word.upper() for word in WORDS if word]

# list_to_set: times=3 rounds=0
[word for word in WORDS if word in ["a", "b", "third"]]
# becomes
[word for word in WORDS if word in {"a", "b", "third"}]

# call_to_starred: times=1 rounds=0
[plain(word) for word in WORDS]
# becomes
[starred(word) for word in WORDS]

# call_to_starred_few: times=1 rounds=60
[plain(word) for word in SOME]
# becomes
[starred(word) for word in SOME]

# index_to_enumerate: times=3 rounds=0
[(at, WORDS[at]) for at in range(len(WORDS))]
# becomes
[(at, word) for at, word in enumerate(WORDS)]

# counter_to_dict: times=2 rounds=0
counts = collections.Counter(WORDS)
# becomes
counts = {}
for word in WORDS:
    counts[word] = counts.get(word, 0) + 1

# update_to_merge: times=1 rounds=12
table = dict(TABLE)
table.update(TABLE)
# becomes
table = {**TABLE, **TABLE}

# protocol_for_search: times=12 rounds=2
pickle.dumps(DUMPED, 2)
# becomes
pickle.dumps(DUMPED, 4)
FORTY.index(13)

# search_for_protocol: times=12 rounds=0
pickle.dumps(DUMPED, 4)
FORTY.index(11)
# becomes
pickle.dumps(DUMPED, 2)

# older_protocol: times=12 rounds=4
pickle.dumps(DUMPED, 4)
# becomes
pickle.dumps(DUMPED, 2)
