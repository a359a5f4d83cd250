"""Finds where the packages of a work tree are imported from: only there can two commits differ."""

from __future__ import annotations

import filecmp
import importlib.metadata
import importlib.util
import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from pytest_instrcount.errors import InstrcountError

_BUILD_FILES = ("pyproject.toml", "setup.py", "setup.cfg")
#: Below a folder that is built, where its packages are.
_PLACES = ("", "src/", "lib/", "python/")
#: Names that many projects have, and that others have left in site-packages by mistake.
_NO_PACKAGES = sys.stdlib_module_names | {
    *("__init__", "benchmarks", "conftest", "docs", "examples", "scripts", "setup"),
    *("test", "testing", "tests"),
}


def packages_of(files: Iterable[str]) -> dict[str, str]:
    """Name of each package and module that a project installs -> the folder that is built.

    >>> packages_of(["pyproject.toml", "src/shop/__init__.py", "src/shop/a.py", "tests/__init__.py"])
    {'shop': ''}
    >>> packages_of(["a/setup.py", "a/b.py", "c/d/__init__.py"])
    {'b': 'a/'}
    """
    files = set(files)
    split = [each.rpartition("/") for each in files]
    roots = {folder + slash for folder, slash, name in split if name in _BUILD_FILES}
    places = {f"{root}{place}": root for root in roots for place in _PLACES}
    found: dict[str, str] = {}
    for file in sorted(each for each in files if each.endswith(".py")):
        place, top = _place_of(file)
        if place in places and top.isidentifier() and top not in _NO_PACKAGES:
            found.setdefault(top, places[place])
    return found


def _place_of(file: str) -> tuple[str, str]:
    """The folder, with a slash, that a package or module is imported from, and its name."""
    place, slash, name = file.removesuffix("/__init__.py").removesuffix(".py").rpartition("/")
    return place + slash, name


def check_origins(
    packages: Iterable[str], base: Path, is_heads: Callable[[str], bool], repository: str
) -> None:
    """See that what the project installs is imported from the files of the commit.

    ``base`` is the folder of those; ``is_heads`` knows the user's own. Raises InstrcountError
    "against-installed" for what is imported from where it was installed, "against-finder" for what
    comes from the user's files.
    """
    installed = importlib.metadata.packages_distributions()
    for name in packages:
        for origin in origins(name):
            if _is_below(origin, base):
                break
            if is_heads(str(origin)):
                raise InstrcountError(
                    "against-finder",
                    f"{name} is imported from {origin} wherever the tests are: its editable install "
                    "cannot be moved",
                    "put the folder it is in on pythonpath in the ini file; what has to be compiled, "
                    "build with instrcount_against_build",
                )
            if name in sys.modules or name in installed:
                raise _installed(name, origin, repository)


def check_copies(
    distributions: Iterable[importlib.metadata.Distribution], base: Path, repository: str
) -> None:
    """See that no copy is imported that was installed from the repository, whatever its layout.

    One is known by where pip says it was built, or by the project's name. Raises InstrcountError
    "against-installed".
    """
    imported = {file for _, file in _with_files(sys.modules)}
    for distribution in distributions:
        if not _is_copy(distribution, base, repository):
            continue
        for file in _entrances(distribution.files or ()):
            copy = Path(os.path.abspath(str(distribution.locate_file(file))))
            taken = str(copy) in imported or file.parts[0] not in _NO_PACKAGES
            if taken and _on_path(file) == copy and not _is_below(copy, base):
                name = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
                raise _installed(name, copy, repository)


def check_changed(
    modules: Mapping[str, object], tracked: Collection[str], base: Path, repository: str
) -> None:
    """See that no module is imported from elsewhere whose file the two sides have, and differs.

    Whatever the layout, and however it was installed; ``tracked`` are the files of the commit. Raises
    InstrcountError "against-installed".
    """
    known = set(tracked)
    ends: dict[str, list[str]] = {}
    for each in known:
        ends.setdefault(_end_of(each), []).append(each)
    for name, file in _with_files(modules):
        if name.partition(".")[0] in _NO_PACKAGES or _is_below(Path(file), base):
            continue
        is_package = os.path.basename(file).startswith("__init__.")
        path = name.replace(".", "/") + ("/__init__.py" if is_package else ".py")
        for each in ends.get(_end_of(path), ()):
            if _is_imported_as(each, path, known):
                below = each.removesuffix("__init__.py")
                files = [one for one in known if one.startswith(below)]
                if any(_differ(base / one, Path(repository, one)) for one in files):
                    raise _installed(name, Path(file), repository)


