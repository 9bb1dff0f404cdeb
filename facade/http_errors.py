"""Errors of the HTTP exchange, for which the services have no reason code."""

from aiohttp import web

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.texts import cut, quoted

_SHOWN_PATH = 128  # characters of a path that a message repeats


class HttpError(GatewayError):
    """A failure of the HTTP exchange itself, with its status and stable code."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        param: str = "",
        *,
        limit: str = "",
    ) -> None:
        super().__init__(errors_pb2.REASON_INVALID_REQUEST, message, param=param, limit=limit)
        self._status = status
        self._code = code

    @property
    def http_status(self) -> int:
        """The status to answer."""
        return self._status

    @property
    def code(self) -> str:
        """The stable reason."""
        return self._code


def from_http_exception(error: web.HTTPException, method: str, path: str) -> GatewayError:
    """Return the failure that an exception of aiohttp's stands for."""
    path = cut(path, _SHOWN_PATH)
    if error.status == 404:
        return HttpError(
            404,
            "unknown_path",
            f"{method} {path}: there is no such endpoint; GET /docs lists them",
        )
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        return HttpError(405, "method_not_allowed", f"{path} takes {allowed}, not {method}")
    return HttpError(error.status, "invalid_request", f"the request is not HTTP: {error.reason}")


def unsupported_media_type(found: str, takes: str = "application/json") -> GatewayError:
    """Return the failure of a body that is something else by its own header."""
    return HttpError(
        415,
        "unsupported_media_type",
        f"Content-Type: takes {takes}, not {quoted(found)}",
        param="Content-Type",
    )
