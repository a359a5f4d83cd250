"""Objects that a trace names, on fakes that look like torch's."""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.check import broken_rules
from pytest_instrcount.trace.columns import Parameter, RecognizedObject
from pytest_instrcount.trace.events.build import build_timeline
from pytest_instrcount.trace.events.profile import profile
from pytest_instrcount.trace.identity import IdentityMap
from pytest_instrcount.trace.recognize import Recognizer, recognize_class, torch_recognizers
from pytest_instrcount.trace.recorder import TraceOptions
from pytest_instrcount.trace.timeline import Recorded
from pytest_instrcount.trace.tracer import Tracer
from tests.unit.tracing import (
    core,  # noqa: F401 (each test with both)
    each_backend,
    each_mode,
    trace,
)


class Tensor:
    def __init__(self, *shape: int, grad: Tensor | None = None) -> None:
        self.shape, self.dtype, self.device, self.grad = shape, "float32", "cpu", grad


class Module:
    def __init__(self, **parameters: object) -> None:
        self._parameters = parameters

    def __call__(self, value: int) -> int:
        return self.forward(value)

    def forward(self, value: int) -> int:
        return value


class Linear(Module):
    pass


class Chain(Module):
    def __init__(self, *modules: Module) -> None:
        super().__init__()
        self.modules = modules

    def forward(self, value: int) -> int:
        for each in self.modules:
            value = each(value)
        return value