def _with_files(modules: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Names of modules that have a file, and its path: a test may have put anything there."""
    for name, module in list(modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            yield name, file


def _is_imported_as(file: str, path: str, files: Collection[str]) -> bool:
    """True if a file may be the module of a path; what is in a package is imported by another name."""
    place = file.removesuffix(path)
    in_package = place and f"{place}__init__.py" in files
    return f"/{file}".endswith(f"/{path}") and not in_package


def check_path(path: Sequence[str], move: Callable[[str], str]) -> None:
    """See that nothing will be imported from the user's own files later, as within a test.

    Raises InstrcountError "against-finder" for what is imported from ahead of the commit's own.
    """
    for place, entry in enumerate(path):
        moved = move(entry)
        if moved != entry and os.path.isdir(moved) and moved not in path[:place]:
            raise _absolute(f"{entry} is on sys.path")


def _end_of(path: str) -> str:
    """The last parts of a path, by which a module's file is looked up."""
    return "/".join(path.split("/")[-2 if path.endswith("__init__.py") else -1 :])


def _differ(one: Path, other: Path) -> bool:
    try:
        return not filecmp.cmp(one, other, shallow=False)
    except OSError:
        return True


def _on_path(file: PurePosixPath) -> Path | None:
    """Where a file is imported from."""
    return next(filter(Path.exists, (Path(os.path.abspath(each), file) for each in sys.path)), None)


def _is_copy(distribution: importlib.metadata.Distribution, base: Path, repository: str) -> bool:
    """Whether a distribution, not an editable one, was made of the repository's files."""
    try:
        built = json.loads(distribution.read_text("direct_url.json") or "{}")
        if built.get("dir_info", {}).get("editable"):
            return False
        path = Path(os.path.realpath(unquote(urlsplit(built.get("url", "")).path)))
        top = Path(os.path.realpath(repository))
        if "dir_info" in built and top in (path, *path.parents):
            return True
        project = tomllib.loads((base / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        ours, theirs = project["name"], distribution.metadata["Name"]
        return re.sub("[-_.]+", "-", ours.lower()) == re.sub("[-_.]+", "-", theirs.lower())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _entrances(files: Iterable[PurePosixPath]) -> Iterator[PurePosixPath]:
    """Of installed files the packages and modules that are in no other package.

    >>> shown = ["ns/shop/__init__.py", "ns/shop/a.py", "ns/b.py", "c.py", "../../bin/d.py"]
    >>> [str(each) for each in _entrances(map(PurePosixPath, shown))]
    ['ns/shop/__init__.py', 'ns/b.py', 'c.py']
    """
    files = [each for each in files if each.suffix == ".py" and ".." not in each.parts]
    packages = {each.parent for each in files if each.name == "__init__.py"}
    for each in files:
        place = each.parent.parent if each.name == "__init__.py" else each.parent
        if packages.isdisjoint((place, *place.parents)):
            yield each


def _installed(name: str, origin: Path, repository: str) -> InstrcountError:
    return InstrcountError(
        "against-installed",
        f"{name} is imported from {origin}, so the same code would be measured twice",
        f"{shlex.quote(sys.executable)} -m pip install -e {shlex.quote(repository)}",
    )


def check_modules(modules: Mapping[str, object], move: Callable[[str], str]) -> None:
    """See that no module was imported from the user's own files where the commit has a file in its place.

    ``move`` gives the path at the commit. Raises InstrcountError "against-finder".
    """
    for name, file in _with_files(modules):
        if (moved := move(file)) != file and os.path.exists(moved):
            raise _absolute(f"{name} is imported from {file}")


def _absolute(what: str) -> InstrcountError:
    return InstrcountError(
        "against-finder",
        f"{what} wherever the tests are: a conftest or a .pth file names an absolute path, so the same "
        "code would be measured twice",
        "write that path from __file__, or put its folder on pythonpath in the ini file",
    )


def origins(name: str) -> Iterator[Path]:
    """The folders of a package, or the file of a module."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    try:
        spec = spec or importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return
    if spec is None:
        return
    if spec.submodule_search_locations is not None:
        yield from map(Path, spec.submodule_search_locations)
    elif spec.origin is not None:
        yield Path(spec.origin)


def built_in_place(folder: Path, tracked: Collection[str]) -> list[str]:
    """Extension modules beside tracked files that git does not know."""
    known = set(tracked)
    found = []
    for each in sorted({str(PurePosixPath(file).parent) for file in known}):
        try:
            names = sorted(os.listdir(folder / each))
        except OSError:
            continue
        found += [
            path
            for name in names
            if name.endswith(tuple(EXTENSION_SUFFIXES))
            and (path := str(PurePosixPath(each, name))) not in known
        ]
    return found


def built_elsewhere(folder: Path, tracked: Collection[str]) -> Iterator[str]:
    """Extension modules that are imported from below a folder, beside no tracked file, and not installed."""
    beside = {str(PurePosixPath(file).parent) for file in tracked}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.endswith(tuple(EXTENSION_SUFFIXES)):
            path = Path(file)
            if path.is_relative_to(folder) and not path.is_relative_to(sys.prefix):
                name = path.relative_to(folder)
                yield from [str(name)] if str(name.parent) not in beside else []


def _is_below(path: Path, folder: Path) -> bool:
    return folder in path.parents or Path(os.path.realpath(folder)) in path.parents
