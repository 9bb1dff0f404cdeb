"""Validators of single values that are not part of the OpenAPI document."""

import re
from functools import partial

from pydantic import AfterValidator, WrapValidator
from pydantic_core.core_schema import ValidatorFunctionWrapHandler

from services.common.articles import limits

# What would end a label where it is written: white space, brackets, quotes, separators.
_LABEL = re.compile(r"[^\s\x00-\x1f\x7f{}\[\]()<>#\"\\`|,;]+")
_ORCID = re.compile(r"(?:https?://orcid\.org/)?(\d{4}-\d{4}-\d{4}-\d{3}[\dX])", re.ASCII)
_EMAIL = re.compile(r"[^\s@<>]+@[^\s@<>]+")
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")


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


def _is_label(text: str) -> str:
    if not is_label(text):
        raise ValueError(
            'must have 1 to 100 characters other than white space and {}[]()<>#"\\`|,;'
        )
    return text


def is_label(text: str) -> bool:
    """Return whether a text can be the label of a block."""
    return len(text) <= limits.LABEL and _LABEL.fullmatch(text) is not None


def orcid_of(text: str) -> str:
    """Return an ORCID without the address that it may be a part of.

    Raises:
        ValueError: the text is no ORCID.
    """
    match = _ORCID.fullmatch(text)
    if match is None:
        raise ValueError("must be an ORCID such as 0000-0002-1825-0097")
    return match[1]


def _is_email(text: str) -> str:
    if len(text) > limits.EMAIL or not _EMAIL.fullmatch(text):
        raise ValueError(f"must be an e-mail address of at most {limits.EMAIL} characters")
    return text


def _is_language(text: str) -> str:
    if len(text) > limits.LANGUAGE or not _LANGUAGE.fullmatch(text):
        raise ValueError("must be a language tag such as en, zh or pt-BR")
    return text


def _is_line(text: str) -> str:
    if "\n" in text or "\r" in text:
        raise ValueError("must be on one line")
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
# The label of a block, an ORCID, an e-mail address, a language (BCP 47), a text on one line.
block_label = AfterValidator(_is_label)
orcid = AfterValidator(orcid_of)
email = AfterValidator(_is_email)
language_tag = AfterValidator(_is_language)
one_line = AfterValidator(_is_line)
# A length, a colour or a weight; null removes it.
css_value = WrapValidator(_is_css_value)
# A number that is not negative, or text.
css_length = WrapValidator(_is_css_length)
