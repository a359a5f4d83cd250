"""The code of a statement that is counted: its warm-up, and the loop. Pure."""

from __future__ import annotations

import ast
from types import CodeType

#: What tracebacks have for a file.
STATEMENT = "<stmt>"
#: The statement is written out so often in the loop: its own instructions are then few.
BLOCK = 100


def hidden_name(name: str) -> str:
    """A name that the loop needs, out of the way of the statement's own."""
    return f"__instrcount_{name}__"


def statement_code(
    stmt: str, number: int, warm_up: int, *, ready: str, opened: str, closed: str
) -> CodeType:
    """The warm-up, and then ``number`` times the statement between two calls, in one code object.

    All at the top level of a module, as in torch's Timer: names are globals. The calls are those of
    ``ready`` (after the warm-up), ``opened`` and ``closed``, without arguments. Raises SyntaxError.

    >>> order = []
    >>> calls = {name: lambda name=name: order.append(name) for name in ("ready", "on", "off")}
    >>> code = statement_code("order.append(1)", 3, 2, ready="ready", opened="on", closed="off")
    >>> exec(code, {"order": order, **calls})
    >>> order
    [1, 1, 'ready', 'on', 1, 1, 1, 'off']
    """
    length = len(ast.parse(stmt, STATEMENT).body)
    copies = ast.parse(written_out(stmt, number), STATEMENT).body
    body = [*_loop(warm_up, copies[:length]), _call(ready), _call(opened)]
    copies = copies[length:]
    if number >= 2 * BLOCK:
        body += _loop(number // BLOCK, copies[: BLOCK * length])
        copies = copies[BLOCK * length :]
    body += [*copies, _call(closed)]
    module = ast.fix_missing_locations(ast.Module(body, type_ignores=[]))
    return compile(module, STATEMENT, "exec", dont_inherit=True)


def written_out(stmt: str, number: int) -> str:
    """The statement as often as its code has it: for the warm-up, for a block, for the rest.

    >>> written_out("f()", 250).count("f()")
    151
    """
    copies = BLOCK + number % BLOCK if number >= 2 * BLOCK else number
    return "\n".join([stmt] * (copies + 1))


def _loop(times: int, body: list[ast.stmt]) -> list[ast.stmt]:
    """A loop that uses no name of the statement's, ``range`` included."""
    if not times:
        return []
    target = ast.Name(hidden_name("i"), ast.Store())
    return [ast.For(target, ast.Constant(bytes(times)), body, [])]


def _call(name: str) -> ast.stmt:
    return ast.Expr(ast.Call(ast.Name(name, ast.Load()), [], []))
