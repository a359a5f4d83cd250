"""Objects that are named in a trace: whose ``self`` is looked at when a method is entered."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from types import CodeType, FrameType, FunctionType

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.foreign import attribute, class_name
from pytest_instrcount.trace.columns import Parameter, RecognizedObject, Task
from pytest_instrcount.trace.identity import IdentityMap


def no_parameters(self: object) -> tuple[Parameter, ...]:
    """Nothing but the class and the number is wanted."""
    return ()


@dataclass(frozen=True, slots=True)
class Recognizer:
    """Looks at ``self`` whenever ``code`` is entered.

    >>> class Model:
    ...     def fit(self): pass
    >>> Recognizer(Model.fit.__code__).extract(Model())
    ()
    """

    #: of a method: its first argument is the object
    code: CodeType
    #: asked at the first call of each object; what it raises is no parameters
    extract: Callable[[object], tuple[Parameter, ...]] = no_parameters


class Sightings:
    """The objects that one trace has seen."""

    def __init__(self, recognizers: Iterable[Recognizer]) -> None:
        #: by identity: the hash of a code object reads all of it
        self.watched = {id(each.code): each for each in recognizers}
        self._seen: IdentityMap[RecognizedObject] = IdentityMap()
        self._numbers: IdentityMap[int] = IdentityMap()
        self._step: CodeType | None = None
        self._tasks: IdentityMap[Task] = IdentityMap()
        self._task_numbers = count()

    def watch_tasks(self) -> CodeType | None:
        """Watch what runs a step of a task, if asyncio is imported by now; returns its code."""
        handle = getattr(sys.modules.get("asyncio.events"), "Handle", None)
        self._step = getattr(getattr(handle, "_run", None), "__code__", None)
        if self._step is not None:
            self.watched.setdefault(id(self._step), Recognizer(self._step))
        return self._step

    def see(self, frame: FrameType) -> RecognizedObject | None:
        """The object whose method was just entered; made at the first call, then the same."""
        code = frame.f_code
        if not code.co_argcount:
            return None
        one = frame.f_locals.get(code.co_varnames[0])
        if one is None:
            return None
        if code is self._step:
            return self._task_of(one)
        seen = self._seen.get(one)
        if seen is None:
            cls = type(one)
            number = self._numbers.get(cls) or 0
            self._numbers[cls] = number + 1
            try:
                parameters = tuple(self.watched[id(code)].extract(one))
            except Exception:  # an object half made, or one that forbids a look
                parameters = ()
            seen = self._seen[one] = RecognizedObject(class_name(one), number, parameters)
        return seen

    def _task_of(self, handle: object) -> Task | None:
        """The task whose method an event loop calls: in C or not, it is bound to it."""
        one = attribute(attribute(handle, "_callback"), "__self__")
        if attribute(one, "get_coro") is None:
            return None
        seen = self._tasks.get(one)
        if seen is None:
            seen = self._tasks[one] = Task(_task_name(one), next(self._task_numbers))
        return seen


def _task_name(task: object) -> str:
    """As asyncio names it, and the function that it runs."""
    try:
        function = getattr(task.get_coro(), "__qualname__", "")  # type: ignore[attr-defined]
        return f"{task.get_name()} ({function})"  # type: ignore[attr-defined]
    except Exception:  # not one of asyncio's own
        return class_name(task)


def recognize_class(name: str) -> tuple[Recognizer, ...]:
    """Recognise calls of all Python methods of a class, or of one: "pkg.mod.Class[.method]".

    Raises InstrcountError ``trace-recognizer`` if there is no such class, or it has none.

    >>> len(recognize_class("json.JSONDecoder.decode"))
    1
    """
    found = _locate(name)
    if isinstance(found, type):
        made = tuple(
            Recognizer(each.__code__)
            for each in vars(found).values()
            if isinstance(each, FunctionType) and each.__code__.co_argcount
        )
    else:
        code = getattr(found, "__code__", None)
        made = (Recognizer(code),) if isinstance(code, CodeType) else ()
    if not made:
        raise InstrcountError(
            "trace-recognizer",
            f"{name} is no class with methods written in Python",
            f"python -c 'import {name.partition('.')[0]}', then name it as pkg.module.Class",
        )
    return made


def _locate(name: str) -> object:
    parts = name.replace(":", ".").split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ValueError:  # no name of a module
            continue
        except Exception as error:
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            if missing and f"{name}.".startswith(f"{missing}."):
                continue
            raise InstrcountError(
                "trace-recognizer",
                f"{name} cannot be imported: {type(error).__name__}: {error}",
                f"python -c 'import {name.partition('.')[0]}'",
            ) from error
        for part in parts[cut:]:
            found = getattr(found, part, None)
        return found
    return None


def with_builtin(named: Iterable[Recognizer]) -> tuple[Recognizer, ...]:
    """Those of the libraries that are imported by now, and the user's own, which win.

    >>> own = recognize_class("json.JSONDecoder.decode")
    >>> with_builtin(own)[-1:] == own
    True
    """
    return (*torch_recognizers(), *named)


def torch_recognizers() -> tuple[Recognizer, ...]:
    """``torch.nn.Module.__call__`` and ``Optimizer.step``, if torch is imported; it never is by us.

    >>> torch_recognizers() if "torch" not in sys.modules else ()
    ()
    """
    torch = sys.modules.get("torch")
    made = []
    for path, methods, extract in (
        ("nn.Module", ("__call__",), module_parameters),
        # torch's own entry point for profilers; every optimizer's step calls it
        ("optim.Optimizer", ("_optimizer_step_code", "step"), optimizer_parameters),
    ):
        found: object = torch
        for part in path.split("."):
            found = getattr(found, part, None)
        for method in methods:
            code = getattr(getattr(found, method, None), "__code__", None)
            if isinstance(code, CodeType):
                made.append(Recognizer(code, extract))
                break
    return tuple(made)


def module_parameters(self: object) -> tuple[Parameter, ...]:
    """A module's own parameters, without those of the modules in it, and their gradients."""
    own: dict[object, object] = getattr(self, "_parameters", {})
    return tuple(_parameter(str(name), each) for name, each in own.items() if _is_tensor(each))


def optimizer_parameters(self: object) -> tuple[Parameter, ...]:
    """All parameters of all groups, their gradients, and the tensors kept for each."""
    groups: list[dict[str, Iterable[object]]] = getattr(self, "param_groups", [])
    states = getattr(self, "state", {})
    made = []
    for number, group in enumerate(groups):
        for place, each in enumerate(group.get("params", ())):
            if _is_tensor(each):
                kept = states.get(each, {})
                state = tuple(_parameter(str(k), v) for k, v in kept.items() if _is_tensor(v))
                made.append(_parameter(f"{number}.{place}", each, state))
    return tuple(made)


def _is_tensor(value: object) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _parameter(name: str, tensor: object, state: tuple[Parameter, ...] = ()) -> Parameter:
    gradient = getattr(tensor, "grad", None)
    return Parameter(
        name,
        tuple(int(each) for each in tensor.shape),  # type: ignore[attr-defined]
        str(tensor.dtype),  # type: ignore[attr-defined]
        str(getattr(tensor, "device", "")),
        _parameter("grad", gradient) if _is_tensor(gradient) else None,
        state,
    )
