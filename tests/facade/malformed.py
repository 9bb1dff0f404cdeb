"""Requests that break HTTP, each made for any path: what a stranger may send to the front.

`CANARY` stands where a key, a prompt or another secret would: no answer and no line of the log
may have it.
"""

from collections.abc import Iterator

CANARY = "CANARY"
KEY = f"gw-{CANARY}{'x' * 37}"
_LARGE = 80_000


def request(
    path: str,
    *fields: str | bytes,
    line: str = "POST {path}/CANARY?CANARY=CANARY HTTP/1.1",
    body: bytes = b"",
    host: str = "Host: a",
) -> bytes:
    """Return a request with a key, `fields` after it, and a body."""
    head = [
        line.format(path=path),
        host,
        f"Authorization: Bearer {KEY}",
        "Content-Type: application/json",
        *fields,
    ]
    lines = [one if isinstance(one, bytes) else one.encode("latin-1") for one in head if one]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def in_fields(path: str) -> Iterator[tuple[str, bytes]]:
    """Return requests whose request line is good and whose fields are not."""
    for name, value in {
        "NUL": "\0",
        "bare CR": "\r",
        "bare LF in a name": "\nx",
        "delete": "\x7f",
        "escape": "\x1b",
        "vertical tab": "\v",
    }.items():
        yield f"{name} in a value", request(path, f"X-Secret: {CANARY}{value}{CANARY}")
        yield f"{name} in a name", request(path, f"X-{CANARY}{value}: {CANARY}")
        yield f"{name} in the key", request(path, f"x-api-key: gw-{value}{CANARY}")
    for name, field in {
        "space before the colon": f"X-Secret : {CANARY}",
        "tab before the colon": f"X-Secret\t: {CANARY}",
        "a folded line": f"X-Secret: a\r\n {CANARY}",
        "a line folded by a tab": f"X-Secret: a\r\n\t{CANARY}",
        "no colon": CANARY,
        "no name": f": {CANARY}",
        "a space in the name": f"X {CANARY}: a",
        "a quoted name": f'"{CANARY}": a',
        "a name beyond ASCII": f"\xfc{CANARY}: a",
        "a second host": f"Host: {CANARY}",
        "a long field": f"X-Secret: {CANARY * (_LARGE // 6)}",
        "a long name": f"{'x' * _LARGE}{CANARY}: a",
        "many fields": "\r\n".join(f"X-{number}: {CANARY}" for number in range(300)),
        "many large fields": "\r\n".join(f"X-{n}: {CANARY * 1200}" for n in range(10)),
        "old WebSocket key": f"Sec-WebSocket-Key1: {CANARY}",
    }.items():
        yield name, request(path, field)
    yield "a fold right after the line", request(path, host=f" {CANARY}: a\r\nHost: a")
    yield "no host", request(path, host="")


def in_framing(path: str) -> Iterator[tuple[str, bytes]]:
    """Return requests whose body's length is in doubt, or whose chunks are broken."""
    body = f'{{"prompt": "{CANARY}"}}'.encode()
    for name, length in {
        "negative": "-5",
        "signed": "+5",
        "hexadecimal": "0x10",
        "a word": CANARY,
        "two numbers": "5, 5",
        "a fraction": "5.0",
        "too large a number": "9" * 40,
        "blanks within": "1 0",
        "empty": "",
        "beyond ASCII": "\xb2",
    }.items():
        yield f"length {name}", request(path, f"Content-Length: {length}", body=body)
    yield "two equal lengths", request(path, "Content-Length: 5", "Content-Length: 5", body=body)
    yield "two lengths", request(path, "Content-Length: 5", "Content-Length: 6", body=body)
    chunked = "Transfer-Encoding: chunked"
    whole = b"5\r\nhello\r\n0\r\n\r\n"
    yield "length and chunks", request(path, "Content-Length: 5", chunked, body=whole)
    yield "chunks and length", request(path, chunked, "Content-Length: 5", body=whole)
    yield "chunked twice", request(path, chunked, chunked, body=whole)
    for name, coding in {
        "unknown": CANARY,
        "misspelt": "xchunked",
        "not last": "chunked, gzip",
        "chunked chunks": "chunked, chunked",
        "identity": "identity",
        "split by a tab": "chun\tked",
        "with a NUL": "chunked\0",
        "quoted": '"chunked"',
    }.items():
        yield f"coding {name}", request(path, f"Transfer-Encoding: {coding}", body=whole)
    for name, chunks in {
        "no hex": f"zz{CANARY}\r\n",
        "a word": f"{CANARY}{CANARY}\r\n",
        "negative": f"-5{CANARY}\r\n",
        "prefixed": f"0x5{CANARY}\r\n",
        "too large": f"{'f' * 20}{CANARY}\r\n",
        "blank before": f" 5\r\n{CANARY}",
        "ended by LF": f"5\n{CANARY}",
        "ended by CR": f"5\r{CANARY}",
        "without size": f"\r\n{CANARY}",
        "longer than it says": f"1\r\n{CANARY}\r\n0\r\n\r\n",
        "a control character in its extension": f"5;a=\0{CANARY}\r\nhello\r\n0\r\n\r\n",
    }.items():
        yield f"chunk {name}", request(path, chunked, body=chunks.encode())
    line = "POST {path}/CANARY HTTP/1.0"
    yield "chunks in HTTP/1.0", request(path, chunked, line=line, body=whole)


def in_line(path: str) -> Iterator[tuple[str, bytes]]:
    """Return requests whose request line is wrong."""
    for name, line in {
        "no version": "POST {path}/CANARY",
        "HTTP/0.9": "POST {path}/CANARY HTTP/0.9",
        "HTTP/1.2": "POST {path}/CANARY HTTP/1.2",
        "HTTP/1.10": "POST {path}/CANARY HTTP/1.10",
        "HTTP/2.0": "POST {path}/CANARY HTTP/2.0",
        "HTTP/9.9": "POST {path}/CANARY HTTP/9.9",
        "no digits": "POST {path}/CANARY HTTP/x.y",
        "another protocol": "POST {path}/CANARY CANARY/1.1",
        "lower case": "POST {path}/CANARY http/1.1",
        "a word more": "POST {path}/CANARY CANARY HTTP/1.1",
        "a NUL in the path": "POST {path}/CANARY\0 HTTP/1.1",
        "a CR in the path": "POST {path}/CANARY\rCANARY HTTP/1.1",
        "an unknown method": "CANARY {path}/CANARY HTTP/1.1",
        "a method in lower case": "post {path}/CANARY HTTP/1.1",
        "a quoted method": '"POST" {path}/CANARY HTTP/1.1',
        "no path": "POST  HTTP/1.1",
        "a path without a slash": "POST CANARY HTTP/1.1",
        "an address without a host": "POST http:///CANARY HTTP/1.1",
        "a blank before": " POST {path}/CANARY HTTP/1.1",
        "a long path": "POST {path}/" + CANARY * (_LARGE // 6) + " HTTP/1.1",
        "a long query": "POST {path}?" + CANARY * (_LARGE // 6) + " HTTP/1.1",
    }.items():
        yield name, request(path, line=line)
    yield "TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + CANARY.encode() * 20
    yield "HTTP/2 in advance", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + CANARY.encode()
    yield "SSH", f"SSH-2.0-{CANARY}\r\n".encode()
    yield "nothing but bytes", bytes(range(255, 0, -1)) + CANARY.encode()
    yield "JSON", f'{{"prompt": "{CANARY}"}}\r\n\r\n'.encode()
