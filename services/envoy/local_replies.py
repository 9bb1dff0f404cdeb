"""Envoy's own responses: errors in the format of the endpoint."""

from typing import Any

from services.envoy.types import Config

_REQUEST_ID = "%REQ(X-REQUEST-ID)%"
_UNREACHABLE = "the gateway is not reachable: %RESPONSE_FLAGS_LONG%"
_REFUSED = "the request was refused: %RESPONSE_CODE_DETAILS%"


def local_replies(max_body_bytes: int) -> Config:
    """Return the formats of Envoy's own responses; the first match is used."""
    too_large = f"body: must be at most {max_body_bytes} bytes"
    retry_soon = [_header("retry-after", "1")]
    ids = [_header("x-request-id", _REQUEST_ID), _header("request-id", _REQUEST_ID)]
    has_id = _header_filter("x-request-id", present_match=True)
    is_413, is_404 = _status("EQ", 413), _status("EQ", 404)
    is_server_error = _status("GE", 500)
    return {
        "mappers": [
            {
                "filter": _header_filter(
                    "content-type", string_match={"prefix": "application/grpc"}
                ),
                "body_format_override": {
                    "text_format_source": {"inline_string": "%LOCAL_REPLY_BODY%"}
                },
            },
            _mapper(_both(_IS_MESSAGES, is_413), _messages("request_too_large", too_large)),
            _mapper(
                is_413,
                _openai(too_large, "invalid_request_error", "body", "request_too_large"),
            ),
            _mapper(
                _both(_IS_MESSAGES, is_server_error),
                _messages("overloaded_error", _UNREACHABLE),
                retry_soon,
            ),
            _mapper(
                is_server_error,
                _openai(_UNREACHABLE, "server_error", None, "unavailable"),
                retry_soon,
            ),
            # Without a route, `response_headers_to_add` does not add the ids.
            _mapper(
                _both(has_id, is_404),
                _openai("unknown path %PATH(NQ)%", "invalid_request_error", None, "not_found"),
                ids,
            ),
            _mapper(_IS_MESSAGES, _messages("invalid_request_error", _REFUSED)),
        ],
        "body_format": {"json_format": _openai(_REFUSED, "invalid_request_error", None, "refused")},
    }


def _openai(message: str, kind: str, param: str | None, code: str) -> Config:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _messages(kind: str, message: str) -> Config:
    return {
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": _REQUEST_ID,
    }


def _mapper(condition: Config, body: Config, headers: list[Config] | None = None) -> Config:
    mapper: Config = {"filter": condition, "body_format_override": {"json_format": body}}
    if headers:
        mapper["headers_to_add"] = headers
    return mapper


def _header(key: str, value: str) -> Config:
    return {
        "header": {"key": key, "value": value},
        "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
    }


def _header_filter(name: str, **match: Any) -> Config:
    return {"header_filter": {"header": {"name": name, **match}}}


def _status(operator: str, code: int) -> Config:
    # The schema requires the name of a runtime value that could override the default.
    value = {"default_value": code, "runtime_key": "unused"}
    return {"status_code_filter": {"comparison": {"op": operator, "value": value}}}


def _both(*conditions: Config) -> Config:
    return {"and_filter": {"filters": list(conditions)}}


_IS_MESSAGES = _header_filter(
    ":path", string_match={"safe_regex": {"regex": "/((beta|coding)/)?v1/messages.*"}}
)
