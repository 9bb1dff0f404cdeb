"""Errors of HTTP requests."""


class HttpError(Exception):
    """Base class of errors of a request without a complete response."""


class ConnectionBrokenError(HttpError):
    """Error raised when connecting fails, or the connection breaks before the response.

    The message names the server or proxy and the system's error, which is the cause.
    """


class AddressNotAllowedError(HttpError):
    """Error raised before connecting to a server whose address the client refuses."""


class NotHttpError(HttpError):
    """Error raised for a response that is not HTTP/1.1 or has too large a head."""


class CutOffError(HttpError):
    """Error raised when the connection closes within the body of a response."""


class TooLargeError(HttpError):
    """Error raised for a response that exceeds the client's limit."""
