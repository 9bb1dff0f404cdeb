"""Connections to a database server that end while they are idle, as when the server restarts.

A connection that the server has closed is not taken from the pool. One whose end has not been
noticed yet fails at its first statement; what it was to do is then done once more, by a new one.
Asking the server each time whether a connection still works would take three round trips.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import exc

_T = TypeVar("_T")

# What a server says before it closes a connection: it stops, it was stopped, it begins to run.
_SHUTTING_DOWN = ("57P01", "57P02", "57P03")


@dataclass(slots=True)
class Sending:
    """How far an attempt has come.

    Attributes:
        is_commit_sent: whether the server may have committed a transaction.
    """

    is_commit_sent: bool = False


def refuse_closed(connection: Any, _record: object, _checked_out: object) -> None:
    """Refuse a connection that is taken from the pool if it is closed: an event of SQLAlchemy.

    Raises:
        DisconnectionError: the pool takes another one.
    """
    if connection.driver_connection.is_closed():
        raise exc.DisconnectionError


async def again_if_disconnected(attempt: Callable[[Sending], Awaitable[_T]]) -> _T:
    """Return the result of an attempt; make a second one if the connection of the first was broken.

    Nothing that was sent before a commit is left of a broken connection.
    """
    sending = Sending()
    try:
        return await attempt(sending)
    except exc.DBAPIError as error:
        was_broken = error.connection_invalidated or _sqlstate(error) in _SHUTTING_DOWN
        if not was_broken or sending.is_commit_sent:
            raise
    return await attempt(Sending())


def _sqlstate(error: exc.DBAPIError) -> str:
    return str(getattr(error.orig, "sqlstate", ""))
