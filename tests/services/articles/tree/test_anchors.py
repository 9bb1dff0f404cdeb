"""Anchors of comments: passages that are found again after edits around them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.articles.tree.anchors import Anchor, find_passage
from services.articles.tree.errors import EditError, EditErrorCode
from services.articles.tree.texts import own_text
from tests.services.articles.trees import Editor, bullets, paragraph, text
from tests.thoroughness import examples

EXAMPLES = settings(max_examples=examples(50))
WORDS = st.text(alphabet="ab cé🙂", max_size=8)


def edited(editor: Editor, block_id: str, words: str) -> None:
    editor.edit("replace_text", {"blockId": block_id, "children": words})


@EXAMPLES
@given(WORDS, WORDS, WORDS, WORDS)
def test_a_passage_follows_edits_around_it(
    before: str, after: str, new_before: str, new_after: str
) -> None:
    editor = Editor()
    block_id = editor.insert(paragraph(f"{before}[passage]{after}"))
    anchor = find_passage(editor.document, block_id, "[passage]")
    edited(editor, block_id, f"{new_before}[passage]{new_after}")
    assert anchor.place(editor.document) == len(new_before)
    edited(editor, block_id, f"{new_before}{new_after}")
    assert anchor.place(editor.document) is None
    edited(editor, block_id, f"{new_after}[passage]")
    assert anchor.place(editor.document) == len(new_after)


@EXAMPLES
@given(st.lists(WORDS.map(lambda words: words + "."), min_size=1, max_size=4), st.data(), WORDS)
def test_the_same_of_equal_passages_is_found(
    parts: list[str], data: st.DataObject, added: str
) -> None:
    """An insertion on one side of equal words, between parts that differ, keeps them apart."""
    editor = Editor()
    numbered = [f"{number}{part} the " for number, part in enumerate(parts)]
    block_id = editor.insert(paragraph("".join(numbered)))
    chosen = data.draw(st.integers(0, len(parts) - 1))
    at = len("".join(numbered[: chosen + 1])) - 4
    anchor = find_passage(editor.document, block_id, "the", at)
    edited(editor, block_id, added + "".join(numbered))
    assert anchor.place(editor.document) == len(added) + at
    edited(editor, block_id, "".join(numbered) + added)
    assert anchor.place(editor.document) == at


def test_a_passage_is_found_in_items_and_as_markdown() -> None:
    editor = Editor()
    block_id = editor.insert(bullets("one", "two moons"))
    [_, item] = editor.children(block_id)
    anchor = find_passage(editor.document, block_id, "moons")
    assert (anchor.element_id, anchor.start) == (item["id"], 4)
    marked = editor.insert(paragraph("The ", text("moon", bold=True), " pulls"))
    anchor = find_passage(editor.document, marked, "The **moon** p")
    assert (anchor.quote, anchor.place(editor.document)) == ("The moon p", 0)
    assert Anchor(**anchor.to_json()) == anchor
    code = editor.insert({"type": "code", "code": "a = **b"})
    assert find_passage(editor.document, code, "**b").start == 4


def test_a_passage_that_is_not_there_once_is_refused() -> None:
    editor = Editor()
    block_id = editor.insert(paragraph("a tide and a tide"))
    for quote, offset, said in (
        ("tide", None, "several times"),
        ("tide", 3, "at offset 3"),
        ("moon", None, "does not occur in this block"),
    ):
        with pytest.raises(EditError) as raised:
            find_passage(editor.document, block_id, quote, offset)
        assert (raised.value.code, raised.value.pointer) == (EditErrorCode.NO_MATCH, "/quote")
        assert said in raised.value.problem
    assert find_passage(editor.document, block_id, "tide", 13).start == 13


def test_many_equal_passages_take_no_time() -> None:
    editor = Editor()
    block_id = editor.insert(paragraph("a" * 50_000))
    anchor = find_passage(editor.document, block_id, "aa", 25_000)
    for _ in range(200):
        assert anchor.place(editor.document) == 25_000
    element = editor.document.element(block_id)
    assert element is not None and len(own_text(element)) == 50_000
