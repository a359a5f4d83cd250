"""``python -m pytest_instrcount``."""

import sys

if __name__ == "__main__":
    if sys.argv[1:2] == ["trace"]:
        # what a program imports is to be seen in its trace, so as little as can be is imported before
        from pytest_instrcount.cli.trace import main
    else:
        from pytest_instrcount.cli.main import main
    sys.exit(main())
