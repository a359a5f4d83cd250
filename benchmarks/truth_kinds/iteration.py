"""Iterators and generators."""

import itertools

NUMBERS, FIVE = range(200), range(5)
WORDS = ["some", "words"] * 50


def generated(numbers):
    yield from numbers


# generator: times=2 rounds=5
sum(NUMBERS)
# becomes
sum(generated(NUMBERS))

# generator_few: times=1 rounds=38
sum(FIVE)
# becomes
sum(generated(FIVE))

# map: times=19 rounds=2
list(iter(WORDS))
# becomes
list(map(len, WORDS))

# permutations: times=10 rounds=2
list(itertools.permutations(FIVE, 2))
# becomes
list(itertools.permutations(FIVE, 4))

# chain: times=1 rounds=36
list(itertools.chain(FIVE, FIVE))
# becomes
list(itertools.chain(NUMBERS, NUMBERS))
