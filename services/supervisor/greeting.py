"""The text that `gateway up` prints when the gateway is ready."""

_BODY = '{"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello"}]}'
# Addresses for reaching a server on this machine that listens on a wildcard address.
_LOOPBACKS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


def base_url(host: str, port: int, scheme: str = "http") -> str:
    """Return the URL at which this machine reaches a server that listens on `host`."""
    host = _LOOPBACKS.get(host, host)
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def sign_in_link(url: str, code: str) -> str:
    """Return a link to the gateway's console that signs in with a one-time code.

    The code is in the URL's fragment, which browsers do not send to servers.
    """
    return f"{url}/console#code={code}"


def greeting(
    url: str,
    metrics_url: str,
    key: str,
    key_file: str,
    grpc: str = "",
    code: str = "",
    *,
    has_sandbox: bool,
) -> str:
    """Return a text with the addresses of a gateway and an example request.

    The request is a chat with the sandbox; without it, it lists the models.

    Args:
        url: address for HTTP.
        metrics_url: address of the listener for operators.
        key: the development key, or "" if there is none.
        key_file: path of the file with the key.
        grpc: address for gRPC callers, or "".
        code: one-time code for signing in to the console with that key, or "".
        has_sandbox: whether the sandbox's models can be called.
    """
    credential = f'-H "Authorization: Bearer {key or "$GATEWAY_KEY"}"'
    curl = (
        f"curl {url}/v1/chat/completions -H 'Content-Type: application/json' "
        f"{credential} -d '{_BODY}'"
        if has_sandbox
        else f"curl {url}/v1/models {credential}"
    )
    lines = [f"The gateway listens on {url}", f"Metrics are on {metrics_url}/metrics"]
    if grpc:
        lines.append(f"gRPC callers go to {grpc}")
    if key:
        lines.append(f"API key: {key} (kept in {key_file})")
        if code:
            lines.append(f"Console: {sign_in_link(url, code)} (works once, within 10 minutes)")
        lines.append("Try it:")
    else:
        lines += [
            f"Console: {url}/console",
            "Try it:",
            "  GATEWAY_KEY=$(gateway keys create --user NAME)",
        ]
    return "\n".join([*lines, f"  {curl}"])
