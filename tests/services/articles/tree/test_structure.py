"""Moving, copying and converting blocks, and the grid of tables."""

from gateway.articles.v1 import edits_pb2 as pb
from services.articles.tree.nodes import Element
from services.articles.tree.operations import from_json, to_json
from tests.services.articles.trees import (
    Body,
    Editor,
    bullets,
    cell,
    check,
    item,
    paragraph,
    row,
    table,
    text,
)


def types(editor: Editor) -> list[str]:
    return [f"{block.type} {block.leaves[0].text}" for block in editor.document.blocks]


def sections() -> Editor:
    editor = Editor()
    headings = ["h1 A", "h2 B", "paragraph b", "h3 C", "h2 D", "paragraph d", "h1 E"]
    for heading in headings:
        kind, words = heading.split()
        editor.insert(paragraph(words, kind=kind))
    return editor


def edit(editor: Editor, kind: str, body: Body) -> list[str]:
    """Apply an edit whose inverse must restore the document; return its ids."""
    before = editor.document
    change = editor.edit(kind, body)
    check(editor.document)
    undone = from_json(to_json(change.inverse)).apply(editor.document)
    assert undone.document == before
    return list(change.ids)


def test_a_section_moves_with_all_below_it() -> None:
    editor = sections()
    edit(editor, "move_block", {"blockId": "e2", "with_section": True, "path": [7]})
    moved = ["h1 A", "h2 D", "paragraph d", "h1 E", "h2 B", "paragraph b", "h3 C"]
    assert types(editor) == moved
    assert editor.document.path_of("e2") == (4,)
    edit(editor, "move_block", {"blockId": "e5", "with_section": True, "before_id": "e1"})
    assert types(editor) == ["h2 D", "paragraph d", "h1 A", *moved[3:]]
    for within in ("e5", "e6"):
        body = {"blockId": "e5", "with_section": True, "before_id": within}
        edit(editor, "move_block", body)
    assert types(editor) == ["h2 D", "paragraph d", "h1 A", *moved[3:]]
    edit(editor, "move_block", {"blockId": "e7", "path": [1]})
    assert types(editor)[:3] == ["h2 D", "h1 E", "paragraph d"]


def test_parts_move_where_their_type_fits() -> None:
    editor = Editor()
    listed = editor.insert(bullets("a", item("b", bullets("c")), "d"))
    editor.insert(paragraph("p"))
    ids = [child["id"] for child in editor.children(listed)]
    nested = editor.children(ids[1])[1]["id"]
    edit(editor, "move_block", {"blockId": ids[0], "path": [0, 1, 1, 1]})
    assert [child["id"] for child in editor.children(nested)][-1] == ids[0]
    edit(editor, "move_block", {"blockId": nested, "path": [0]})
    assert [block.type for block in editor.document.blocks] == ["list", "list", "paragraph"]
    for body, code, pointer in (
        ({"blockId": ids[1], "path": [0]}, 40003, "/blockId"),
        ({"blockId": listed, "path": [1, 0, 1]}, 40002, "/path"),
        ({"blockId": listed, "before_id": ids[1]}, 40002, "/beforeId"),
        ({"blockId": listed, "path": [9]}, 40002, "/path"),
        ({"blockId": listed, "path": [0], "before_id": nested}, 40004, ""),
        ({"blockId": listed}, 40004, ""),
        ({"blockId": listed, "path": [0], "with_section": True}, 40003, "/section"),
        ({"blockId": "nowhere", "path": [0]}, 40403, "/blockId"),
        ({"blockId": listed, "before_id": "nowhere"}, 40403, "/beforeId"),
    ):
        editor.refuse("move_block", body, code, pointer)


def test_a_copy_has_new_ids_and_the_same_content() -> None:
    editor = sections()
    ids = edit(editor, "duplicate_block", {"blockId": "e2", "with_section": True})
    assert types(editor)[1:7] == ["h2 B", "paragraph b", "h3 C"] * 2
    assert ids == [block.id for block in editor.document.blocks][4:7]
    listed = editor.insert(bullets("a", item("b", bullets("c"))))
    (copy,) = edit(editor, "duplicate_block", {"blockId": listed, "path": [0]})
    assert _without_ids(editor.json(copy)) == _without_ids(editor.json(listed))


def _without_ids(block: Body) -> Body:
    children = [_without_ids(child) for child in block.get("children", [])]
    return {**block, "id": "", "children": children}


def test_blocks_become_another_type_and_keep_their_ids() -> None:
    editor = Editor()
    editor.edit("add_reference", {"reference": {"id": "r"}})
    one = editor.insert(paragraph("a", text("b", bold=True), text("c", cite="r")))
    two = editor.insert(paragraph("x", kind="h2", style={"isHideIndex": True}))
    (listed,) = edit(editor, "convert_blocks", {"block_ids": [one, two], "type": "list"})
    assert [child["id"] for child in editor.children(listed)] == [one, two]
    ids = edit(editor, "convert_blocks", {"block_ids": [listed], "type": "h1"})
    assert ids == [one, two]
    assert editor.children(one)[1] == {"type": "default", "text": "b", "bold": True}
    edit(editor, "convert_blocks", {"block_ids": [two], "type": "code"})
    assert editor.json(two)["code"] == "x"
    edit(editor, "convert_blocks", {"block_ids": [two], "type": "equation"})
    edit(editor, "convert_blocks", {"block_ids": [two], "type": "abstract"})
    assert editor.children(two) == [{"type": "latex", "text": "x"}]
    nested = editor.insert(bullets(item("a", bullets("b")), "c"))
    edit(editor, "convert_blocks", {"block_ids": [nested], "type": "paragraph"})
    assert [block.type for block in editor.document.blocks][-3:] == [
        "paragraph",
        "list",
        "paragraph",
    ]


