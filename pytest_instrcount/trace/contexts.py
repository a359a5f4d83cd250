"""The tree with equal calls put together: one line per function and callers, however often called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from pytest_instrcount.trace.columns import Columns, Flag

#: Parents of what nobody called: in the thread that began the trace, and in all others.
MAIN, OTHERS = -1, -2


@dataclass(slots=True)
class Context:
    """All calls of one name, on one object if that is recognised, with the same callers.

    A recursive call counts for the first.

    >>> Context("app.Model.fit", MAIN, False, "Model #0").title
    'app.Model.fit [Model #0]'
    """

    name: str
    #: index of the context it was called in; ``MAIN`` or ``OTHERS``
    parent: int
    #: on the stack before the trace
    started_before: bool
    #: the recognised ``self``, as "Model #0"; "" if there is none
    self_name: str = ""
    #: of a builtin "builtins"
    module: str = ""
    calls: int = 0
    resumes: int = 0
    #: from start to end, of the outermost calls; 0 without a clock
    ns: int = 0
    #: in the order of their first calls
    children: list[int] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The name, and whose method it was."""
        return f"{self.name} [{self.self_name}]" if self.self_name else self.name


@dataclass(frozen=True, slots=True)
class ContextTree:
    """Contexts in the order of their first calls; the index of one is larger than its parent's."""

    nodes: tuple[Context, ...]
    #: roots of the thread that began the trace, and of all others
    main: tuple[int, ...]
    others: tuple[int, ...]

    def path(self, number: int) -> tuple[str, ...]:
        """Titles from the root down; what was on the stack before is left out."""
        names = []
        while number >= 0:
            node = self.nodes[number]
            if not node.started_before:
                names.append(node.title)
            number = node.parent
        if number == OTHERS:
            names.append("(other threads)")
        return tuple(reversed(names))

    def named(self) -> dict[tuple[str, ...], Context]:
        """Path -> context, without what was on the stack before."""
        return {
            self.path(number): node
            for number, node in enumerate(self.nodes)
            if not node.started_before
        }

    def roots(self) -> Iterator[int]:
        """All of them."""
        yield from self.main
        yield from self.others


def merge(columns: Columns) -> ContextTree:
    """Put equal calls together."""
    nodes: list[Context] = []
    roots: dict[int, list[int]] = {MAIN: [], OTHERS: []}
    known: dict[tuple[int, int, bool, str], int] = {}
    keys = columns.keys
    names = [key.name for key in keys]
    places: list[int] = []
    objects = columns.objects
    for row, (key, parent, flags) in enumerate(zip(columns.key, columns.parent, columns.flags)):
        if parent >= 0:
            above = places[parent]
        else:
            thread = columns.threads[columns.thread[row]]
            above = OTHERS if thread.number or thread.greenlet else MAIN
        before = bool(flags & Flag.START_FRAME)
        whose = objects[row].name if row in objects else ""
        place = known.get((above, key, before, whose))
        if place is None:
            place = _find_recursion(nodes, above, names[key], whose) if not before else -1
            if place < 0:
                module = "builtins" if keys[key].kind == "c" else keys[key].module
                made = Context(names[key], above, before, whose, module)
                place = _child(nodes, roots, made)
            known[above, key, before, whose] = place
        places.append(place)
        node = nodes[place]
        node.calls += columns.calls(row)
        node.resumes += columns.resumes(row)
        if node.parent == above:  # else it is within one that is counted already
            node.ns += columns.ns(row)
    return ContextTree(tuple(nodes), tuple(roots[MAIN]), tuple(roots[OTHERS]))


def fold_libraries(tree: ContextTree, is_library: Callable[[Context], bool]) -> ContextTree:
    """The tree without what libraries call of libraries; what they call of the user's is theirs.

    >>> names = "test.f", "json.dumps", "json.encode", "app.default"
    >>> nodes = [Context(each, n - 1, False, "", each[:4], 1) for n, each in enumerate(names)]
    >>> folded = fold_libraries(ContextTree(tuple(nodes), (0,), ()), lambda node: node.module == "json")
    >>> [(node.name, node.parent) for node in folded.nodes]
    [('test.f', -1), ('json.dumps', 0), ('app.default', 1)]
    """
    nodes: list[Context] = []
    roots: dict[int, list[int]] = {MAIN: [], OTHERS: []}
    places: list[int] = []
    library = [not node.started_before and is_library(node) for node in tree.nodes]
    for number, node in enumerate(tree.nodes):
        above = places[node.parent] if node.parent >= 0 else node.parent
        if library[number] and node.parent >= 0 and library[node.parent]:
            places.append(above)
            continue
        bare = replace(node, parent=above, calls=0, resumes=0, ns=0, children=[])
        place = _child(nodes, roots, bare)
        places.append(place)
        nodes[place].calls += node.calls
        nodes[place].resumes += node.resumes
        nodes[place].ns += node.ns
    return ContextTree(tuple(nodes), tuple(roots[MAIN]), tuple(roots[OTHERS]))


def _find_recursion(nodes: list[Context], place: int, name: str, whose: str) -> int:
    """The context of this name that we are in already; -1 if in none.

    What an object does is its own: only objects are looked for beyond the one that we are in.
    """
    while place >= 0:
        node = nodes[place]
        if node.name == name and node.self_name == whose and not node.started_before:
            return place
        if node.self_name and not whose:
            return -1
        place = node.parent
    return -1


def _child(nodes: list[Context], roots: dict[int, list[int]], made: Context) -> int:
    siblings = nodes[made.parent].children if made.parent >= 0 else roots[made.parent]
    for place in siblings:
        node = nodes[place]
        if (node.name, node.self_name) == (made.name, made.self_name) and (
            node.started_before == made.started_before
        ):
            return place
    siblings.append(len(nodes))
    nodes.append(made)
    return len(nodes) - 1
