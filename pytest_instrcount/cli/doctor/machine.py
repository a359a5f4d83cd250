"""The machine and the project, looked at one thing after another. Of the project no test is run."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pytest_instrcount import __version__
from pytest_instrcount.callgrind import facts
from pytest_instrcount.callgrind.command import FIXED
from pytest_instrcount.callgrind.interpreter import check_build, own_options, untried_version
from pytest_instrcount.callgrind.requests import MACHINES, load_requests
from pytest_instrcount.cli.doctor.check import Check
from pytest_instrcount.cli.doctor.project import Project
from pytest_instrcount.cli.doctor.symbols import has_symbols, interpreter_file
from pytest_instrcount.cli.doctor.tracer import check_tracer
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.compare import differing_facts
from pytest_instrcount.gate.store.baseline import Store, load_baseline
from pytest_instrcount.gate.store.names import CALLS_SUFFIX, own_key
from pytest_instrcount.gate.store.parts import PROFILE_SUFFIX
from pytest_instrcount.gate.store.textfile import unreadable
from pytest_instrcount.host.files import files_below
from pytest_instrcount.host.git import run_git, work_tree
from pytest_instrcount.host.text import several
from pytest_instrcount.plugin import STARTED_WITH
from pytest_instrcount.session.zygote import LaunchContext, start_zygote

#: Free space in bytes, below which a run is likely to fail, and below which a large one may.
LEAST_FREE, LITTLE_FREE = 100_000_000, 1_000_000_000

_NATIVE = "instrcount_backend = auto runs the tests natively; or use a Linux container"


def check_machine(project: Project) -> Iterator[Check]:
    """All that a measured run needs, in the order in which it needs it."""
    yield check_python()
    yield from (check_pytest(project.plugins), check_tracer(project.config))
    here = check_platform(sys.platform, platform.machine())
    yield here
    if here.state == "fail":
        return
    yield check_proc()
    yield check_page()
    yield from check_valgrind(project)
    yield check_symbols(interpreter_file())
    yield check_scratch(shutil.disk_usage)
    yield check_cores()
    yield check_environment(project.settings.let_through, os.environ)
    yield check_ci(project.settings.ci, missing_fails=project.settings.missing_fails)
    yield from check_baselines(project)


def check_platform(system: str, machine: str) -> Check:
    """Callgrind is used on Linux, on the processors that requests are written for."""
    if system != "linux":
        return Check(
            "platform", "fail", f"Callgrind is used on Linux only, and this is {system}", _NATIVE
        )
    if machine not in MACHINES:
        return Check("platform", "fail", f"no client requests for {machine}", _NATIVE)
    if machine != "x86_64":
        return Check("platform", "warn", f"{system}, {machine}: written for, and untried")
    return Check("platform", "ok", f"{system}, {machine}, {platform.release()}")


def check_python() -> Check:
    """CPython, with a lock around its interpreter."""
    version = f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"
    try:
        check_build()
    except InstrcountError as error:
        return Check("python", "fail", f"{version}: {error.why}", error.fix)
    untried = untried_version()
    if untried:
        return Check("python", "warn", f"{version}: {untried}")
    return Check("python", "ok", version)


#: Plugins that a measured run has to do with, as distributions.
_NEIGHBOURS = """
    pytest-xdist pytest-benchmark pytest-codspeed pytest-cov pytest-randomly pytest-rerunfailures
    pytest-split pytest-timeout
