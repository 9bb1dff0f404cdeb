"""An example of each endpoint, in the order of one session with one document.

Ids replace server-generated ones. A test runs the session against a gateway and compares the
responses. The document is deleted at the end.
"""

from typing import Any, NamedTuple

_SESSION = {"sessionId": "session_01M8XK3V7A"}
_DOCUMENT = "1879048192003456789"
_NODE = {
    "outer_id": _DOCUMENT,
    "name": "On tides",
    "group": 0,
    "sharePermission": {"operation": True, "permission": "group-only"},
    "children": [],
    "fileholderDeep": 0,
    "time_create": 1793232000,
}
_GROUP_ID = 7265431098273645
_USER = "user_01M8XK3V7A"
_SUGGESTION = "suggestion_01M8XK3VAC"
_COMMENT = "comment_01M8XK3V9B"
_GROUP = {
    "group_id": _GROUP_ID,
    "name": "Tides lab",
    "isCreator": True,
    "time_create": 1793232060,
    "members": [{"user": _USER, "name": "tester", "isCreator": True, "time_join": 1793232060}],
}
_CELL = {"type": "table-cell", "children": [{"text": "Moon"}]}
_ROW = {"type": "table-row", "children": [_CELL]}
_TITLE, _TEXT = "block_title", "block_text"


class Example(NamedTuple):
    """The body of a request and the `data` of its response.

    Attributes:
        body: see above.
        data: see above.
        before: a path with an example that must be run before.
    """

    body: dict[str, Any]
    data: dict[str, Any]
    before: "tuple[str, Example] | None" = None


