"""Limits for the growth of a test: text for users, exact fractions in here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from pytest_instrcount.errors import InstrcountError

# Longer text is no limit that a person means, and 1e999999999 would fill the memory as a Fraction.
_LONGEST_TEXT = 120
_LARGEST_EXPONENT = 30
#: A larger whole number is no limit that a person means.
LARGEST = 10**_LARGEST_EXPONENT
_AMOUNT = re.compile(
    r"(?P<sign>[+-]?)\s*(?P<number>(?:[0-9][0-9_,]*(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]{1,3})?)"
    r"\s*(?P<unit>%|ir)?",
    re.ASCII | re.IGNORECASE,
)
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(,[0-9]{3})+(?![0-9,_])")


@dataclass(frozen=True, slots=True)
class Limit:
    """The growth per call that is still accepted; with two parts, either trips.

    Raises ValueError if there is neither part, or a negative one.
    """

    #: fraction of the baseline (1/100 for "1%"), or None: no relative part
    relative: Fraction | None
    #: instructions per call, or None: no absolute part
    absolute: int | None

    def __post_init__(self) -> None:
        parts = [part for part in (self.relative, self.absolute) if part is not None]
        if not parts or min(parts) < 0:
            raise ValueError(f"a limit needs one or two parts of at least 0: {parts}")

    def __str__(self) -> str:
        """As people read it; `parse_limit` reads it back.

        >>> print(parse_limit("1%|5000ir"))
        +1 % | 5,000 ir
        """
        parts = []
        if self.relative is not None:
            parts.append(f"{_decimal(self.relative * 100)} %")
        if self.absolute is not None:
            parts.append(f"{self.absolute:,} ir")
        return "+" + " | ".join(parts)

    def exceeded(self, old_total: int, old_calls: int, new_total: int, new_calls: int) -> bool:
        """True if one call got dearer by more than the limit; exactly at the limit is not more.

        Totals are instructions over that many calls. From a baseline of 0, any growth is beyond
        every relative limit. Nothing is rounded.

        >>> parse_limit("1%").exceeded(1000, 10, 1010, 10)
        False
        >>> parse_limit("1%").exceeded(1000, 10, 1011, 10)
        True
        """
        old, new = Fraction(old_total, old_calls), Fraction(new_total, new_calls)
        if self.relative is not None and new > old * (1 + self.relative):
            return True
        return self.absolute is not None and new - old > self.absolute

    def undercut(self, old_total: int, old_calls: int, new_total: int, new_calls: int) -> bool:
        """True if one call got cheaper by more than the limit: the mirror of `exceeded`.

        >>> parse_limit("100ir").undercut(1000, 1, 899, 1)
        True
        """
        old, new = Fraction(old_total, old_calls), Fraction(new_total, new_calls)
        if self.relative is not None and new < old * (1 - self.relative):
            return True
        return self.absolute is not None and old - new > self.absolute


def parse_limit(value: object) -> Limit:
    """Read a limit as users write it: ``0.01``, ``"1%"``, ``"5000ir"`` or ``"1%|5000ir"``.

    A bare number is a fraction of the baseline and must be below 1, since ``1`` could mean either
    unit. A `Limit` is returned as it is. Raises InstrcountError (slug "limit") for all else.

    >>> parse_limit("0.5 %")
    Limit(relative=Fraction(1, 200), absolute=None)
    >>> parse_limit(0.01) == parse_limit("0.01") == parse_limit("1%")
    True
    """
    if isinstance(value, Limit):
        return value
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _refusal(value, "is not a limit")
    if isinstance(value, float):
        # float.__repr__: the digits the user typed, also for subclasses that show themselves else
        text = float.__repr__(value)
    else:
        # int.__repr__ refuses thousands of digits; all that matters is that it is not below 1
        text = value if isinstance(value, str) else str(max(-1, min(int(value), 1)))
    if len(text) > _LONGEST_TEXT:
        raise _refusal(value, "is too long for a limit")
    relative: Fraction | None = None
    absolute: int | None = None
    for part in text.split("|"):
        amount, unit = _parse_amount(value, part.strip())
        if unit == "ir":
            if absolute is not None:
                raise _refusal(value, "has two absolute parts")
            if amount.denominator != 1:
                raise _refusal(value, "has a part of an instruction")
            absolute = int(amount)
        else:
            if relative is not None:
                raise _refusal(value, "has two relative parts")
            relative = amount
    return Limit(relative, absolute)


def parse_count_limit(value: object) -> Limit:
    """Read a limit of something that is counted: ``0``, ``5`` more per call, or ``"1%"`` more.

    Raises InstrcountError (slug "limit") for all else.

    >>> parse_count_limit(5)
    Limit(relative=None, absolute=5)
    >>> parse_count_limit("1%") == parse_limit("1%")
    True
    """
    if isinstance(value, str) and len(value) <= _LONGEST_TEXT and value.strip().isdecimal():
        value = int(value.strip())
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST:
        return Limit(None, value)
    try:
        limit = parse_limit(value)
        if limit.absolute is not None:
            raise _refusal(value, "counts instructions")
    except InstrcountError as error:
        raise InstrcountError(error.slug, error.why, 'write 5 (more per call) or "1%"') from None
    return limit


def _parse_amount(value: object, text: str) -> tuple[Fraction, str]:
    """One side of the ``|``: the fraction of the baseline, or the instructions, and the unit."""
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise _refusal(value, "is not a limit")
    number = match["number"].replace(",", "").replace("_", "").lower()
    _, _, exponent = number.partition("e")
    if exponent and abs(int(exponent)) > _LARGEST_EXPONENT:
        raise _refusal(value, "is too large or too small for a limit")
    amount, unit = Fraction(number), (match["unit"] or "").lower()
    if "," in match["number"] and not _THOUSANDS.match(match["number"]):
        raise _refusal(value, "has a comma that does not group thousands")
    if match["sign"] == "-" and amount:
        raise _refusal(value, "is negative")
    if unit == "%":
        return amount / 100, unit
    if not unit and amount >= 1:
        raise _refusal(value, "is ambiguous: percent or instructions?")
    return amount, unit


def _refusal(value: object, why: str) -> InstrcountError:
    try:
        shown = ascii(value)
    except Exception:
        shown = type(value).__name__
    if len(shown) > 60:
        shown = shown[:59] + "~"
    digits = str(value) if type(value) is int and 1 <= value < 10**9 else "1"
    return InstrcountError(
        "limit",
        f"{shown} {why}",
        f'write "{digits}%" (of the baseline) or "{digits}ir" (instructions per call), '
        f'or both: "{digits}%|5000ir"',
    )


def _decimal(number: Fraction) -> str:
    """All digits of a number that ends in base 10, else six decimals."""
    rest, decimals = number.denominator, 0
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        decimals = max(decimals, power)
    if rest != 1:
        decimals = 6
    scaled = (2 * number * 10**decimals + 1) // 2
    whole, part = divmod(scaled, 10**decimals)
    digits = f"{part:0{decimals}d}".rstrip("0") if decimals else ""
    return f"{whole:,}.{digits}" if digits else f"{whole:,}"
