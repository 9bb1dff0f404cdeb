"""Translation of database errors into errors for callers and log lines for operators."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import exc
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import Reason
from services.common.errors import GatewayError
from services.common.storage.database_metrics import metrics_of

# Errors of a working database: bugs of the gateway, for which a retry is useless. Those of sqlite3
# are raised for statements that are passed to its driver directly.
_PROGRAMMING_ERRORS = (
    *(exc.ProgrammingError, exc.IntegrityError, exc.DataError, exc.NotSupportedError),
    *(sqlite3.ProgrammingError, sqlite3.IntegrityError, sqlite3.DataError),
    sqlite3.NotSupportedError,
)
OPERATIONAL_ERRORS = (exc.DBAPIError, exc.TimeoutError, sqlite3.OperationalError, TimeoutError)

# Prefixes of SQLSTATEs of values that the server refuses; SQLAlchemy has no class for all of them.
_REFUSED = ("22", "23")
# Prefixes of SQLite's error names and of PostgreSQL's SQLSTATE.
_FULL = ("SQLITE_FULL", "53100")
_CORRUPT = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "XX001", "XX002")
# A file, a folder or a server that is read-only or not accessible.
_NOT_WRITABLE = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_IOERR", "25006")
# A prepared statement that is unknown, or whose name is taken: what prepared it had another
# connection to the server.
_LOST_STATEMENT = ("26000", "42P05")

_SOON_S = 1
_LATER_S = 30

log = logging.getLogger(__name__)


class DatabaseError(GatewayError):
    """Error raised when the database does not work.

    Attributes:
        advice: text for an operator who starts the gateway: the database's location, its error
            message, and the remedy.
    """

    def __init__(
        self, reason: Reason.ValueType, message: str, retry_after_s: int, advice: str
    ) -> None:
        super().__init__(reason, message, retry_after_s=retry_after_s)
        self.advice = advice


@contextmanager
def translate_errors(
    engine: AsyncEngine, operational: tuple[type[Exception], ...] = OPERATIONAL_ERRORS
) -> Iterator[None]:
    """Convert exceptions of the driver to `DatabaseError`; their messages are only logged.

    Raises:
        DatabaseError: unavailable, when the database does not answer or cannot be written;
            storage_full; storage_unavailable, when it is corrupt.
    """
    try:
        yield
    except _PROGRAMMING_ERRORS + operational as error:
        if _is_useless_to_retry(error):
            raise
        translated = _translate(error, engine)
        if (metrics := metrics_of(engine)) is not None:
            metrics.failed(Reason.Name(translated.reason).removeprefix("REASON_").lower())
        raise translated from error


def _is_useless_to_retry(error: Exception) -> bool:
    driver = _driver(error)
    code = _code(driver)
    if isinstance(error, _PROGRAMMING_ERRORS):
        return code not in _LOST_STATEMENT
    # asyncpg refuses values that do not fit their columns, before it sends them.
    is_refused_by_driver = driver is not None and isinstance(driver.__cause__, ValueError)
    return code.startswith(_REFUSED) or is_refused_by_driver


def _translate(error: Exception, engine: AsyncEngine) -> DatabaseError:
    driver = _driver(error)
    words = str(driver)
    code = _code(driver)
    file = engine.url.database or ""
    where = file or "storage.database_url"
    details = {"driver": words, "code": code, "database": where}
    if code.startswith(_CORRUPT):
        log.error("the database is corrupt", extra=details)
        return DatabaseError(
            errors_pb2.REASON_STORAGE_UNAVAILABLE,
            "the gateway's database is damaged; the operator must restore it",
            _LATER_S,
            f"{where}: the database is corrupt ({words}); stop every gateway that uses it, and "
            f"replace it with a backup{_LEFT_OVER.format(file) if file else ''}",
        )
    if code.startswith(_FULL):
        log.error("the database's disk is full", extra=details)
        return DatabaseError(
            errors_pb2.REASON_STORAGE_FULL,
            "the gateway's disk is full; try again later",
            _LATER_S,
            f"{where}: the disk is full ({words}); free disk space",
        )
    if code.startswith(_NOT_WRITABLE):
        log.error("the database cannot be read or written", extra=details)
        return DatabaseError(
            errors_pb2.REASON_UNAVAILABLE,
            "the gateway's database cannot be read or written; try again",
            _LATER_S,
            f"{where}: cannot be read or written ({words}); check the disk, and that this user "
            "may write to the file and its folder",
        )
    if code in _LOST_STATEMENT:
        log.error("the database's pooler does not keep prepared statements", extra=details)
        return DatabaseError(
            errors_pb2.REASON_UNAVAILABLE,
            "the database does not answer; try again",
            _LATER_S,
            f"{where}: its pooler does not keep prepared statements ({words}); {POOLER_ADVICE}",
        )
    log.error("the database does not answer", extra=details)
    return DatabaseError(
        errors_pb2.REASON_UNAVAILABLE,
        "the database does not answer; try again",
        _SOON_S,
        f"{where}: the database does not answer ({words})",
    )


POOLER_ADVICE = (
    "use PgBouncer 1.21 or later with max_prepared_statements = 200, or pool_mode = session, or "
    "add statement_cache_size=0 to the options of storage.database_url, which makes each "
    "statement slower"
)
_LEFT_OVER = " (without {0}-wal and {0}-shm, which belong to the damaged one)"


def _driver(error: Exception) -> BaseException | None:
    """Return the error of the driver."""
    return error.orig if isinstance(error, exc.DBAPIError) else error


def _code(driver: BaseException | None) -> str:
    """Return SQLite's error name, PostgreSQL's SQLSTATE, or ""."""
    for name in ("sqlite_errorname", "sqlstate"):
        if code := getattr(driver, name, None):
            return str(code)
    return ""
