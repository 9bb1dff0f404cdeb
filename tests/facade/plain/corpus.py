"""Requests of every kind to the paths where plain ones are read, and what is wrong with some."""

from collections.abc import Iterator

from tests.facade import malformed
from tests.facade.plain.fake_services import KEY

CHAT = "/beta/v1/chat/completions"
MESSAGES = "/beta/v1/messages"
CODING = "/coding/v1/messages"
PATHS = (CHAT, MESSAGES, CODING)
WRONG_KEY = "gw-" + "w" * 43
BODY = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hello"}]}'


def body(model: str = "m", *, stream: bool = False) -> bytes:
    """Return what asks a model."""
    asked = BODY.replace(b'"m"', f'"{model}"'.encode(), 1)
    return asked.replace(b"{", b'{"stream":true,', 1) if stream else asked


def ask(
    *fields: str,
    path: str = CHAT,
    method: str = "POST",
    version: str = "HTTP/1.1",
    sends: bytes = BODY,
    length: str | None = "",
    key: str = f"Authorization: Bearer {KEY}",
    host: str = "Host: a",
    kind: str = "Content-Type: application/json",
) -> bytes:
    """Return a request; `length` is that of `sends` where it is "", and left out where None."""
    told = [] if length is None else [f"Content-Length: {length or len(sends)}"]
    needed = ["compat-version: 2023-06-01"] if path.startswith(MESSAGES) else []
    given = [f"{method} {path} {version}", host, key, kind, *needed, *fields, *told]
    lines = [line for line in given if line]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + sends


PLAIN = ask()


def heads() -> Iterator[bytes]:
    """Return whole requests with unusual lines and fields."""
    for field in FIELDS:
        yield ask(field)
        yield ask(field, path=MESSAGES, sends=body(stream=True))
    for length in LENGTHS:
        yield ask(length=length)
        yield ask(f"Content-Length: {length}")
        yield ask(f"Content-Length: {length}", length=None)
    for target in TARGETS:
        yield ask(path=target)
        yield ask(path=target, method="GET", length=None, sends=b"")
    for version in ("HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1", "HTTP/1.1 ", " HTTP/1.1", ""):
        yield ask(version=version)
        yield ask("Connection: keep-alive", version=version)
    for method in METHODS:
        yield ask(method=method)
        yield ask(method=method, length=None, sends=b"")
    for kind in (
        "",
        "Content-Type:",
        "Content-Type: text/plain",
        "Content-Type: application/json;",
    ):
        yield ask(kind=kind)
    for host in (
        "",
        "Host:",
        "host: b",
        "HOST : a",
        "Host: a b",
        "Host: \xe9",
        "Host: a\r\nHost: a",
    ):
        yield ask(host=host)
    for count in range(12, 24):
        yield ask(*[f"X-{number}: a" for number in range(count)])
    for size in (7_900, 7_990, 8_000, 8_010, 8_020, 8_030, 8_100, 8_192, 9_000):
        yield ask("X-Long: " + "x" * size)
        yield ask(*[f"X-{number}: {'x' * (size // 8)}" for number in range(8)])
        yield ask("x" * size + ": a")


def callers(*paths: str) -> Iterator[bytes]:
    """Return whole requests with all kinds of keys and bodies."""
    for path in paths:
        for key in KEYS:
            yield ask(key=key, path=path)
            yield ask("anthropic-version: 2026-10-21", key=key, path=path)
            yield ask("compat-version: 2020-01-01", key=key, path=path)
        for model in ("m", "busy", "large", "breaks"):
            yield ask(path=path, sends=body(model))
            yield ask(path=path, sends=body(model, stream=True))
        for sends in BODIES:
            yield ask(path=path, sends=sends)


def broken(*paths: str) -> Iterator[bytes]:
    """Return what breaks HTTP."""
    for path in paths:
        for corpus in (malformed.in_fields, malformed.in_framing, malformed.in_line):
            for _, request in corpus(path):
                yield request
                # With a good key and the very path, so that nothing else refuses it.
                known = request.replace(malformed.KEY.encode(), KEY.encode())
                yield known.replace(b"/CANARY?CANARY=CANARY HTTP", b" HTTP").replace(
                    b"/CANARY HTTP", b" HTTP"
                )


