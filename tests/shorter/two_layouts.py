"""Given with -p to a run that looks at something else than noise: two layouts of each test, not four."""

import sys

if "pytest_instrcount.callgrind.inside" not in sys.modules:  # where nothing knows of layouts
    from pytest_instrcount.counts import noise

    noise.OTHER_LAYOUTS = 1