class Optimizer:
    def __init__(self, *groups: list[Tensor]) -> None:
        self.param_groups: list[dict[str, list[Tensor]]] = [{"params": each} for each in groups]
        self.state: dict[Tensor, dict[str, object]] = {}

    def _optimizer_step_code(self) -> None:
        pass

    def step(self) -> None:
        self._optimizer_step_code()


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> object:
    fake = SimpleNamespace(
        nn=SimpleNamespace(Module=Module), optim=SimpleNamespace(Optimizer=Optimizer)
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    return fake


def seen(tree: Any) -> list[tuple[str, RecognizedObject]]:
    return [(node.name.rpartition(".")[2], node.object) for node in tree.walk() if node.object]


def lines_here(tree: Any) -> list[str]:
    """Lines of this file's classes: a callback of the collector may run at any point."""
    lines = tree.to_text().replace(f"{__name__}.", "").splitlines()
    ours = ("Module.", "Chain.", "Knot.")
    return [line for line in lines if any(each in line for each in ours) and "lambda" not in line]


def test_without_torch_there_is_nothing_to_recognise(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not imported for it."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert torch_recognizers() == ()
    assert "torch" not in sys.modules
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())
    assert torch_recognizers() == ()


@each_backend
@each_mode
def test_modules_are_numbered_per_class(backend: str, mode: str, torch: object) -> None:
    """In the order of their first calls; the parameters are those of the first call."""
    model, first, second = Module(), Linear(w=Tensor(2, 3, grad=Tensor(2, 3)), b=None), Linear()

    def body() -> None:
        for each in (first, second, model, first):
            each(1)

    tree = trace(body, backend=backend, mode=mode, recognizers=torch_recognizers())
    gradient = Parameter("grad", (2, 3), "float32", "cpu")
    weight = Parameter("w", (2, 3), "float32", "cpu", gradient)
    assert seen(tree) == [
        ("__call__", RecognizedObject("Linear", 0, (weight,))),
        ("__call__", RecognizedObject("Linear", 1)),
        ("__call__", RecognizedObject("Module", 0)),
        ("__call__", RecognizedObject("Linear", 0, (weight,))),
    ]


@each_backend
def test_optimizers_show_their_state(backend: str, torch: object) -> None:
    """Parameters of all groups, and the tensors that are kept for each."""
    one, two = Tensor(4), Tensor(5)
    optimizer = Optimizer([one], [two])
    optimizer.state[one] = {"momentum": Tensor(4), "steps": 3}
    tree = trace(optimizer.step, backend=backend, recognizers=torch_recognizers())
    momentum = Parameter("momentum", (4,), "float32", "cpu")
    assert seen(tree) == [
        (
            "_optimizer_step_code",
            RecognizedObject(
                "Optimizer",
                0,
                (
                    Parameter("0.0", (4,), "float32", "cpu", None, (momentum,)),
                    Parameter("1.0", (5,), "float32", "cpu"),
                ),
            ),
        )
    ]


@each_backend
def test_any_class_can_be_named(backend: str) -> None:
    """With all its methods, or one of them."""
    recognizers = recognize_class(f"{__name__}.Module")
    tree = trace(lambda: Module()(1), backend=backend, recognizers=recognizers)
    assert [name for name, _ in seen(tree)] == ["__init__", "__call__", "forward"]
    recognizers = recognize_class(f"{__name__}.Module.forward")
    tree = trace(lambda: Linear()(1), backend=backend, recognizers=recognizers)
    assert seen(tree) == [("forward", RecognizedObject("Linear", 0))]


def test_profiles_name_torchs_modules(torch: object) -> None:
    """With modules, once torch is imported; and what is named, too."""
    model = Linear()
    for with_modules, modules in ((False, []), (True, ["Linear #0"])):
        with profile(with_modules=with_modules) as prof:
            model(1)
        assert [each.module for each in prof.function_events if each.module] == modules
    with profile(
        with_modules=True, recognizers=recognize_class(f"{__name__}.Module.forward")
    ) as prof:
        model(1)
    events = [each for each in prof.function_events if each.module]
    found = [(each.name.rpartition(".")[2], each.module) for each in events]
    assert found == [
        ("__call__ [Linear #0]", "Linear #0"),
        ("forward [Linear #0]", "Linear #0"),
    ]
    table = prof.key_averages().table(max_name_column_width=120)
    assert "Module.forward [Linear #0]" in table


async def work(n: int) -> None:
    for _ in range(n):
        await asyncio.sleep(0)
        plain()


def plain() -> None:
    pass


async def main() -> None:
    await asyncio.gather(asyncio.create_task(work(1), name="first"), work(2))
    asyncio.get_running_loop().call_soon(plain)
    await asyncio.sleep(0)


@each_backend
def test_steps_of_tasks_are_told(backend: str, tmp_path: Path) -> None:
    """A coroutine's calls stand on the track of its task; what is no task's on the loop's."""
    tree = trace(lambda: asyncio.run(main()), backend=backend, mode="tree")
    timeline = build_timeline(tree.columns, (), Recorded()).by_task()
    assert broken_rules(timeline) == ""
    tracks = [track.name for track in timeline.tracks]
    of_tasks = {"plain": [], "work": []}  # type: dict[str, list[str]]
    for label, track in zip(timeline.label, timeline.track):
        name = timeline.labels[label].name.rpartition(".")[2]
        if name in of_tasks:
            of_tasks[name].append(tracks[track].partition(" ")[0])
    assert tracks[1].endswith("(main)")
    assert tracks[2] == "first (work)"
    other = tracks[3].partition(" ")[0]
    assert sorted(of_tasks["work"]) == sorted(["first"] * 2 + [other] * 3)
    assert sorted(of_tasks["plain"]) == sorted(["first", other, other, "MainThread"])
    assert tree.find("asyncio.events.Handle._run")[0].object is None


@each_backend
def test_without_a_clock_nobody_looks_at_tasks(backend: str) -> None:
    tree = trace(lambda: asyncio.run(main()), backend=backend)
    assert not tree.columns.tasks


@each_backend
def test_a_module_that_is_imported_meanwhile(backend: str) -> None:
    """Steps are told from then on."""
    tracer = Tracer(TraceOptions(mode="tree", backend=backend))  # type: ignore[arg-type]
    events = sys.modules.pop("asyncio.events")
    try:
        tracer.start()
    finally:
        sys.modules["asyncio.events"] = events
    asyncio.run(main())
    assert tracer.watch_tasks()
    asyncio.run(main())
    tasks = tracer.stop().tasks
    assert len({each.number for each in tasks.values()}) == len(set(tasks.values())) >= 3
    assert sum(each.cls == "first (work)" for each in tasks.values()) == 2


def test_torch_is_looked_for_when_a_profile_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when it is made; and again at each start."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    prof = profile(with_modules=True)
    with prof:
        Linear()(1)
    assert not any(each.module for each in prof.function_events)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(nn=SimpleNamespace(Module=Module)))
    with prof:
        Linear()(1)
    assert [each.module for each in prof.function_events if each.module] == ["Linear #0"]


@each_backend
def test_calls_do_not_depend_on_what_is_recognised(backend: str, torch: object) -> None:
    """What looks at an object is no part of the trace."""
    model, optimizer = Chain(Linear(w=Tensor(2))), Optimizer([Tensor(3)])

    def body() -> None:
        for _ in range(3):
            model(1)
            Linear()(1)
            optimizer.step()

    gc.disable()  # its callbacks are called whenever it runs
    try:
        plain = trace(body, backend=backend, c_calls=True)
        looked = trace(body, backend=backend, c_calls=True, recognizers=torch_recognizers())
    finally:
        gc.enable()
    assert looked.call_counts() == plain.call_counts()
    assert not seen(plain)
    assert len(seen(looked)) == 12


