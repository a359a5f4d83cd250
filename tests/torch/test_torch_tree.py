"""A training loop as a tree, beside torch's own profiler: ``tox -e torch``."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_instrcount import Parameter, profile
from pytest_instrcount.fixtures.trace.fixture import TraceProfile
from pytest_instrcount.fixtures.trace.settings import TraceWish
from pytest_instrcount.trace.tree import Node, Tree
from tests.unit.tracing import BACKENDS

torch: Any = pytest.importorskip("torch")

STEPS = 2


class Training:
    """Two layers and their optimizer; has made one step, so that torch has imported all it needs."""

    def __init__(self) -> None:
        nn = torch.nn
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1, bias=False))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.data = torch.ones(2, 3)
        self.run(1)

    def run(self, steps: int = STEPS) -> None:
        for _ in range(steps):
            self.optimizer.zero_grad()
            self.model(self.data).sum().backward()
            self.optimizer.step()


@pytest.fixture(params=BACKENDS)
def tree(request: pytest.FixtureRequest) -> Tree:
    """Of two steps, as the trace_profile fixture traces them."""
    training, trace = Training(), TraceProfile(TraceWish(backend=request.param))
    trace(training.run)
    return trace.tree


def theirs(training: Training) -> Any:
    """Two steps under torch's own profiler."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        with_stack=True,
        with_modules=True,
        experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),
    ) as profiler:
        training.run()
    return profiler


def events_of(profiler: Any) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """All events of torch's tree, each with the modules that it ran in."""
    roots = profiler.profiler.kineto_results.experimental_event_tree()
    todo: list[tuple[Any, tuple[str, ...]]] = [(event, ()) for event in reversed(roots)]
    while todo:
        event, modules = todo.pop()
        yield event, modules
        below = (*modules, event.name) if event.name.startswith("nn.Module: ") else modules
        todo.extend((child, below) for child in reversed(event.children))


def modules(tree: Tree) -> Iterator[tuple[Node, str]]:
    """Calls of modules, with torch's name of each."""
    for node in tree.walk():
        if node.object is not None and node.name.startswith("torch.nn."):
            yield node, f"nn.Module: {node.object.cls}_{node.object.number}"


def tensor(name: str, *shape: int, **more: Any) -> Parameter:
    return Parameter(name, shape, "torch.float32", "cpu", **more)


def trained(name: str, *shape: int) -> Parameter:
    """With what backward and a step have left."""
    kept = (tensor("momentum_buffer", *shape),)
    return tensor(name, *shape, gradient=tensor("grad", *shape), state=kept)


def test_modules_and_their_parameters(tree: Tree) -> None:
    """As they are at the first call: zero_grad has taken the gradients away."""
    found = {
        f"{node.object.cls} {node.object.number}": node.object.parameters
        for node, _ in modules(tree)
        if node.object
    }
    assert found == {
        "Sequential 0": (),
        "Linear 0": (tensor("weight", 4, 3), tensor("bias", 4)),
        "ReLU 0": (),
        "Linear 1": (tensor("weight", 1, 4),),
    }


def test_gradients_after_backward() -> None:
    """A trace that begins when there are some shows them."""
    training, trace = Training(), TraceProfile(TraceWish())
    trace(training.model, training.data)
    parameters = [each.object.parameters for each, _ in modules(trace.tree) if each.object]
    assert parameters[1] == (
        tensor("weight", 4, 3, gradient=tensor("grad", 4, 3)),
        tensor("bias", 4, gradient=tensor("grad", 4)),
    )


def test_the_optimizers_step(tree: Tree) -> None:
    """All its parameters, with gradients and momentum; below the call of its step."""
    steps = [node for node in tree.walk() if node.object and node.object.cls == "SGD"]
    assert len(steps) == STEPS
    for node in steps:
        assert node.object
        assert node.object.number == 0
        assert node.object.parameters == (
            trained("0.0", 4, 3),
            trained("0.1", 4),
            trained("0.2", 1, 4),
        )
        assert node.parent
        assert "SGD.step" in {each.key.qualname for each in _below(node.parent)}