# In the order of execution.
EXAMPLES = {
    "doc/create": Example({"group": 0, "name": "On tides"}, {"article": _NODE, "group": 0}),
    "doc/list": Example(
        {},
        {
            "articles": [
                {
                    "group_id": 0,
                    "name": "Private",
                    "isCreator": True,
                    "articles": [_NODE],
                    "time_create": 0,
                }
            ]
        },
    ),
    "session/create": Example(
        {"docId": _DOCUMENT}, {**_SESSION, "blockCount": 0, "reused": False, "revision": 0}
    ),
    "block/insert": Example(
        {
            **_SESSION,
            "path": [0],
            "blocks": [
                {"type": "title", "children": [{"text": "On tides"}]},
                {"type": "paragraph", "children": [{"text": "The sea rises"}]},
            ],
        },
        {"ids": [_TITLE, _TEXT], "revision": 1},
    ),
    "block/text/append": Example(
        {**_SESSION, "blockId": _TEXT, "text": " twice a day."}, {"ok": True, "revision": 2}
    ),
    "reference/add": Example(
        {
            **_SESSION,
            "reference": {"id": "newton1687", "author": ["Isaac Newton"], "year": "1687"},
        },
        {"id": "newton1687", "revision": 3},
    ),
    "reference/update": Example(
        {**_SESSION, "reference": {"id": "newton1687", "title": "Principia", "year": None}},
        {"ok": True, "revision": 4},
    ),
    "block/cite": Example(
        {**_SESSION, "blockId": _TEXT, "cite": "newton1687"}, {"ok": True, "revision": 5}
    ),
    "style/leaf": Example(
        {**_SESSION, "leafPath": [1, 0], "italic": True}, {"ok": True, "revision": 6}
    ),
    "block/style": Example(
        {**_SESSION, "blockId": _TEXT, "indent": True, "style": {"lineHeight": 1.5}},
        {"ok": True, "revision": 7},
    ),
    "style/article": Example(
        {**_SESSION, "style": {"global": {"paperSize": "A4"}}}, {"ok": True, "revision": 8}
    ),
    "doc/read-block": Example(
        {**_SESSION, "blockId": _TEXT},
        {
            "block": {
                "id": _TEXT,
                "type": "paragraph",
                "children": [
                    {
                        "type": "default",
                        "text": "The sea rises twice a day.",
                        "italic": True,
                        "cite": "newton1687",
                    }
                ],
                "style": {"indent": True, "style": {"lineHeight": 1.5}},
            },
            "path": [1],
            "style": {"indent": True, "style": {"lineHeight": 1.5}},
            "text": "*The sea rises twice a day.*[1]",
            "revision": 8,
        },
    ),
    "doc/read-blocks": Example(
        {**_SESSION, "blockIds": [_TITLE]},
        {
            "blocks": [
                {
                    "block": {
                        "id": _TITLE,
                        "type": "title",
                        "children": [{"type": "default", "text": "On tides"}],
                    },
                    "path": [0],
                    "style": {},
                    "text": "# On tides",
                    "revision": 8,
                }
            ],
            "revision": 8,
        },
    ),
    "doc/changes": Example(
        {**_SESSION, "since": 4},
        {
            "revision": 8,
            "order": [_TITLE, _TEXT],
            "changed": [_TITLE, _TEXT],
            "style": {"global": {"paperSize": "A4"}},
            "reference": [{"id": "newton1687", "author": ["Isaac Newton"], "title": "Principia"}],
            "cited": ["newton1687"],
        },
    ),
    "doc/read": Example(
        dict(_SESSION),
        {
            "blocks": [
                {"id": _TITLE, "type": "title", "text": "# On tides"},
                {"id": _TEXT, "type": "paragraph", "text": "*The sea rises twice a day.*[1]"},
            ],
            "text": "# On tides\n\n*The sea rises twice a day.*[1]",
            "style": {"global": {"paperSize": "A4"}},
            "reference": [{"id": "newton1687", "author": ["Isaac Newton"], "title": "Principia"}],
            "version": "1.0",
            "revision": 8,
        },
    ),
    "doc/outline": Example(
        dict(_SESSION),
        {
            "headings": [
                {"id": _TITLE, "path": [0], "type": "title", "text": "On tides", "words": 6}
            ],
            "revision": 8,
        },
    ),
    "doc/find": Example(
        {**_SESSION, "query": "SEA"},
        {
            "places": [{"blockId": _TEXT, "offset": 4, "snippet": "The sea rises twice a day."}],
            "hasMore": False,
            "revision": 8,
        },
    ),
    "block/text/replace": Example(
        {**_SESSION, "blockId": _TITLE, "children": "Of tides", "ifRevision": 8},
        {"ok": True, "revision": 9},
    ),
    "block/delete": Example({**_SESSION, "blockId": _TITLE}, {"ok": True, "revision": 10}),
    "block/text/edit": Example(
        {**_SESSION, "edits": [{"old": "twice", "new": "**twice**"}]},
        {"changed": [_TEXT], "revision": 11},
    ),
    "edits/apply": Example(
        {
            **_SESSION,
            "requestId": "heading-1",
            "edits": [
                {
                    "endpoint": "block/insert",
                    "path": [0],
                    "blocks": [
                        {"type": "h1", "children": [{"text": "On tides"}]},
                        {"type": "table", "children": [_ROW]},
                    ],
                },
                {"endpoint": "block/text/append", "blockId": "$0.0", "text": " and moons"},
            ],
        },
        {"results": [{"ids": ["block_heading", "block_table"]}, {"ok": True}], "revision": 12},
    ),
    "table/edit": Example(
        {**_SESSION, "blockId": "block_table", "action": "insert-columns", "column": 1},
        {"ids": ["block_cell"], "revision": 13},
    ),
    "history/undo": Example(dict(_SESSION), {"ok": True, "revision": 14}),
    "history/redo": Example(dict(_SESSION), {"ok": True, "revision": 15}),
    "history/diff": Example(
        {**_SESSION, "from": 11},
        {
            "blocks": [
                {"blockId": "block_heading", "after": "# On tides and moons"},
                {"blockId": "block_table", "after": "| Moon |  |\n| --- | --- |"},
            ],
            "hasMore": False,
        },
    ),
    "history/restore": Example({**_SESSION, "revision": 11}, {"ok": True, "revision": 16}),
    "history/list": Example(
        {**_SESSION, "before": 15, "limit": 1},
        {
            "entries": [
                {
                    "revision": 14,
                    "time": 1793232000000,
                    "own": True,
                    "operation": "undo",
                    "reversed": 13,
                }
            ],
            "hasMore": True,
        },
    ),
    "reference/delete": Example(
        {**_SESSION, "referenceId": "newton1687"}, {"ok": True, "revision": 17}
    ),
    "block/duplicate": Example(
        {**_SESSION, "blockId": _TEXT}, {"ids": ["block_copy"], "revision": 18}
    ),
    "block/convert": Example(
        {**_SESSION, "blockIds": ["block_copy"], "type": "h1"},
        {"ids": ["block_copy"], "revision": 19},
    ),
    "block/move": Example(
        {**_SESSION, "blockId": "block_copy", "section": True, "beforeId": _TEXT},
        {"ok": True, "revision": 20},
    ),
    "reference/import": Example(
        {
            **_SESSION,
            "format": "bibtex",
            "text": "@book{newton:1687, author = {Newton, Isaac}, title = {Principia},\n"
            "  year = 1687}\n@book{broken, title = }",
        },
        {
            "ids": ["newton:1687"],
            "skipped": [{"place": "broken", "reason": "a value is missing"}],
            "revision": 21,
        },
    ),
    "reference/export": Example(
        {**_SESSION, "format": "ris"},
        {
            "text": "TY  - BOOK\nID  - newton:1687\nAU  - Newton, Isaac\nTI  - Principia\n"
            "PY  - 1687\nER  - \n",
            "skipped": [],
            "revision": 21,
        },
    ),
    "doc/write": Example(
        {
            **_SESSION,
            "markdown": "## Tides {#sec-tides}\n\nThe moon pulls [@newton:1687, p. 3], see "
            "@eq-force.[^1]\n\n$$\nF = ma\n$$ {#eq-force}\n\n[^1]: As *known*.\n\n---\n",
        },
        {
            "ids": ["block_written", "block_written_text", "block_formula"],
            "lost": [{"place": "line 11", "reason": "a horizontal rule"}],
            "revision": 22,
        },
    ),
    "doc/properties": Example(
        {**_SESSION, "properties": {"date": "2026-11-27", "language": "en"}},
        {"ok": True, "revision": 23},
    ),
    "doc/import": Example(
        {**_SESSION, "format": "latex", "text": "\\section{Waves}\nA wave \\cite{newton:1687}."},
        {
            "ids": ["block_imported", "block_imported_text"],
            "referenceIds": [],
            "lost": [],
            "revision": 24,
        },
    ),
    "reference/format": Example(
        {**_SESSION, "style": "apa"},
        {
            "citations": [
                {
                    "blockId": "block_written_text",
                    "referenceIds": ["newton:1687"],
                    "text": "(Newton, 1687, p. 3)",
                },
                {
                    "blockId": "block_imported_text",
                    "referenceIds": ["newton:1687"],
                    "text": "(Newton, 1687)",
                },
            ],
            "bibliography": [
                {"referenceId": "newton:1687", "text": "Newton, I. (1687). *Principia*."}
            ],
            "revision": 24,
        },
    ),
    "doc/export": Example(
        {**_SESSION, "format": "bibtex", "as": "text"},
        {
            "text": "@book{newton:1687,\n  author = {Newton, Isaac},\n  title = {Principia},\n"
            "  year = {1687},\n}\n",
            "filename": "The-sea-rises-twice-a-day.bib",
            "mimeType": "application/x-bibtex",
            "bytes": 89,
            "lost": [],
            "revision": 24,
        },
    ),
    "comment/add": Example(
        {**_SESSION, "blockId": _TEXT, "quote": "a day", "text": "On most coasts."},
        {"commentId": _COMMENT, "revision": 24},
    ),
    "comment/reply": Example(
        {**_SESSION, "commentId": _COMMENT, "text": "Which not?"},
        {"commentId": "comment_01M8XK4A2C"},
    ),
    "comment/edit": Example(
        {**_SESSION, "commentId": "comment_01M8XK4A2C", "text": "Where not?"}, {"ok": True}
    ),
    "comment/resolve": Example({**_SESSION, "commentId": _COMMENT}, {"ok": True}),
    "comment/list": Example(
        {**_SESSION, "blockId": _TEXT, "resolved": True},
        {
            "comments": [
                {
                    "id": _COMMENT,
                    "text": "On most coasts.",
                    "author": {"user": _USER, "name": "tester"},
                    "own": True,
                    "time": 1793232030000,
                    "blockId": _TEXT,
                    "quote": "a day",
                    "offset": 20,
                    "orphaned": False,
                    "resolved": True,
                    "replies": [
                        {
                            "id": "comment_01M8XK4A2C",
                            "text": "Where not?",
                            "author": {"user": _USER, "name": "tester"},
                            "own": True,
                            "time": 1793232040000,
                            "edited": 1793232050000,
                        }
                    ],
                }
            ],
            "revision": 24,
        },
    ),
    "suggestion/list": Example(
        {**_SESSION, "limit": 1},
        {
            "suggestions": [
                {
                    "id": _SUGGESTION,
                    "author": {"user": _USER, "name": "tester"},
                    "own": True,
                    "time": 1793232035000,
                    "revision": 24,
                    "endpoint": "block/text/append",
                    "stale": False,
                    "blocks": [
                        {
                            "blockId": _TEXT,
                            "before": "*The sea rises* ***twice*** *a day.*",
                            "after": "*The sea rises* ***twice*** *a day.* And falls.",
                        }
                    ],
                    "references": [],
                    "style": False,
                    "properties": False,
                }
            ],
            "hasMore": False,
            "revision": 24,
        },
        before=(
            "block/text/append",
            Example(
                {**_SESSION, "blockId": _TEXT, "text": " And falls.", "suggest": True},
                {"ok": True, "revision": 24, "suggestionId": _SUGGESTION},
            ),
        ),
    ),
    "suggestion/accept": Example(
        {**_SESSION, "suggestionId": _SUGGESTION}, {"ok": True, "revision": 25}
    ),
    "suggestion/reject": Example(
        {**_SESSION, "suggestionId": "suggestion_01M8XK5D3E"},
        {"ok": True},
        before=(
            "block/delete",
            Example(
                {**_SESSION, "blockId": _TEXT, "suggest": True},
                {"ok": True, "revision": 25, "suggestionId": "suggestion_01M8XK5D3E"},
            ),
        ),
    ),
    "comment/delete": Example({**_SESSION, "commentId": _COMMENT}, {"ok": True}),
    "doc/rename": Example(
        {"docId": _DOCUMENT, "name": "Of tides"}, {"article": {**_NODE, "name": "Of tides"}}
    ),
    "group/create": Example({"name": "Tides lab"}, {"group": _GROUP}),
    "group/list": Example({}, {"user": _USER, "groups": [_GROUP]}),
    "group/add": Example({"group": _GROUP_ID, "user": _USER}, {"ok": True}),
    "doc/share": Example(
        {"docId": _DOCUMENT, "group": _GROUP_ID, "permission": "group-only"},
        {"article": {**_NODE, "name": "Of tides", "group": _GROUP_ID}},
    ),
    "session/list": Example(
        dict(_SESSION),
        {"sessions": [{"user": _USER, "name": "tester", "own": True, "this": True, "idle": 1200}]},
    ),
    "session/destroy": Example(dict(_SESSION), {"ok": True}),
    "doc/delete": Example({"docId": _DOCUMENT}, {"article": _DOCUMENT}),
    "group/remove": Example({"group": _GROUP_ID}, {"ok": True}),
}
