"""A small imitation of SearXNG, which answers as the documentation of its search API says."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

_FOUND = {
    "url": "https://typst.app/docs/",
    "title": "Typst Documentation",
    "content": "Typst sets documents, and is written like text.",
    "publishedDate": "2026-11-20T08:00:00",
    "engine": "duckduckgo",
    "engines": ["duckduckgo", "brave"],
    "parsed_url": ["https", "typst.app", "/docs/", "", "", ""],
    "template": "default.html",
    "positions": [1, 2],
    "priority": "",
    "thumbnail": "",
    "img_src": "",
    "score": 4.0,
    "category": "general",
}


class SearXNG:
    """A search engine that finds one page.

    Attributes:
        url: where it is.
        queries: what was searched for.
    """

    def __init__(self, port: int, queries: Sequence[str]) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.queries = queries


@contextmanager
def searxng() -> Iterator[SearXNG]:
    """Run one."""
    queries: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path)
            asked = parse_qs(path.query)
            if path.path != "/search":
                self.send_error(404)
            elif asked.get("format") != ["json"]:
                self.send_error(403)
            elif not asked.get("q"):
                self.send_error(400)
            else:
                queries.append(asked["q"][0])
                self._answer(
                    {
                        "query": asked["q"][0],
                        "number_of_results": 0,
                        "results": [_FOUND],
                        "answers": [],
                        "corrections": [],
                        "infoboxes": [],
                        "suggestions": ["typst tutorial"],
                        "unresponsive_engines": [["google", "Suspended: CAPTCHA"]],
                    }
                )

        def _answer(self, value: object) -> None:
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        try:
            yield SearXNG(server.server_port, queries)
        finally:
            server.shutdown()
            serving.join()