@pytest.mark.parametrize("name", ["no.such.Class", "int", "builtins.int", "json.nothing", "", "."])
def test_a_name_of_nothing(name: str) -> None:
    """It is refused, with what to type."""
    with pytest.raises(InstrcountError) as caught:
        recognize_class(name)
    assert caught.value.slug == "trace-recognizer"


@pytest.mark.parametrize(
    ("text", "why"),
    [("import no_such_part", "No module named 'no_such_part'"), ("1 +", "SyntaxError: ")],
)
def test_a_module_that_cannot_be_imported(
    text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own trouble is told, not that there is no such class."""
    (tmp_path / "broken_module.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        InstrcountError, match=r"broken_module.Thing cannot be imported: "
    ) as caught:
        recognize_class("broken_module.Thing")
    assert caught.value.slug == "trace-recognizer"
    assert why in caught.value.why


@each_backend
def test_an_object_that_forbids_a_look(backend: str) -> None:
    """It has a class and a number still."""

    def refuse(self: object) -> tuple[Parameter, ...]:
        raise RuntimeError("not ready")

    recognizer = Recognizer(Module.forward.__code__, refuse)
    tree = trace(lambda: Module()(1), backend=backend, recognizers=(recognizer,))
    assert seen(tree) == [("forward", RecognizedObject("Module", 0))]


@each_backend
def test_a_freed_object_gives_its_id_to_none(backend: str) -> None:
    """The next one may stand at the same place in memory."""

    def body() -> None:
        for _ in range(5):
            Module()(1)

    tree = trace(body, backend=backend, recognizers=recognize_class(f"{__name__}.Module.forward"))
    assert [each.number for _, each in seen(tree)] == [0, 1, 2, 3, 4]


@each_backend
@each_mode
def test_objects_are_told_apart_in_the_text(backend: str, mode: str, torch: object) -> None:
    """A module in a module is no recursion: what each does stands below it."""
    shared = Linear()
    model = Chain(shared, Linear(), Chain(shared))
    recognizers = torch_recognizers()
    tree = trace(lambda: model(model(1)), backend=backend, mode=mode, recognizers=recognizers)
    shown = lines_here(tree)
    depth = len(shown[0]) - len(shown[0].lstrip())
    assert [line[depth:] for line in shown] == [
        "Module.__call__ [Chain #0]  2",
        "  Chain.forward  2",
        "    Module.__call__ [Linear #0]  2",
        "      Module.forward  2",
        "    Module.__call__ [Linear #1]  2",
        "      Module.forward  2",
        "    Module.__call__ [Chain #1]  2",
        "      Chain.forward  2",
        "        Module.__call__ [Linear #0]  2",
        "          Module.forward  2",
    ]
    assert tree.calls("*.Module.__call__") == 10
    once = trace(lambda: model(1), backend=backend, mode=mode, recognizers=recognizers)
    paths = [path.replace(f"{__name__}.", "") for path, _, _ in tree.diff(once)]
    assert len(set(paths)) == 10
    assert paths[0].endswith("Module.__call__ [Chain #0]")


@each_backend
def test_objects_that_call_each_other_end(backend: str) -> None:
    """A call of an object within a call of it counts for the first; many objects share a line."""

    class Knot:
        def __init__(self) -> None:
            self.other: Knot = self

        def go(self, depth: int) -> int:
            return self.hop(depth) if depth else 0

        def hop(self, depth: int) -> int:
            return self.other.go(depth - 1)

    one, two = Knot(), Knot()
    one.other, two.other = two, one
    recognizers = (Recognizer(Knot.go.__code__),)
    tree = trace(lambda: one.go(300), backend=backend, recognizers=recognizers)
    shown = [line.split(".<locals>.")[-1] for line in lines_here(tree)]
    assert shown == [
        "Knot.go [Knot #0]  151",
        "Knot.hop  150",
        "Knot.go [Knot #1]  150",
        "Knot.hop  150",
    ]
    many = [Knot() for _ in range(250)]
    tree = trace(lambda: [each.go(0) for each in many], backend=backend, recognizers=recognizers)
    shown = [line.split(".<locals>.")[-1] for line in lines_here(tree)]
    assert shown[-2:] == ["Knot.go [Knot #99]  1", "Knot.go [Knot #100 and on]  150"]


def test_identity_not_equality() -> None:
    """Objects that say they are equal, or that cannot be hashed, are keys of their own."""
    values: IdentityMap[int] = IdentityMap()
    one, two = Tensor(1), [1]
    values[one], values[two] = 1, 2
    values[one] = 3
    assert (values.get(one), values.get(two), values.get([1]), len(values)) == (3, 2, None, 2)
    del one
    gc.collect()
    assert len(values) == 1
