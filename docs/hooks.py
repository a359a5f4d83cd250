"""Every page as Markdown beside its HTML, and ``llms.txt`` with all of them, for readers that are programs."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
import yaml

#: What mkdocstrings replaces by docstrings: a name, and options below it.
_DIRECTIVE = re.compile(r"^::: (\S+)\n((?: +.+\n)*)", re.MULTILINE)

_pages: dict[str, str] = {}
_index: list[str] = []


def on_page_markdown(markdown: str, page: Any, **_: Any) -> None:
    """Keep what the page was made of, with docstrings in the place of names."""
    _pages[page.file.src_uri] = _DIRECTIVE.sub(_documented, f"{markdown}\n")


def _documented(found: re.Match[str]) -> str:
    """The docstring of an object, and of its members that are shown."""
    options = (yaml.safe_load(found[2]) or {}).get("options", {})
    shown = _package()[found[1].removeprefix("pytest_instrcount.")]
    members = options.get("members", ())
    if members is None:
        members = [name for name in shown.members if not name.startswith("_")]
    return "".join(map(_plain, (shown, *(shown.all_members[name] for name in members))))


@functools.cache
def _package() -> Any:
    extensions = griffe.load_extensions(str(Path(__file__).with_name("docstrings.py")))
    return griffe.load(
        "pytest_instrcount", extensions=extensions, resolve_aliases=True, allow_inspection=False
    )


def _plain(shown: Any) -> str:
    head = str(shown.signature()) if shown.is_function else shown.name
    return f"## `{head}`\n\n{shown.docstring.value if shown.docstring else ''}\n\n"


def on_nav(nav: Any, **_: Any) -> None:
    """Keep the order and the sections."""
    _index[:] = _entries(nav.items)


def _entries(items: Any) -> Iterator[str]:
    for item in items:
        if item.is_section:
            yield f"\n## {item.title}\n"
            yield from _entries(item.children)
        else:
            yield f"- [{item.title}]({item.file.src_uri})"


def on_post_build(config: Any) -> None:
    """Write them into the site."""
    site = Path(config["site_dir"])
    for name, markdown in _pages.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(markdown, encoding="utf-8")
    lines = [f"# {config['site_name']}\n", f"> {config['site_description']}\n", *_index]
    (site / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