def test_what_a_type_cannot_hold_is_not_converted() -> None:
    editor = Editor()
    marked = editor.insert(paragraph("a", text("b", bold=True)))
    listing = editor.insert({"type": "code", "code": "x", "language": "Python"})
    lines = editor.insert(table(row("a")))
    for body, code, pointer in (
        ({"block_ids": [marked], "type": "code"}, 40003, "/type"),
        ({"block_ids": [marked], "type": "equation"}, 40003, "/type"),
        ({"block_ids": [listing], "type": "paragraph"}, 40003, "/type"),
        ({"block_ids": [lines], "type": "paragraph"}, 40003, "/blockIds"),
        ({"block_ids": [marked], "type": "table"}, 40003, "/type"),
        ({"block_ids": [marked, lines], "type": "h1"}, 40003, "/blockIds/1"),
        ({"block_ids": [marked, "nowhere"], "type": "h1"}, 40403, "/blockIds/1"),
        ({"block_ids": [], "type": "h1"}, 40003, "/blockIds"),
    ):
        editor.refuse("convert_blocks", body, code, pointer)


def grid(editor: Editor, table_id: str) -> list[str]:
    """Return the rows of a table, with the spans of cells that have some."""

    def shown(one: Element) -> str:
        spans = f"{one.content['colSpan']}x{one.content['rowSpan']}"
        words = "".join(leaf.text for leaf in one.leaves)
        return words if spans == "1x1" else f"{words}:{spans}"

    element = editor.document.element(table_id)
    assert element is not None
    return [" ".join(shown(one) for one in line.elements) for line in element.elements]


def change(editor: Editor, table_id: str, action: str, **slots: int) -> list[str]:
    value = pb.TableAction.Value(f"TABLE_ACTION_{action}")
    return edit(editor, "edit_table", {"blockId": table_id, "action": value, **slots})


def test_rows_and_columns_come_and_go() -> None:
    editor = Editor()
    grown = editor.insert(table(row("a", "b"), row("c", "d")))
    before = editor.json(grown)
    ids = change(editor, grown, "INSERT_ROWS", row=1)
    assert (len(ids), grid(editor, grown)) == (1, ["a b", " ", "c d"])
    ids = change(editor, grown, "INSERT_COLUMNS", column=2, columns=2)
    assert (len(ids), grid(editor, grown)) == (6, ["a b  ", "   ", "c d  "])
    change(editor, grown, "DELETE_ROWS", row=1)
    change(editor, grown, "DELETE_COLUMNS", column=2, columns=2)
    change(editor, grown, "INSERT_COLUMNS", column=1)
    assert grid(editor, grown) == ["a  b", "c  d"]
    change(editor, grown, "DELETE_COLUMNS", column=1)
    assert editor.json(grown) == before
    change(editor, grown, "MERGE_CELLS", row=0, column=0, rows=2, columns=2)
    assert grid(editor, grown) == ["a\nb\nc\nd:2x2", ""]
    change(editor, grown, "INSERT_ROWS", row=1)
    change(editor, grown, "INSERT_COLUMNS", column=1)
    assert grid(editor, grown) == ["a\nb\nc\nd:3x3", "", ""]
    change(editor, grown, "DELETE_COLUMNS", column=0)
    change(editor, grown, "DELETE_ROWS", row=0, rows=2)
    assert grid(editor, grown) == ["a\nb\nc\nd:2x1"]
    change(editor, grown, "SPLIT_CELL", row=0, column=1)
    assert grid(editor, grown) == ["a\nb\nc\nd "]


def test_a_change_beyond_the_table_is_refused() -> None:
    editor = Editor()
    wide = editor.insert(table(row(cell("w", colSpan=2), "a"), row("b", "c", "d")))
    words = editor.insert(paragraph("p"))
    for action, slots, pointer in (
        ("INSERT_ROWS", {"row": 3}, "/row"),
        ("INSERT_ROWS", {"rows": 201}, "/rows"),
        ("INSERT_ROWS", {"rows": 199}, ""),
        ("INSERT_COLUMNS", {"columns": 50}, ""),
        ("DELETE_ROWS", {"row": 1, "rows": 2}, "/rows"),
        ("DELETE_ROWS", {"rows": 2}, "/rows"),
        ("DELETE_COLUMNS", {"columns": 3}, "/columns"),
        ("MERGE_CELLS", {"column": 1, "rows": 2}, "/rows"),
        ("MERGE_CELLS", {"column": 1, "columns": 3}, "/columns"),
        ("SPLIT_CELL", {"row": 2}, "/row"),
        ("SPLIT_CELL", {"column": 3}, "/column"),
    ):
        value = pb.TableAction.Value(f"TABLE_ACTION_{action}")
        body = {"blockId": wide, "action": value, **slots}
        editor.refuse("edit_table", body, 40003, pointer)
    editor.refuse("edit_table", {"blockId": wide}, 40004, "/action")
    editor.refuse("edit_table", {"blockId": words, "action": 1}, 40003, "/blockId")
