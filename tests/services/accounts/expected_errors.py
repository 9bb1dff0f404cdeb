"""Expectations of refusals."""

import pytest

from gateway.errors.v1 import errors_pb2
from gateway.errors.v1.errors_pb2 import Reason
from services.common.errors import GatewayError


def refused(reason: Reason.ValueType, field: str, *words: str) -> "pytest.RaisesExc[GatewayError]":
    """Return a context that expects an error for a field, with words in its message."""

    def fits(error: GatewayError) -> bool:
        assert (error.reason, error.param) == (reason, field), error.message
        assert error.message.startswith(field)
        assert all(word in error.message for word in words), error.message
        return True

    return pytest.RaisesExc(GatewayError, check=fits)


def invalid(field: str, *words: str) -> "pytest.RaisesExc[GatewayError]":
    """Return a context that expects an invalid field."""
    return refused(errors_pb2.REASON_INVALID_REQUEST, field, *words)


def conflict(field: str, *words: str) -> "pytest.RaisesExc[GatewayError]":
    """Return a context that expects a conflict."""
    return refused(errors_pb2.REASON_CONFLICT, field, *words)


def not_found(field: str) -> "pytest.RaisesExc[GatewayError]":
    """Return a context that expects that there is no such thing."""
    return refused(errors_pb2.REASON_NOT_FOUND, field)
