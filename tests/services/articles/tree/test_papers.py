"""Parts of papers: notes, labels and references to blocks, captions, citations with words."""

from typing import Any

import pytest

from services.articles.changes import changed_blocks
from services.articles.markdown import render_document
from tests.services.articles.trees import (
    Body,
    Editor,
    bullets,
    check,
    item,
    paragraph,
    row,
    table,
    text,
)

IMAGE = {"type": "image", "image": [{"url": "https://example.org/a.png", "alt": "A"}]}


def note(*leaves: Body) -> Body:
    return {"type": "note", "children": list(leaves)}


def ref(label: str, **fields: Any) -> Body:
    return {"type": "ref", "ref": label, **fields}


@pytest.fixture
def editor() -> Editor:
    editor = Editor()
    for reference_id, author in (("newton", ["Isaac Newton"]), ("hooke", ["Hooke, R.", "A", "B"])):
        editor.edit("add_reference", {"reference": {"id": reference_id, "author": author}})
    return editor


def shown(editor: Editor) -> str:
    return render_document(editor.document)[1]


REFUSED: list[tuple[Body, int, str]] = [
    (paragraph(text("x", cite=[])), 40003, "/children/0/cite"),
    (paragraph(text("x", cite=5)), 40003, "/children/0/cite"),
    (paragraph(text("x", cite=[{"id": "newton"}] * 51)), 40003, "/children/0/cite"),
    (paragraph(text("x", cite=[{"id": "newton", "page": 3}])), 40003, "/children/0/cite/0/page"),
    (paragraph(text("x", cite=[{"locator": "p. 3"}])), 40003, "/children/0/cite/0/id"),
    (
        paragraph(text("x", cite=[{"id": "newton"}, {"id": "hooke", "narrative": True}])),
        40003,
        "/children/0/cite/1/narrative",
    ),
    (
        paragraph(text("x", cite=[{"id": "newton", "narrative": True, "prefix": "see"}])),
        40003,
        "/children/0/cite/0/prefix",
    ),
    (paragraph(text("x", cite=[{"id": "no", "locator": "1"}])), 40404, "/children/0/cite/0/id"),
    (paragraph(note(text("x", cite="no"))), 40404, "/children/0/children/0/cite"),
    (paragraph(note(note(text("x")))), 40003, "/children/0/children/0"),
    (paragraph(note(text(""))), 40003, "/children/0/children"),
    (paragraph({"type": "note"}), 40004, "/children/0"),
    (paragraph({**note(text("x")), "bold": True}), 40003, "/children/0/bold"),
    (paragraph({"type": "ref"}), 40003, "/children/0/ref"),
    (paragraph(ref("a b")), 40003, "/children/0/ref"),
    (paragraph(ref("a", text="words")), 40003, "/children/0/text"),
    (paragraph(text("x", form="display")), 40003, "/children/0/form"),
    (paragraph(text("x", script="above")), 40003, "/children/0/script"),
    (paragraph("x", label="a"), 40003, "/label"),
    (paragraph("x", kind="h1", label="a{b"), 40003, "/label"),
    (paragraph("x", kind="h1", label="a" * 101), 40003, "/label"),
    (paragraph("x", kind="h4", label="taken"), 40003, "/label"),
    ({**IMAGE, "caption": [text("x", cite="no")]}, 40404, "/caption/0/cite"),
    ({**IMAGE, "caption": [paragraph("x")]}, 40003, "/caption/0/children"),
    ({**table(row("a", "b")), "align": ["left"]}, 40003, "/align/0"),
    ({**table(row("a")), "align": ["start", "end"]}, 40003, "/align"),
    (bullets("a", start=-1), 40003, "/start"),
    (
        {"type": "author", "author": [{"name": "A", "orcid": "1234"}]},
        40003,
        "/author/0/orcid",
    ),
    (
        {"type": "author", "author": [{"name": "A", "institutionId": 2, "institutionIds": [1]}]},
        40003,
        "/author/0/institutionId",
    ),
]


def test_invalid_parts_of_papers_are_refused(editor: Editor) -> None:
    editor.insert(paragraph("x", kind="h1", label="taken"))
    for block, code, pointer in REFUSED:
        body = {"path": [0], "blocks": [block]}
        editor.refuse("insert_blocks", body, code, f"/blocks/0{pointer}")
    for properties, pointer in (
        ({"language": "e"}, "/language"),
        ({"keywords": [""]}, "/keywords/0"),
        ({"date": "a\nb"}, "/date"),
        ({"subject": "x"}, "/subject"),
    ):
        body = {"properties": properties}
        editor.refuse("set_properties", body, 40003, f"/properties{pointer}")


