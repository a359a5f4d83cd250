"""Parsing."""

import ast
import json

ROWS = [{"id": each, "name": f"name {each}", "score": each / 4} for each in range(20)]
FEW, MANY = json.dumps(ROWS[:2]), json.dumps(ROWS)
SOME = json.dumps([*ROWS[:2], 1, 2, "three", {}])
SHORT, LONG = "1234", "1234" * 40
LINE, LINES = "a,b,c", ",".join("abc" * 30)
CODE, LONGER = "a + 1", "[a + 1, b * (c - d), {'e': f(g, h=2)}]"

# json: times=4 rounds=2
json.loads(FEW)
# becomes
json.loads(MANY)

# json_few: times=1 rounds=37
json.loads(FEW)
# becomes
json.loads(SOME)

# ints: times=66 rounds=2
int(SHORT)
# becomes
int(LONG)

# floats: times=11 rounds=4
float("1.5")
# becomes
float("1.2345678901234567890123e-250")

# split: times=1 rounds=11
LINE.split(",")
# becomes
LINES.split(",")

# literals: times=1 rounds=9
ast.parse(CODE)
# becomes
ast.parse(LONGER)
