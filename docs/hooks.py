"""Every page as Markdown beside its HTML, and ``llms.txt`` with all of them, for readers that are programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

_pages: dict[str, str] = {}
_index: list[str] = []


def on_page_markdown(markdown: str, page: Any, **_: Any) -> None:
    """Keep what the page was made of."""
    _pages[page.file.src_uri] = markdown


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