"""


def check_pytest(plugins: Mapping[str, str]) -> Check:
    """pytest, this plugin, and the plugins that a measured run has to do with."""
    found = f"{importlib.metadata.version('pytest')}, pytest-instrcount {__version__}"
    others = [f"{name} {plugins[name]}" for name in _NEIGHBOURS.split() if name in plugins]
    return Check("pytest", "ok", f"{found}; with {', '.join(others) if others else 'no other'}")


def check_proc() -> Check:
    """Valgrind reads /proc."""
    if os.path.isdir("/proc/self/task"):
        return Check("/proc", "ok", "is there")
    return Check(
        "/proc", "fail", "Valgrind reads it, and there is none", "mount -t proc proc /proc"
    )


def check_page() -> Check:
    """Client requests are machine code that is made at run time."""
    try:
        load_requests()
    except InstrcountError as error:
        return Check.failed("code page", error)
    return Check("code page", "ok", "memory can be written and then executed")


def check_valgrind(project: Project) -> Iterator[Check]:
    """It is there, new enough, and runs what a run starts in it."""
    try:
        path, version = facts.find_valgrind(project.settings.valgrind)
    except InstrcountError as error:
        yield Check.failed("valgrind", error)
        return
    yield Check("valgrind", "ok", f"{version}, {path}")
    yield check_start(project, path)


def check_start(project: Project, valgrind: str) -> Check:
    """True if pytest starts under Callgrind: with the plugins and the conftest of the project, as in a run."""
    here = LaunchContext.here(project.config, STARTED_WITH)
    try:
        zygote = start_zygote(project.config, project.settings, valgrind, here, 1)
        try:
            zygote.wait_ready()
        finally:
            zygote.end()
    except InstrcountError as error:
        what, *more = error.why.splitlines()
        return Check("starts", "fail", f"{what} [{error.slug}]", error.fix, tuple(more[-5:]))
    return Check("starts", "ok", "pytest runs under Callgrind, with the plugins of this project")


def check_symbols(program: Path) -> Check:
    """A failure names C functions by the symbols of the interpreter."""
    found = has_symbols(program)
    if found is False:
        return Check(
            "symbols",
            "warn",
            f"{program} is stripped: failures name fewer C functions, max_allocs_delta= is refused",
            f"take a Python of uv or pyenv, or the package python3.{sys.version_info.minor}-dbg",
        )
    return Check("symbols", "ok", f"{program} {'has them' if found else 'is of another format'}")


def check_scratch(disk_usage: Callable[[str], tuple[int, int, int]]) -> Check:
    """A folder for temporary files, with room: that of TMPDIR, which Python passes by if it is of no use."""
    given = os.environ.get("TMPDIR")
    folder = given or tempfile.gettempdir()
    fix = "TMPDIR=/path/to/another/folder pytest --instrcount"
    try:
        with tempfile.TemporaryDirectory(prefix="instrcount-doctor-", dir=folder):
            free = disk_usage(folder)[2]
    except OSError as error:
        return Check("scratch", "fail", f"{'TMPDIR=' * bool(given)}{folder}: {error.strerror}", fix)
    found = f"{folder}, {free // 1_000_000:,} MB free"
    if free < LITTLE_FREE:
        return Check("scratch", "fail" if free < LEAST_FREE else "warn", found, fix)
    return Check("scratch", "ok", found)


def check_cores() -> Check:
    """Check how many tests are measured at a time."""
    number = facts.core_count()
    return Check("cores", "ok", f"{number}: so many tests are measured at a time")


def check_environment(let_through: tuple[str, ...], environment: Mapping[str, str]) -> Check:
    """Of the user's variables tests see a few; some of them must be the same everywhere."""
    if not let_through:
        return Check("environment", "ok", "tests see none of your variables but the usual few")
    names = " ".join(sorted(let_through))
    fixed = [name for name in let_through if name in FIXED]
    if not fixed:
        return Check("environment", "ok", f"instrcount_env lets through {names}")
    told = ", ".join(
        f"{name} (here {environment.get(name, 'not set')!r}, else {FIXED[name]!r})"
        for name in sorted(fixed)
    )
    kept = " ".join(name for name in let_through if name not in FIXED)
    return Check(
        "environment",
        "fail",
        f"instrcount_env lets through what must be the same everywhere, so that counts differ "
        f"between shells and machines: {told}",
        f"in the ini: instrcount_env ={f' {kept}' if kept else ''}",
    )


