"""The first lines that run inside Valgrind: an import system whose listings do not matter.

Run as a script with ``-S``, before site: nothing has been listed yet. CPython's path finder lists
each folder of ``sys.path`` and keeps the names; one README more then shapes the heap, and the
counts. The finder below asks for the names it needs instead. Only then is site run, and pytest
imported.
"""

import marshal
import sys

del sys.path[0]  # the folder of this script; what the user had comes back below
del __file__  # multiprocessing would run this script again in each process it spawns: see the end

_zygote = int(sys.argv[2]) if sys.argv[2:] else 0
_gaps = []


def _part_names():
    """Leave gaps of many sizes for the names of what is imported before layouts can be disturbed.

    From CPython 3.13 on, names of the standard library's first modules are made at run time: without
    gaps two of them would share a place in the cache of methods in all layouts, or in none. It is
    done again in ``layout``, which cannot be imported yet, and imports names itself.
    """
    for size in (48, 64, 80):
        made = [None] * 8000
        for number in range(8000):
            made[number] = b"-".ljust(size - sys.getsizeof(b""))
        for step in (2 + _zygote % 4, 7 + _zygote * size // 16 % 90, 97 + _zygote % 7):
            for number in range(0, 8000, step):
                made[number] = None
        _gaps.append(made)


if _zygote > 0:
    _part_names()

from importlib import machinery  # noqa: E402


class StatFinder(machinery.FileFinder):
    """A path finder that asks the file system by name and never lists a folder."""

    def __init__(self, path, *loader_details):
        super().__init__(path, *loader_details)
        self._candidates = tuple(
            (suffix, loader) for loader, suffixes in loader_details for suffix in suffixes
        )

    def find_spec(self, fullname, target=None):
        # Bound here, so that a test that patches os.path cannot reach the import system.
        tail = fullname.rpartition(".")[2]
        base = f"{self.path}/{tail}"
        kind = _file_kind(base)
        if kind == _FOLDER:
            for suffix, loader in self._candidates:
                file = f"{base}/__init__{suffix}"
                if _file_kind(file) == _FILE:
                    return _spec_from_file(
                        fullname,
                        file,
                        loader=loader(fullname, file),
                        submodule_search_locations=[base],
                    )
        for suffix, loader in self._candidates:
            file = base + suffix
            if _file_kind(file) == _FILE:
                loader = SeedingLoader if fullname in _SEEDING else loader
                return _spec_from_file(fullname, file, loader=loader(fullname, file))
        if kind == _FOLDER:
            spec = machinery.ModuleSpec(fullname, None)
            spec.submodule_search_locations = [base]
            return spec
        return None


class NotingLoader(machinery.SourceFileLoader):
    """Loads a module from source and notes when it had to be compiled."""

    compiled = 0

    def source_to_code(self, data, path, *rest, **options):  # 3.15 has a third argument
        NotingLoader.compiled += 1
        code = super().source_to_code(data, path, *rest, **options)
        # As it would be read from a file: else its strings are not interned as those are (3.13).
        return marshal.loads(marshal.dumps(code))

    @staticmethod
    def seed(module):
        """Have a module's own generator give the same random numbers in each process, from the first on."""
        _SEEDING.get(module.__name__, id)(module)


class SeedingLoader(NotingLoader):
    """Loads a module that has a generator of random numbers of its own."""

    def exec_module(self, module):
        super().exec_module(module)
        self.seed(module)


# of Hypothesis a conftest may want an example before any test is there
_SEEDING = {"hypothesis.core": lambda module: setattr(module, "global_force_seed", 0)}
_FILE, _FOLDER, _NOTHING = "file", "folder", "nothing"


def _file_kind(path, _stat=__import__("posix").stat):
    try:
        mode = _stat(path).st_mode & 0o170000
    except OSError:
        return _NOTHING
    return _FOLDER if mode == 0o040000 else _FILE


def _install_finder():
    from importlib.util import spec_from_file_location

    global _spec_from_file
    _spec_from_file = spec_from_file_location
    details = (
        (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
        (NotingLoader, machinery.SOURCE_SUFFIXES),
        (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
    )
    listing = machinery.FileFinder.path_hook(*details).__qualname__.split(".")[0]
    sys.path_hooks[:] = [
        hook
        for hook in sys.path_hooks
        if getattr(hook, "__qualname__", "").split(".")[0] != listing
    ]
    sys.path_hooks.append(StatFinder.path_hook(*details))
    sys.path_importer_cache.clear()


_install_finder()

import os  # noqa: E402
import site  # noqa: E402

with open(sys.argv[1].rpartition("/")[0] + "/site", "rb") as _file:
    _listed = marshal.load(_file)


class _SitesOs:
    """The module ``os`` as site sees it: a folder has nothing in it but what site looks for."""

    @staticmethod
    def listdir(folder):
        return _listed[folder] if folder in _listed else os.listdir(folder)

    def __getattr__(self, name):
        return getattr(os, name)


site.os = _SitesOs()
site.main()
site.os = os

import json  # noqa: E402

with open(sys.argv[1], encoding="utf-8") as _file:
    _plan = json.load(_file)
if _plan["pythonpath"]:
    os.environ["PYTHONPATH"] = _plan["pythonpath"]
sys.dont_write_bytecode = _plan["dont_write_bytecode"]
sys.path[:] = _plan["sys_path"]


def _use_plugin_in(folder):
    """Take this plugin from its own folder, wherever ``sys.path`` would lead."""
    from importlib.util import module_from_spec

    spec = _spec_from_file(
        "pytest_instrcount", f"{folder}/__init__.py", submodule_search_locations=[folder]
    )
    sys.modules["pytest_instrcount"] = module = module_from_spec(spec)
    spec.loader.exec_module(module)


for _module, _tables in _plan.get("editable", {}).items():
    for _table, _content in _tables.items():
        getattr(sys.modules[_module], _table).update(_content)
if _plan.get("own_package"):
    _use_plugin_in(_plan["own_package"])


_plan["zygote"] = _zygote
if _zygote > 0:
    from pytest_instrcount.callgrind.inside.layout import disturb

    disturb(_zygote)  # what is imported from here on lies elsewhere


def _say_what_is_installed(plugins, index, folders):
    """Have ``importlib.metadata`` list no folder, and pytest read of nothing but its plugins.

    The pytest outside has listed them already. This process then makes no object for each name in a
    folder, nor for what is installed beside, and no second index of a folder into which somebody writes.
    """
    import pathlib
    from importlib import metadata

    search, all_of = metadata.FastPath.search, metadata.distributions

    def search_in_index(self, prepared):
        if self.root not in folders:
            return search(self, prepared)
        name = prepared.normalized if prepared else ".all"
        try:
            with open(f"{index}/{name}", encoding="utf-8") as file:
                found = json.load(file)
        except FileNotFoundError:
            return []
        return [pathlib.Path(path) for folder, path in found if folder == self.root]

    def distributions(**context):
        caller = sys._getframe(1).f_globals.get("__name__")
        if plugins is not None and caller in ("pluggy._manager", "_pytest.config"):
            return [metadata.PathDistribution(pathlib.Path(each)) for each in plugins]
        return all_of(**context)

    metadata.FastPath.search = search_in_index
    metadata.distributions = distributions


if _plan.get("kind") == "statements":
    sys.argv[:] = [""]
    import pytest_instrcount.callgrind.timer.statement as _inside
else:
    _say_what_is_installed(_plan["plugins"], f"{_plan['scratch']}/installed", {*_plan["sys_path"]})
    sys.argv[:] = ["pytest"]
    import pytest

    import pytest_instrcount.callgrind.inside.main as _inside

    __file__ = f"{pytest.__path__[0]}/__main__.py"  # as of python -m pytest

_inside.main(_plan, NotingLoader)
