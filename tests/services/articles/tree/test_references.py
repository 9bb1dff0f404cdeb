"""References are added, changed and deleted; no citation dangles."""

from typing import Any

import pytest

from tests.services.articles.trees import Body, Editor, bullets, paragraph, text


@pytest.fixture
def editor() -> Editor:
    made = Editor()
    for reference_id in ("a", "b", "c"):
        body = {"reference": {"id": reference_id, "title": reference_id, "author": ["Ada"]}}
        made.edit("add_reference", body)
    return made


def test_a_reference_without_an_id_gets_one(editor: Editor) -> None:
    change = editor.edit("add_reference", {"reference": {"title": "T", "isbn": None}})
    assert change.ids == ("e1",)
    assert editor.document.references["e1"] == {"id": "e1", "title": "T"}
    assert list(editor.document.references) == ["a", "b", "c", "e1"]


def test_fields_of_bibtex_survive(editor: Editor) -> None:
    fields = {"howPublished": "web", "editor": ["X", "Y"], "year": "2020", "doi": "10/x"}
    editor.edit("add_reference", {"reference": {"id": "d", **fields}})
    assert editor.document.references["d"] == {"id": "d", **fields}


@pytest.mark.parametrize(
    ("reference", "code", "pointer"),
    [
        ({"id": "a"}, 40902, "/reference/id"),
        ({"id": None}, 40003, "/reference/id"),
        ({"id": ""}, 40003, "/reference/id"),
        ({"id": 3}, 40003, "/reference/id"),
        ({"year": 2020}, 40003, "/reference/year"),
        ({"title": ["T"]}, 40003, "/reference/title"),
        ({"author": "Ada"}, 40003, "/reference/author"),
        ({"author": ["Ada", 3]}, 40003, "/reference/author/1"),
        ({"note": 3}, 40003, "/reference/note"),
        ({"note": ["a", None]}, 40003, "/reference/note/1"),
        ({"note": "\0"}, 40003, "/reference/note"),
        ({"1st": "x"}, 40003, "/reference/1st"),
        ({"a b": "x"}, 40003, "/reference/a b"),
        ({"x" * 65: "x"}, 40003, f"/reference/{'x' * 65}"),
        ({"name\n": "x"}, 40003, "/reference/name\n"),
        ([], 40003, "/reference"),
    ],
)
def test_a_wrong_reference_is_refused(
    editor: Editor, reference: Any, code: int, pointer: str
) -> None:
    editor.refuse("add_reference", {"reference": reference}, code, pointer)


def test_an_update_changes_what_it_names_and_null_removes(editor: Editor) -> None:
    before = editor.document
    body = {"reference": {"id": "b", "title": None, "year": "1999"}}
    change = editor.edit("update_reference", body)
    assert editor.document.references["b"] == {"id": "b", "author": ["Ada"], "year": "1999"}
    assert list(editor.document.references) == ["a", "b", "c"]
    assert change.inverse.apply(editor.document).document == before


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({}, 40001, "/reference"),
        ({"reference": {"title": "x"}}, 40004, "/reference/id"),
        ({"reference": {"id": None}}, 40003, "/reference/id"),
        ({"reference": {"id": "no"}}, 40404, "/reference/id"),
        ({"reference": {"id": "a", "year": 3}}, 40003, "/reference/year"),
    ],
)
def test_a_wrong_update_is_refused(editor: Editor, body: Body, code: int, pointer: str) -> None:
    editor.refuse("update_reference", body, code, pointer)


def test_deleting_a_reference_clears_citations_and_is_undone(editor: Editor) -> None:
    editor.insert(
        paragraph("one", text("two", cite="b"), text("three", cite="a")),
        bullets({"type": "list-item", "children": [text("four", cite="b")]}),
    )
    before = editor.document
    assert before.numbers() == {"b": 1, "a": 2}
    change = editor.edit("delete_reference", {"referenceId": "b"})
    assert list(editor.document.references) == ["a", "c"]
    assert editor.document.numbers() == {"a": 1}
    assert [leaf["text"] for leaf in editor.children("e1")] == ["onetwo", "three"]
    undone = change.inverse.apply(editor.document)
    assert undone.document == before
    assert list(undone.document.references) == ["a", "b", "c"]
    assert undone.inverse.apply(undone.document).document == editor.document


@pytest.mark.parametrize("body", [{"referenceId": "no"}, {}])
def test_a_wrong_deletion_is_refused(editor: Editor, body: Body) -> None:
    editor.refuse("delete_reference", body, 40404, "/referenceId")


def test_a_document_holds_two_thousand_references() -> None:
    editor = Editor()
    for _ in range(2000):
        editor.edit("add_reference", {"reference": {}})
    editor.refuse("add_reference", {"reference": {}}, 40003, "/reference")