def _below(node: Node) -> Iterator[Node]:
    for child in node.children:
        yield child
        yield from _below(child)


def test_the_text(tree: Tree) -> None:
    """Each module has its line, in the module that calls it."""
    lines = [line for line in tree.to_text().splitlines() if "#" in line]
    depth = len(lines[0]) - len(lines[0].lstrip())
    called = "torch.nn.modules.module.Module._wrapped_call_impl"
    assert [line[depth:] for line in lines[:-1]] == [
        f"{called} [Sequential #0]  {STEPS}",
        *(f"      {called} [{name}]  {STEPS}" for name in ("Linear #0", "ReLU #0", "Linear #1")),
    ]
    assert lines[-1].endswith(f"_optimizer_step_code [SGD #0]  {STEPS}")


def test_modules_are_those_of_torchs_profiler(tree: Tree) -> None:
    """The same names, as often, in one another in the same way; the same number of steps."""
    profiler = theirs(Training())
    ours = Counter(name for _, name in modules(tree))
    assert ours == Counter(
        event.name for event in profiler.events() if event.name.startswith("nn.Module: ")
    )
    assert set(ours.values()) == {STEPS}
    events = list(events_of(profiler))
    names = {node.row: name for node, name in modules(tree)}
    stacks = []
    for node, name in modules(tree):
        stack, above = [name], node.parent
        while above is not None:
            stack += [names[above.row]] if above.row in names else []
            above = above.parent
        stacks.append(tuple(reversed(stack)))
    assert stacks == [
        (*around, event.name) for event, around in events if event.name.startswith("nn.Module: ")
    ]
    steps = sum(event.name == "Optimizer.step#SGD.step" for event in profiler.events())
    assert tree.calls("*.Optimizer._optimizer_step_code") == steps == STEPS


def test_parameters_are_those_of_torchs_profiler(tree: Tree) -> None:
    """Shapes, types, devices, gradients and state, of modules and of the optimizer."""
    found: dict[str, list[Any]] = {}
    for event, _ in events_of(theirs(Training())):
        fields = event.extra_fields
        if getattr(fields, "module", None) is not None:
            rows = fields.module.parameters
            found.setdefault(
                event.name, [(name, *_meta(own), _meta(grad)) for name, own, grad in rows]
            )
        if getattr(fields, "optimizer", None) is not None:
            found.setdefault(
                "SGD",
                [
                    (*_meta(own), _meta(grad), [(name, *_meta(kept)) for name, kept in state])
                    for own, grad, state in fields.optimizer.parameters
                ],
            )
    ours: dict[str, list[Any]] = {}
    for node, name in modules(tree):
        assert node.object
        ours[name] = [
            (each.name, *_own(each), _own(each.gradient)) for each in node.object.parameters
        ]
    for node in tree.walk():
        if node.object and node.object.cls == "SGD":
            ours["SGD"] = [
                (*_own(each), _own(each.gradient), [(k.name, *_own(k)) for k in each.state])
                for each in node.object.parameters
            ]
    assert ours == found


def _meta(tensor: Any) -> tuple[Any, ...]:
    return () if tensor is None else (list(tensor.sizes), str(tensor.dtype), str(tensor.device))


def _own(tensor: Parameter | None) -> tuple[Any, ...]:
    return () if tensor is None else (list(tensor.shape), tensor.dtype, tensor.device)


def test_profile_names_modules() -> None:
    """``profile(with_modules=True)`` names them without being told of torch."""
    training = Training()
    with profile(with_modules=True) as prof:
        training.run()
    found = Counter(event.module for event in prof.function_events if event.module)
    names = ("Sequential #0", "Linear #0", "ReLU #0", "Linear #1", "SGD #0")
    assert found == dict.fromkeys(names, STEPS)


def test_counts_are_the_same_twice() -> None:
    """What can be gated: calls do not depend on what is recognised, nor on the run."""
    counts = []
    for _ in range(2):
        trace = TraceProfile(TraceWish(c_calls=True))
        training = Training()
        gc.disable()  # its callbacks are called whenever it runs
        try:
            trace(training.run)
        finally:
            gc.enable()
        counts.append(trace.call_counts())
    assert counts[0] == counts[1]
