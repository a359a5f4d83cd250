"""Regular expressions."""

import re

WORD, EMAIL = re.compile(r"\w+"), re.compile(r"(\w+)@(\w+)\.com")
SLOW, ANY_CASE = re.compile(r"(?:a|aa)+b"), re.compile(r"lazy", re.IGNORECASE)
TEXT = "the quick brown fox jumps over the lazy dog " * 3
SOME, MORE, LONG = TEXT + "lazy dog ", TEXT + TEXT[:44], TEXT * 4

# findall: times=3 rounds=1
WORD.findall(TEXT)
# becomes
WORD.findall(LONG)

# findall_few: times=1 rounds=56
WORD.findall(TEXT)
# becomes
WORD.findall(SOME)

# backtracking: times=11 rounds=1
SLOW.match("a" * 6)
# becomes
SLOW.match("a" * 9)

# substitution: times=1 rounds=16
WORD.sub("x", TEXT)
# becomes
WORD.sub("x", MORE)

# ignore_case: times=6 rounds=3
ANY_CASE.search(TEXT)
# becomes
ANY_CASE.findall(TEXT)
