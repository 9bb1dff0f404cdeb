"""Errors of conversions, as the worker processes raise them."""


class ConversionError(Exception):
    """Error raised for a medium that cannot be converted; the caller sees its message.

    Attributes:
        limit: name of the setting that was exceeded, or "".
    """

    def __init__(self, message: str, *, limit: str = "") -> None:
        super().__init__(message)
        self.limit = limit