KEYS = (
    "",
    f"Authorization: Bearer {WRONG_KEY}",
    f"Authorization: bearer {KEY}",
    f"Authorization: {KEY}",
    "Authorization:",
    f"x-api-key: {KEY}",
    f"X-API-Key: {KEY}\r\ncompat-version: 2023-06-01",
    f"x-api-key: {WRONG_KEY}",
    f"Authorization: Bearer {KEY}\r\nx-api-key: {KEY}",
    f"Authorization: Bearer {KEY}\r\nx-api-key: {WRONG_KEY}",
    f"Authorization: Bearer {KEY}\r\nauthorization: Bearer {KEY}",
)
BODIES = (
    b" ",
    b"{}",
    b"[]",
    b"nothing",
    b"\xff\xfe",
    BODY[:-1],
    BODY + b" ",
    b"[" * 3_000,
    BODY + b" " * 4_096,
    BODY + b"\r\n",
    b"\r\n" + BODY,
    b'{"model":"m","messages":[]}',
)
LENGTHS = (
    "0",
    "1",
    "74",
    "75",
    "76",
    "0075",
    "+75",
    "-75",
    "75 ",
    " 75",
    "\t75",
    "7 5",
    "75,75",
    "75, 75",
    "75;",
    "0x4b",
    "75.0",
    "7_5",
    "\u00b275",
    "9" * 15,
    "9" * 19,
    "9" * 25,
    "\r\n 75",
    "75\r\nContent-Length: 75",
    "75\r\ncontent-length: 7",
)
METHODS = (
    *("GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PRI", "SOURCE"),
    *("post", "Post", "POST ", " POST", "POSTS", "POS", "P\tOST", "QUERY", "\xd0OST"),
)
TARGETS = (
    "/healthz",
    "/beta/v1/messages/count_tokens",
    "/beta/v1/models",
    f"{CHAT}/",
    f"{CHAT}?",
    f"{CHAT}?a=b",
    f"{CHAT}#",
    f"{CHAT}#a",
    f"/{CHAT}",
    f"http://a{CHAT}",
    f"HTTP://a:80{CHAT}?a",
    CHAT.replace("/beta", "/bet%61"),
    CHAT.replace("/v1/", "/%76%31/"),
    CHAT.replace("/v1/", "/./v1/"),
    CHAT.replace("/v1/", "/x/../v1/"),
    CHAT.replace("/v1/", "//v1/"),
    CHAT.upper(),
    CHAT + "\xe9",
    CHAT + "\x7f",
    CHAT + "\t",
    CHAT + "|",
    "*",
    "a:80",
    CHAT[1:],
)
FIELDS = (
    *("Connection: keep-alive", "Connection: Keep-Alive", "connection: KEEP-ALIVE"),
    *("Connection: close", "Connection: Close", "Connection:", "Connection: keep-alive, close"),
    *("Connection: close\r\nConnection: keep-alive", "Connection: upgrade", "Connection: x"),
    *("Connection: keep-alive\r\nConnection: keep-alive", "Proxy-Connection: close"),
    *("Keep-Alive: timeout=5", "Keep-Alive: timeout=0, max=0", "TE: trailers", "Trailer: X-A"),
    *("Transfer-Encoding: chunked", "Transfer-Encoding: identity", "transfer-encoding:"),
    *("Transfer-Encoding : chunked", "Transfer-Encoding\t: chunked", "Transfer_Encoding: chunked"),
    *("X: a\r\n\tTransfer-Encoding: chunked", "X: a\nTransfer-Encoding: chunked"),
    *("X: a\rTransfer-Encoding: chunked", "X: a\r\r\nTransfer-Encoding: chunked", "X: a\n"),
    *("Expect: 100-continue", "expect: 100-Continue", "Expect: x", "Expect:"),
    *("Upgrade: websocket", "Upgrade: h2c", "Connection: Upgrade\r\nUpgrade: websocket"),
    *("Connection: upgrade, http2-settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA",),
    *("Content-Encoding: gzip", "Content-Encoding: identity", "Content-Encoding:"),
    *("X-Request-Id: mine", "X-Request-Id: \xe9", "x-request-id: a b", "X-Request-Id:"),
    *("anthropic-beta: a", "anthropic-beta: a\r\nanthropic-beta: b", "anthropic-beta: \xe9"),
    *("OpenAI-Beta: a", "openai-organization: o", "x-gateway-hops: 1", "via: 1.1 a"),
    *("User-Agent: a\r\nUser-Agent: b", "X: a\r\nx: b", "Accept: */*\r\nAccept: text/html"),
    *("Content-Type: text/plain", "Content-Location: a\r\nContent-Location: b", "Server: a"),
    *("X:", "X: ", "X:a", "X:  a", "X: a ", "X: a\t", "X:\ta", "X: a  b", "X: a\tb", "X : a"),
    *("X: \x00", "X: \x01", "X: \x7f", "X: \x80", "X: \xff", "X: \u00e9", "\xe9: a", "X\x00: a"),
    *(": a", "X", " X: a", "\tX: a", "X Y: a", "X(Y): a", "X/Y: a", "X\x7f: a", "X'!#$%&*+: a"),
    *("Origin: https://app.example", "Range: bytes=0-1", "If-Match: a", "Cookie: a=b; c=d"),
    *("Sec-WebSocket-Key1: a", "Content-Length-: 1", "Content_Length: 1", "X: " + "\\" * 9),
)
