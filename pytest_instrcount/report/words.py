"""Numbers and names as text for a terminal: exact numbers in, few columns out."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Context
from fractions import Fraction

from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.store.names import printable

#: The fact of an environment that says what is counted, where it is not ``IR``.
UNIT_FACT = "unit"
#: Instructions read, as Callgrind counts them.
IR = "Ir"

# growth from which a factor is easier to read than a percentage
_HUGE = 10
_LARGEST = 10**6
_SMALLEST_PERCENT = Fraction(1, 10**6)
_CONTEXT = Context(prec=5, rounding=ROUND_HALF_UP, Emax=10**9, Emin=-(10**9))
#: The worst first.
_ORDER = (
    Verdict.regressed,
    Verdict.failed,
    Verdict.nondeterministic,
    Verdict.uncounted,
    Verdict.new,
    Verdict.incomparable,
    Verdict.improved,
    Verdict.stale,
    Verdict.unchanged,
)


def wrapped(text: str, width: int, *, first: str = "", indent: str = "  ") -> list[str]:
    """Text from anywhere in lines of a width: no word is broken, nor a number parted from its sign.

    >>> wrapped("it grew by +2.9 %, detects >= 1 %", 15)
    ['it grew by', '  +2.9 %,', '  detects', '  >= 1 %']
    """
    lines = textwrap.wrap(
        printable(text).replace(" %", "\0%").replace(">= ", ">=\0"),
        width,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in lines]


def count(ir: int | None) -> str:
    """An integer with commas, ``-`` if there is none, and at most 15 characters.

    >>> count(12345), count(None), count(10**15)
    ('12,345', '-', '1.0000e+15')
    """
    if ir is None:
        return "-"
    # not len(f"{ir:,}"): Python refuses to spell integers of thousands of digits
    if abs(ir) < 10**11:
        return f"{ir:,}"
    return f"{_CONTEXT.create_decimal(ir):.4e}"


def quotient(number: Fraction) -> str:
    """A count per call: an integer, or one decimal where it is none.

    >>> quotient(Fraction(12345)), quotient(Fraction(1, 3)), quotient(Fraction(-5, 2))
    ('12,345', '0.3', '-2.5')
    """
    if abs(number) >= 10**6 or number.denominator == 1:
        return count(_rounded(number))
    return _fixed(number, 1)


def percent(fraction: Fraction, *, beyond: Fraction | None = None) -> str:
    """A delta in percent with its sign: one decimal, or two significant digits below 1 %.

    No delta but 0 looks like 0, and growth by 1,000 % or more is the factor that it comes to.
    ``beyond`` is a limit as a fraction: digits are added until the text differs from the limit's, so
    that nobody reads "+1 %, limit +1 %".

    >>> percent(Fraction(289, 10_000)), percent(Fraction(31, 10**6)), percent(Fraction(131))
    ('+2.9 %', '+0.0031 %', 'x132')
    >>> percent(Fraction(1001, 100_000), beyond=Fraction(1, 100))
    '+1.001 %'
    """
    if not fraction:
        return "0 %"
    if fraction >= _HUGE and (beyond is None or beyond < _HUGE):
        return _factor(fraction + 1)
    sign = "+" if fraction > 0 else "-"
    return f"{sign}{_without_sign(abs(fraction * 100), None if beyond is None else beyond * 100)} %"


def _without_sign(size: Fraction, limit: Fraction | None) -> str:
    if size >= _LARGEST or size < _SMALLEST_PERCENT:
        return _in_powers(size)
    decimals = 1
    while size < 1 and size * 10**decimals < 10:
        decimals += 1
    if limit not in (None, size):
        while decimals < 9 and _fixed(size, decimals) == _fixed(limit, decimals):
            decimals += 1
    return _fixed(size, decimals)


def _factor(number: Fraction) -> str:
    if number >= _LARGEST:
        return f"x{_in_powers(number)}"
    return f"x{_fixed(number, 1 if number < 100 else 0)}"


def _in_powers(number: Fraction) -> str:
    """Of ten, with two digits."""
    parts = number.numerator, number.denominator
    return f"{_CONTEXT.divide(*map(_CONTEXT.create_decimal, parts)):.1e}"


def detects(fraction: Fraction | None, *, beyond: Fraction | None = None) -> str:
    """The smallest growth that a test can see; ``-`` where it is not known. ``beyond`` as of `percent`.

    >>> detects(Fraction(1, 5000)), detects(None)
    ('>= 0.02 %', '-')
    """
    return "-" if fraction is None else ">= " + percent(fraction, beyond=beyond).removeprefix("+")


def detects_where(anywhere: Fraction | None, outside: Fraction | None) -> str:
    """The same of growth that layouts may hide, and of growth that they cannot if that is another.

    >>> detects_where(Fraction(42, 10_000), Fraction(1, 10_000))
    'detects growth >= 0.42 %, outside of layout noise >= 0.01 %'
    """
    text = f"detects growth {detects(anywhere)}"
    if anywhere is None or outside is None or anywhere <= 2 * outside:
        return text
    return f"{text}, outside of layout noise {detects(outside)}"


def count_verdicts(verdicts: Iterable[Verdict]) -> str:
    """The number of results for each verdict, in the order of `Verdict`, without zeros.

    >>> count_verdicts([Verdict.new, Verdict.unchanged, Verdict.new])
    '1 unchanged, 2 new'
    """
    found = Counter(verdicts)
    return ", ".join(f"{found[verdict]} {verdict}" for verdict in Verdict if found[verdict])


def _rounded(number: Fraction) -> int:
    """Half away from zero, so that a number and its negative look alike."""
    size = (2 * abs(number) + 1) // 2
    return size if number >= 0 else -size


def _fixed(number: Fraction, decimals: int) -> str:
    """Rounded to so many decimals, trailing zeros cut."""
    scaled = _rounded(number * 10**decimals)
    whole, part = divmod(abs(scaled), 10**decimals)
    digits = f"{part:0{decimals}d}".rstrip("0")
    return ("-" if scaled < 0 else "") + (f"{whole:,}.{digits}" if digits else f"{whole:,}")


def cut_left(name: str, width: int) -> str:
    """A name in at most ``width`` columns: escaped, and shortened from the left.

    >>> cut_left("tests/unit/test_json.py::test_dump", 16)
    '…n.py::test_dump'
    """
    # what is cut away need not be escaped: names can be very long
    text = printable(name[-width:]) if width > 0 else ""
    return (
        text if len(text) <= width and len(name) <= width else "…" + text[len(text) - width + 1 :]
    )


def cut_right(text: str, width: int) -> str:
    """A line in at most ``width`` columns: escaped, and its end cut off.

    >>> cut_right("abcdef", 4)
    'abc…'
    """
    shown = printable(text[: width + 1])
    return shown if len(shown) <= width else shown[: max(0, width - 1)] + "…"


def cut_middle(text: str, width: int) -> str:
    """Printable text in at most ``width`` columns: its beginning and its end.

    >>> cut_middle("test_dump[a-long-parameter]", 16)
    'test_dum…ameter]'
    """
    end = (width - 1) // 2
    return text if len(text) <= width else f"{text[: width - 1 - end]}…{text[-end:]}"


def short_name(nodeid: str) -> str:
    """The test's own name, with its parameters, without file and class; escaped.

    >>> short_name("tests/test_x.py::TestA::test_b[a::b]")
    'test_b[a::b]'
    """
    file, _, test = nodeid.partition("::")
    base, bracket, parameters = (test or file).partition("[")
    return printable(base.rpartition("::")[2] + bracket + parameters)


def worst_first(result: TestResult) -> tuple[int, Fraction, str]:
    """The key to sort by: of one verdict what grew most is first."""
    return _ORDER.index(result.verdict), -(result.delta or Fraction(0)), result.nodeid