def test_one_citation_without_words_is_its_reference(editor: Editor) -> None:
    block_id = editor.insert(
        paragraph(text("a", cite="newton"), text("b", cite=[{"id": "newton"}]))
    )
    assert editor.children(block_id) == [{"type": "default", "text": "ab", "cite": "newton"}]
    cited = [{"id": "newton", "locator": " p. 3, "}, {"id": "hooke", "prefix": "see"}]
    editor.edit("cite", {"blockId": block_id, "citations": cited})
    assert shown(editor) == "ab[1, p. 3; see 2]"
    editor.edit("cite", {"blockId": block_id, "citations": [{"id": "hooke", "narrative": True}]})
    assert shown(editor) == "abHooke et al. [1]"


def test_no_citation_dangles_in_lists_notes_and_captions(editor: Editor) -> None:
    both = [{"id": "newton", "locator": "p. 3"}, {"id": "hooke"}]
    cited = text("x", cite=both)
    ids = [
        editor.insert(paragraph(cited, note(cited))),
        editor.insert({**IMAGE, "caption": [cited, note(text("y", cite="newton"))]}),
    ]
    before = editor.document
    change = editor.edit("delete_reference", {"referenceId": "newton"})
    check(editor.document)
    assert editor.children(ids[0])[0]["cite"] == "hooke"
    assert editor.json(ids[1])["caption"][1]["children"] == [{"type": "default", "text": "y"}]
    assert change.inverse.apply(editor.document).document == before


def test_blocks_are_counted_where_they_are(editor: Editor) -> None:
    editor.insert(
        paragraph("Title", kind="title"),
        paragraph("One", kind="h2", label="one"),
        paragraph("Deep", kind="h4", label="deep"),
        {**IMAGE, "caption": [text("counts")]},
        IMAGE,
        {**IMAGE, "label": "fig"},
        {"type": "equation", "equation": "x"},
        {"type": "equation", "equation": "x", "style": {"serial": True}},
        {"type": "equation", "equation": "x", "label": "eq"},
        {"type": "code", "code": "x", "label": "code"},
        paragraph("Two", kind="h2", label="two"),
        paragraph("Thanks", kind="h2", label="thanks", style={"isHideIndex": True}),
    )
    labels = ["one", "deep", "fig", "eq", "code", "two", "thanks", "nowhere"]
    block_id = editor.insert(paragraph(*(ref(label) for label in labels)))
    expected = (
        *("Section 1", "Section 1.0.1", "Figure 2", "Eq. (2)", "Listing 1", "Section 2"),
        *("Thanks", "??"),
    )
    links = "".join(f"[{one}](#{label})" for one, label in zip(expected, labels, strict=True))
    assert shown(editor).endswith(links)
    editor.edit("set_properties", {"properties": {"language": "de-AT"}})
    assert "[Abbildung 2](#fig)" in shown(editor)
    editor.edit("replace_text", {"blockId": block_id, "children": [ref("eq", form="number")]})
    assert shown(editor).endswith("[2](#eq)")


def test_references_to_a_deleted_block_wait_for_it(editor: Editor) -> None:
    figure = editor.insert({**IMAGE, "label": "fig"})
    other = editor.insert({**IMAGE, "caption": [text("other")]})
    reference = editor.insert(paragraph(ref("fig")))
    before = editor.document
    deletion = editor.edit("delete_block", {"blockId": figure})
    assert shown(editor).endswith("[??](#fig)")
    assert changed_blocks(before, editor.document) == [reference]
    undone = deletion.inverse.apply(editor.document).document
    assert render_document(undone)[1] == render_document(before)[1]
    editor.edit("replace_text", {"blockId": other, "label": "fig"})
    assert shown(editor).endswith("[Figure 1](#fig)")
    copy = editor.edit("duplicate_block", {"block_id": other}).ids[0]
    assert "label" not in editor.json(copy)
    editor.refuse("replace_text", {"blockId": copy, "label": "fig"}, 40003, "/label")
    editor.edit("replace_text", {"blockId": other, "label": None, "caption": None})
    assert {"label", "caption"}.isdisjoint(editor.json(other))


