"""What can go wrong on the way to a server, from the first packet to the last."""


class HttpError(Exception):
    """A request had no whole answer."""


class ConnectionBrokenError(HttpError):
    """There was no connection, or it broke before the answer began.

    Its text says which server or proxy, and what the system said; its cause is the system's error.
    """


class NotHttpError(HttpError):
    """What came is no HTTP/1.1, or more of a head than is taken."""


class CutOffError(HttpError):
    """The connection ended within the body of an answer."""


class TooLargeError(HttpError):
    """An answer is larger than the client takes."""
