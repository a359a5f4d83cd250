"""Requests of plugins for the measuring processes; nothing in them may differ from run to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pytest_instrcount.callgrind.command import CHILD_VARIABLE
from pytest_instrcount.config.options import ISOLATIONS
from pytest_instrcount.errors import InstrcountError

#: Made anew for each run, or for each process.
_OWN_VARIABLES = ("TMPDIR", CHILD_VARIABLE)

#: Options of Valgrind that the reading of its files stands on, and what they begin with.
_OWN_OPTIONS = """
    --tool --command-line-only --vgdb --error-exitcode --quiet --log- --xml --callgrind-out-file
    --instr-atstart --collect- --combine-dumps --compress- --dump- --toggle-collect --zero-before
    --separate- --skip- --trace-children --cache-sim --branch-sim --simulate- --cacheuse
"""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """Changes to the processes under Valgrind.

    Raises InstrcountError "hook-answer" for what cannot be.

    >>> ChildSpec(variables={"APP_MODE": "bench"}).facts()
    {'child': 'APP_MODE=bench'}
    """

    #: names of environment variables that are there as they are outside; values are no facts
    let_through: tuple[str, ...] = ()
    #: variable -> its value there; a fact of the environment, so the same in every run, and no secret
    variables: Mapping[str, str] = field(default_factory=dict)
    #: more options for Valgrind, each ``--name`` or ``--name=value``; facts as well
    valgrind: tuple[str, ...] = ()
    #: "fork" or "process" for tests of which neither marker nor user says; None: the default
    isolation: str | None = None

    def __post_init__(self) -> None:
        for name in ("let_through", "valgrind"):
            if isinstance(getattr(self, name), str):
                raise _wrong(f"{name} is a text, not a tuple of them", f"{name}=('NAME',)")
        for name, value in self.variables.items():
            if not isinstance(name, str) or not isinstance(value, str) or "\0" in name + value:
                raise _wrong(f"the variable {name!r} is no text", 'variables={"NAME": "value"}')
        for name in (*self.let_through, *self.variables):
            _check_name(name)
        for option in self.valgrind:
            _check_option(option)
        if self.isolation not in (None, *ISOLATIONS):
            raise _wrong(f"isolation={self.isolation!r}", f"one of {', '.join(ISOLATIONS)}")

    def facts(self) -> dict[str, str]:
        """The part that two measurements must share; empty if it asks for nothing."""
        words = [f"{name}={value}" for name, value in sorted(self.variables.items())]
        words += self.valgrind
        return {"child": " ".join(words)} if words else {}


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name or "=" in name:
        raise _wrong(f"{name!r} is no name of a variable", "a name like APP_MODE")
    if name in _OWN_VARIABLES:
        raise _wrong(f"{name} is set for each process", "a variable of your own")


def _check_option(option: object) -> None:
    if not isinstance(option, str) or not option.startswith("--"):
        raise _wrong(f"{option!r} is no option", "--name=value, in one text")
    if option.startswith(tuple(_OWN_OPTIONS.split())):
        raise _wrong(f"Valgrind's {option} is not to be changed", "leave it out")


def merge_specs(specs: Iterable[tuple[str, ChildSpec]]) -> ChildSpec:
    """One out of many, each with the name of its plugin, in whatever order they come.

    Raises InstrcountError "hook-answer" where two contradict each other.

    >>> merge_specs([("b", ChildSpec(valgrind=("--b",))), ("a", ChildSpec(valgrind=("--a=1",)))]).valgrind
    ('--a=1', '--b')
    """
    let_through: set[str] = set()
    variables: dict[str, str] = {}
    options: dict[str, str] = {}
    isolation: str | None = None
    said: dict[str, tuple[str, str]] = {}

    def agree(what: str, value: str, plugin: str) -> None:
        known, other = said.setdefault(what, (value, plugin))
        if known != value:
            raise _wrong(
                f"{other} and {plugin} want {what} as {known!r} and as {value!r}",
                f"pytest -p no:{plugin}    # without one of them",
            )

    for plugin, spec in specs:
        let_through.update(spec.let_through)
        for name, value in spec.variables.items():
            agree(name, value, plugin)
            variables[name] = value
        for option in spec.valgrind:
            agree(option.partition("=")[0], option, plugin)
            options[option.partition("=")[0]] = option
        if spec.isolation is not None:
            agree("isolation=", spec.isolation, plugin)
            isolation = spec.isolation
    return ChildSpec(
        tuple(sorted(let_through)),
        dict(sorted(variables.items())),
        tuple(sorted(options.values())),
        isolation,
    )


def _wrong(why: str, fix: str) -> InstrcountError:
    return InstrcountError("hook-answer", why, fix)
