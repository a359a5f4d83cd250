"""What differs between layouts of memory, looked at without Valgrind."""

import subprocess
import sys

#: Imports names as a module does, and prints how far apart two of them lie.
FAR_APART = """
import sys
from pytest_instrcount.callgrind.inside.layout import disturb

body = "\\n".join(f"    self.name_{n} = self.other_{n}" for n in range(3_000))
disturb(int(sys.argv[1]))
exec(f"def use(self):\\n{body}")
names = use.__code__.co_names
print(id(names[5_500]) - id(names[2_500]))
"""
ONE_PLACE = 32_768


def far_apart(layout: int) -> int:
    done = subprocess.run(
        [sys.executable, "-c", FAR_APART, str(layout)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return int(done.stdout)


def test_names_of_an_import_lie_otherwise_in_each_layout() -> None:
    assert len({far_apart(layout) % ONE_PLACE for layout in range(1, 6)}) >= 4