def test_texts_in_notes_and_captions_are_edited(editor: Editor) -> None:
    kept = text("Some words", cite="newton")
    block_id = editor.insert(paragraph("A tide", note(kept), " and ", ref("fig"), " more."))
    editor.insert({**IMAGE, "caption": [text("The tide")], "label": "fig"})
    edit = {"edits": [{"old": "tide", "new": "flood", "all": True}, {"old": "words", "new": "w"}]}
    editor.edit("edit_text", edit)
    assert editor.children(block_id)[1]["children"] == [
        {"type": "default", "text": "Some w", "cite": "newton"}
    ]
    # With what stands between as doc/read shows it, which stays.
    old = "flood^[Some w[1]] and [Figure 1](#fig) more"
    editor.edit("edit_text", {"edits": [{"old": old, "new": old.replace("more", "less")}]})
    assert shown(editor).startswith(old.replace("more", "less").replace("flood", "A flood", 1))
    assert editor.children(block_id)[1]["children"][0]["cite"] == "newton"
    wrong = [{"old": "flood^[Other]", "new": "x"}]
    editor.refuse("edit_text", {"edits": wrong}, 40005, "/edits/0/old")
    new = [{"old": "A flood", "new": "A flood^[New]"}, {"old": "[Figure 1](#fig) ", "new": ""}]
    editor.edit("edit_text", {"edits": new})
    assert shown(editor).startswith("A flood^[New]^[Some w[1]] and less.")


def test_columns_keep_their_alignment(editor: Editor) -> None:
    block_id = editor.insert({**table(row("a", "b"), row("c", "d")), "align": ["start", "end"]})
    at = {"blockId": block_id}
    edits: list[tuple[Body, list[str | None] | None]] = [
        ({"action": 3, "column": 1}, ["start", "start", "end"]),
        ({"action": 4, "column": 0}, ["start", "end"]),
        ({"action": 7, "column": 0, "columns": 2, "align": "center"}, ["center", "center"]),
        ({"action": 7, "column": 0, "columns": 2}, None),
    ]
    for change, expected in edits:
        before = editor.document
        made = editor.edit("edit_table", {**at, **change})
        assert editor.json(block_id).get("align") == expected
        assert made.inverse.apply(editor.document).document == before
    editor.refuse("edit_table", {**at, "action": 7, "align": "left"}, 40003, "/align")


LOST = [
    ("a\n\n[x]: https://a.org", ["an address that no link uses"]),
    ("[a][x]\n\n[x]: https://a.org\n[x]: https://b.org", ["a second address of this name"]),
    ("| a |\n|---|\n| b | c | d |", ["cells beyond the header of the table: c | d"]),
    ("a[^1]", ["the text of the footnote 1, which there is none of"]),
    ("a\n\n[^1]: b", ["the footnote 1, which nothing names"]),
    ("a[^1]\n\n[^1]: b[^1]", ["a note inside of a note"]),
    (
        "# a {#x}\n\n## b {#x}\n\nc",
        ["the label x, which another block has", "a title has no label"],
    ),
    ("## a {#taken}", ["a block of the document has this label"]),
    ("see @fig-x", ["the document has no such reference or label; it is here as text"]),
    ("> - a", ["the mark of a quotation at a bullet list, which is here"]),
    ("---\nlang: x\n---\n\na", ["lang: must be a language tag such as en, zh or pt-BR"]),
]


def test_what_documents_do_not_hold_is_named() -> None:
    for markdown, reasons in LOST:
        editor = Editor()
        if "taken" in markdown:
            editor.insert(paragraph("x", kind="h1", label="taken"))
        written = editor.edit("write_markdown", {"markdown": markdown})
        assert [omission.reason for omission in written.omitted] == reasons, markdown


def test_notes_repeated_by_name_are_bounded() -> None:
    markdown = f"{'[^1] ' * 3_000}\n\n[^1]: {'b' * 1_000}"
    Editor().refuse("write_markdown", {"markdown": markdown}, 40003, "/markdown")


def test_formulas_and_numbers_in_lists(editor: Editor) -> None:
    editor.edit("write_markdown", {"markdown": "3. one\n   $$\n   x\n   $$\n   more\n4. two"})
    assert shown(editor) == "3. one $$x$$ more\n4. two"
    written = editor.insert(bullets(item({"type": "latex", "text": "y", "form": "display"})))
    assert editor.json(written)["children"][0]["children"] == [
        {"type": "latex", "text": "y", "form": "display"}
    ]