def check_ci(variable: str, *, missing_fails: bool) -> Check:
    """Report what the variable of CI that is set changes."""
    if not variable:
        return Check("CI", "ok", "CI is not set: a test without a baseline is a note")
    what = "fails" if missing_fails else "is a note, as you have set"
    return Check("CI", "ok", f"{variable} is set: a test without a baseline {what}")


_UPDATE = "pytest --instrcount-update-baseline"


def check_baselines(project: Project) -> Iterator[Check]:
    """Which environments have baselines, and whether those of this one can be compared here."""
    settings = project.settings
    root = settings.baseline_dir
    shown = os.path.relpath(root, project.folder)
    errors: list[OSError] = []
    counts: Counter[str] = Counter()
    for path in files_below(root, ".json", errors.append):
        key, *rest = path.relative_to(root).parts
        counts[key] += bool(rest) and not path.name.endswith(CALLS_SUFFIX)
    unread = [each for each in errors if not isinstance(each, FileNotFoundError)]
    if unread:
        yield Check.failed("baselines", unreadable(Path(unread[0].filename), unread[0]))
        return
    held = [f"{key} ({number})" for key, number in counts.items() if number]
    here = own_key()
    if not counts.get(here):
        others = f", but {', '.join(held)}" if held else ""
        yield Check("baselines", "warn", f"{shown} has none for {here}{others}", _UPDATE)
        return
    yield from _check_ignored(root, shown, here)
    yield Check("baselines", "ok", f"{shown}: {', '.join(held)}")
    try:
        version = facts.find_valgrind(settings.valgrind)[1]
    except InstrcountError:
        return  # said above
    environment = facts.environment_facts(version, settings.let_through, own_options())
    yield check_comparable(Store(root, here), environment)


def _check_ignored(root: Path, shown: str, key: str) -> Iterator[Check]:
    """What git leaves out: the folder, or the profiles in it."""
    profile = f"{key}/a{PROFILE_SUFFIX}"
    names = {root: (shown, "baselines"), root / profile: (f"{shown}/{profile}", "profiles")}
    for path, (name, what) in names.items():
        if is_ignored(path):
            why = f"git ignores {name}: a clone, and CI, has no {what}"
            yield Check(
                "baselines", "warn", why, f"git check-ignore -v {name}    # says which line"
            )
            return


def is_ignored(path: Path) -> bool:
    """True if git leaves a path out; False where there is no git, or no work tree."""
    tree = work_tree(path.parent)
    if tree is None:
        return False
    try:
        run_git(tree, "check-ignore", "--quiet", os.path.abspath(path))
    except (OSError, ValueError, subprocess.SubprocessError):
        return False
    return True


def check_comparable(store: Store, environment: Mapping[str, str]) -> Check:
    """True if the baselines of this environment were made in one like this."""
    reasons: dict[str, int] = {}
    unreadable: list[str] = []
    same = 0
    for path, owner in store.list():
        if isinstance(owner, InstrcountError):
            unreadable.append(str(owner.why))
            continue
        found = load_baseline(path)
        differences = () if found is None else differing_facts(found.environment, environment)
        same += not differences
        for name, old, new in differences:
            reason = f"{name}: {old} -> {new}"
            reasons[reason] = reasons.get(reason, 0) + 1
    tests = f"{several(same, 'baseline')} can be compared here"
    if unreadable:
        fix = "pytest --instrcount    # says what to type for each"
        return Check(
            "comparable", "fail", f"{len(unreadable)} cannot be read", fix, tuple(unreadable[:3])
        )
    if reasons:
        most = sorted(reasons.items(), key=lambda pair: -pair[1])
        told = tuple(f"{number:>5}  {reason}" for reason, number in most[:5])
        what = f"{tests}; others were made elsewhere, and are incomparable:"
        return Check("comparable", "warn", what, _UPDATE, told)
    return Check("comparable", "ok", tests)
