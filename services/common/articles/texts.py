"""Validators of single values that are not part of the OpenAPI document."""

from functools import partial

from pydantic import AfterValidator, WrapValidator
from pydantic_core.core_schema import ValidatorFunctionWrapHandler

from services.common.articles import limits


def at_most(limit: int) -> AfterValidator:
    """Return a validator: a string has at most `limit` characters and no NUL."""
    return AfterValidator(partial(_check_text, limit=limit))


def up_to(most: int) -> AfterValidator:
    """Return a validator: an integer is at most `most`."""

    def check(number: int) -> int:
        if number > most:
            raise ValueError(f"must be at most {most}")
        return number

    return AfterValidator(check)


def _is_not_negative(number: int) -> int:
    if number < 0:
        raise ValueError("must be at least 0")
    return number


def _is_not_empty(text: str) -> str:
    if not text:
        raise ValueError("must not be empty")
    return text


def _is_css_value(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    if isinstance(value, str):
        return _check_text(value, limits.CSS_VALUE)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ValueError("must be a string or a number")
    return value


def _is_css_length(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    if isinstance(value, int | float) and value < 0:
        raise ValueError("must not be negative")
    return _is_css_value(value, handler)


def _check_text(text: str, limit: int) -> str:
    if len(text) > limit:
        raise ValueError(f"must have at most {limit} characters, has {len(text)}")
    if "\0" in text:
        raise ValueError("must not contain NUL")
    return text


from_zero = AfterValidator(_is_not_negative)
not_empty = AfterValidator(_is_not_empty)
# A length, a colour or a weight; null removes it.
css_value = WrapValidator(_is_css_value)
# A number that is not negative, or text.
css_length = WrapValidator(_is_css_length)
