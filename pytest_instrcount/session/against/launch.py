"""The first lines of the pytest that measures the other commit: imports lead to that one's files.

Run as a script, with its request in a file; of its own package it imports nothing before.
"""

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location


def main() -> int:
    """Become that pytest; returns its exit code."""
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    sys.path[:] = request["sys_path"]
    for module, tables in request["editable"].items():
        for table, content in tables.items():
            getattr(sys.modules[module], table).update(content)
    folder = request["own_package"]
    if folder:
        spec = spec_from_file_location(
            "pytest_instrcount", f"{folder}/__init__.py", submodule_search_locations=[folder]
        )
        assert spec is not None
        assert spec.loader is not None
        sys.modules["pytest_instrcount"] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
    sys.argv[:] = ["pytest", *request["args"]]
    from pytest_instrcount.session.against.other import run_other_side

    return run_other_side(request)


if __name__ == "__main__":
    sys.exit(main())
