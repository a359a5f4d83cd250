"""A first job for CI, which compares a pull request with what it is merged into: it needs no baselines."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from pytest_instrcount.host.git import work_tree

_PLACE = ".github/workflows/instrcount.yml"
_GITHUB = """\
on: pull_request
jobs:
  instrcount:
    runs-on: ubuntu-24.04{where}
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 2        # the merge commit, and both of its parents
      - uses: actions/setup-python@v5
        with:
          python-version: "{python}"
      - run: sudo apt-get update && sudo apt-get install -y valgrind
      - run: pip install -e . pytest-instrcount
      - run: pytest --instrcount-against=HEAD^1    # what the branch is merged into
"""
_GITLAB = """\
instrcount:
  image: python:{python}
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
  script:{where}
    - apt-get update && apt-get install -y valgrind
    - pip install -e . pytest-instrcount
    - git fetch --depth=1 origin $CI_MERGE_REQUEST_DIFF_BASE_SHA
    - pytest --instrcount-against=$CI_MERGE_REQUEST_DIFF_BASE_SHA
"""


def write_first_job(root: Path) -> str:
    """Write a workflow for GitHub for a folder; returns what to say. Raises pytest.UsageError.

    Into the top of the work tree, where alone it is read. In a project of GitLab, whose jobs are all in one
    file, the job is only said.
    """
    python = ".".join(map(str, sys.version_info[:2]))
    root = Path(os.path.realpath(root))
    top = work_tree(root) or root
    below, where = os.path.relpath(root, top), ""
    if (top / ".gitlab-ci.yml").exists():
        if below != ".":
            where = f"\n    - {json.dumps('cd ' + shlex.quote(below))}"
        return f"add to .gitlab-ci.yml:\n\n{_GITLAB.format(python=python, where=where)}"
    if below != ".":
        where = f"\n    defaults:\n      run:\n        working-directory: {json.dumps(below)}"
    path = top / _PLACE
    shown = os.path.relpath(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(_GITHUB.format(python=python, where=where))
    except OSError as error:
        is_there = isinstance(error, FileExistsError)
        why = "is there already" if is_there else f"cannot be written: {error.strerror}"
        raise pytest.UsageError(f"instrcount: {shown} {why} [init]\n  fix: cat {shown}") from None
    return (
        f"wrote {shown}: each pull request is measured beside what it is merged into\n"
        f"next: git add {shown}, and commit\n"
    )
