"""Errors of the HTTP exchange, for which the services have no reason code."""

from collections.abc import Iterable

from facade.areas import area_of
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.text.texts import cut, quoted

_SHOWN_PATH = 128  # maximum length of a path in a message


class HttpExchangeError(GatewayError):
    """Error of the HTTP exchange itself, with its status and stable code."""

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
        """The HTTP status of the response."""
        return self._status

    @property
    def code(self) -> str:
        """The stable error code."""
        return self._code


def unknown_path(method: str, path: str, hint: str = "") -> GatewayError:
    """Return the error for a path that no endpoint has: 404; `hint` says what was meant."""
    meant = f"{hint}; " if hint else ""
    return HttpExchangeError(
        404,
        "unknown_path",
        f"{method} {cut(path, _SHOWN_PATH)}: unknown endpoint; {meant}GET {_section(path)} lists"
        " the available endpoints",
    )


def _section(path: str) -> str:
    """Return the address of the section about the area that a path seems to mean."""
    area = area_of(path[:_SHOWN_PATH])
    return f"/docs#{area.anchor}" if area else "/docs"


def method_not_allowed(method: str, path: str, allowed: Iterable[str]) -> GatewayError:
    """Return the error for a method that the endpoints of a path do not have: 405."""
    methods = ", ".join(sorted(allowed))
    error = HttpExchangeError(
        405,
        "method_not_allowed",
        f"{cut(path, _SHOWN_PATH)}: method {method} not allowed; use {methods}",
    )
    error.headers = {"Allow": methods}
    return error


def not_served(method: str, path: str, instead: str) -> GatewayError:
    """Return the error for a method of a provider that the gateway does not serve: 501."""
    return HttpExchangeError(
        501,
        "not_implemented",
        f"{method} {cut(path, _SHOWN_PATH)}: the gateway does not serve this. {instead}",
    )


def encoded_path(method: str, path: str) -> GatewayError:
    """Return the error for a path whose fixed segments are percent-encoded: 404."""
    return HttpExchangeError(
        404,
        "unknown_path",
        f"{method} {cut(path, _SHOWN_PATH)}: unknown endpoint; send the path of an endpoint without"
        " percent-encoding, which only names and ids in it may have",
    )


def unsupported_media_type(media_type: str, takes: str = "application/json") -> GatewayError:
    """Return the error for an unsupported Content-Type."""
    return HttpExchangeError(
        415,
        "unsupported_media_type",
        f"Content-Type: must be {takes}, not {quoted(media_type)}",
        param="Content-Type",
    )
