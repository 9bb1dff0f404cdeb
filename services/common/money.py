"""Amounts of money: integers of picodollars (10^-12 US dollars), shown as decimal dollars.

At $0.075 per million tokens, a token costs 75,000 picodollars. Prices with up to six decimals, and
sums of them, are therefore exact.
"""

import re
from decimal import Decimal

PER_DOLLAR = 10**12
# Maximum of a 64-bit column: about nine million dollars.
MAX_PUSD = 2**63 - 1

_DECIMALS = 12
_DOLLARS = re.compile(rf"[0-9]{{1,7}}(\.[0-9]{{1,{_DECIMALS}}})?")


def picodollars(dollars: Decimal, *, per: int = 1) -> int:
    """Return the price of one unit in picodollars, from the price of `per` units in dollars.

    Raises:
        ValueError: the result is not a whole number of picodollars.
    """
    numerator, denominator = dollars.as_integer_ratio()
    amount, remainder = divmod(numerator * PER_DOLLAR, denominator * per)
    if remainder:
        raise ValueError(f"{dollars} has too many decimals")
    return amount


def parse_dollars(text: str) -> int:
    """Parse an amount of decimal dollars, such as `12.50`; return picodollars.

    Raises:
        ValueError: the text is not such an amount, or the amount is too large.
    """
    if not _DOLLARS.fullmatch(text) or (amount := picodollars(Decimal(text))) > MAX_PUSD:
        raise ValueError(f"must be US dollars with at most {_DECIMALS} decimals, for example 12.50")
    return amount


def decimal_dollars(pusd: int) -> str:
    """Return an amount as decimal dollars, exact and without an exponent: `0.00125`."""
    whole, part = divmod(abs(pusd), PER_DOLLAR)
    text = f"{whole}.{part:0{_DECIMALS}}".rstrip("0").rstrip(".")
    return f"-{text}" if pusd < 0 else text
