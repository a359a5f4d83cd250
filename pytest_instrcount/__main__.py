"""``python -m pytest_instrcount``."""

import sys

from pytest_instrcount.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
