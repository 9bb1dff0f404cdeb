"""The texts of blocks in Markdown as leaves, with the pictures and notes in them."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from services.articles.bibliography.entries import Omission
from services.articles.tree.colours import is_colour
from services.articles.tree.errors import EditError
from services.articles.tree.inline_markdown import inline_leaves
from services.articles.tree.markdown_parser import Attributes, ParsedText, parse_inline_tokens
from services.articles.tree.nodes import OBJECT, Json, Leaf
from services.articles.tree.normalise import normal_leaves
from services.articles.tree.parsing import check_leaf, parse_content
from services.articles.tree.picture_files import PictureFiles
from services.articles.tree.values import schema_error
from services.common.articles import limits
from services.common.articles.texts import is_label

if TYPE_CHECKING:
    from markdown_it.token import Token

_FILE_ADDRESS = re.compile(r"/beta/v1/files/([^/]+)/content")
_KNOWN_TAG = re.compile(
    r"<br>|</?(?:strong|em|del|u|code|sup|sub)>|<span(?: style=\"color: [^\"]*\")?>|</span>"
)
# A label in the caption of a figure, as JOSS writes it.
_LATEX_LABEL = re.compile(r"\\label\{([^{}\s]{1,100})\}")


class Figure:
    """Pictures of one paragraph, with what their block has beside them."""

    def __init__(self) -> None:
        self.pictures: list[Json] = []
        self.caption: tuple[Leaf, ...] = ()
        self.label: str | None = None


class InlineReader:
    """Reads the texts of a Markdown text.

    Attributes:
        omitted: what documents do not hold.
        line: the line that is read.
        figure: pictures that were read, which come after their block.
        used_notes: names of footnotes that were read.
    """

    def __init__(self, text: ParsedText, files: PictureFiles) -> None:
        self.omitted: list[Omission] = []
        self.line = 1
        self.figure = Figure()
        self.used_notes: set[str] = set()
        self._text = text
        self._files = files
        self._characters = 0
        self._is_in_note = False

    def lose(self, what: str) -> None:
        """Note that something is missing in the blocks."""
        omission = Omission(f"line {self.line}", what)
        if self.omitted[-1:] != [omission]:
            self.omitted.append(omission)

    def take_figure(self) -> Figure:
        """Return the pictures that were read, and forget them."""
        figure, self.figure = self.figure, Figure()
        return figure

    def leaves(self, tokens: "list[Token]") -> list[Leaf]:
        """Return the text of a block; pictures are gathered in `figure`."""
        pictures = [token for token in tokens if token.type == "image"]
        texts = [t for t in tokens if t.type not in ("image", "softbreak", "attributes")]
        if pictures and any(token.content.strip() for token in texts):
            self.lose("the place of a picture inside of a text, which comes after its block")
        return self.checked(self._made(tokens))

    def _made(self, tokens: "list[Token]") -> Iterator[Leaf]:
        if any(t.type == "html_inline" and not _KNOWN_TAG.fullmatch(t.content) for t in tokens):
            self.lose("the meaning of HTML, which is here as text")
        for leaf in inline_leaves(self._prepared(tokens)):
            if leaf.type == "note_ref":
                yield self._footnote(leaf)
            else:
                yield leaf

    def _footnote(self, leaf: Leaf) -> Leaf:
        footnote = self._text.footnotes.get(leaf.text)
        if footnote is None:
            self.lose(f"the text of the footnote {leaf.text[:64]}, which there is none of")
            return replace(leaf, type="default", text=f"[^{leaf.text}]")
        self.used_notes.add(leaf.text)
        if self._is_in_note:
            self.lose("a note inside of a note")
            return Leaf("")
        self._is_in_note = True
        made: list[Leaf] = []
        for paragraph in footnote.paragraphs:
            self._spend(paragraph)
            made += [Leaf("\n")] * bool(made)
            made += self._made(parse_inline_tokens(paragraph, self._text.definitions))
        self._is_in_note = False
        return Leaf(OBJECT, "note", note=tuple(made))

    def _prepared(self, tokens: "Iterable[Token]") -> "Iterator[Token]":
        """Yield tokens in the form of doc/read; pictures are gathered."""
        is_linked = False
        tokens = list(tokens)
        for index, token in enumerate(tokens):
            following = tokens[index + 1] if index + 1 < len(tokens) else None
            is_linked = token.type == "link_open" or (is_linked and token.type != "link_close")
            if token.type == "softbreak":
                # The end of a line of Markdown is a space.
                yield token.copy(type="text", content=" ")
            elif token.type == "image":
                if is_linked:
                    self.lose("the address that a picture is a link to")
                has_attributes = following is not None and following.type == "attributes"
                text = following.content if following is not None and has_attributes else None
                if alternative := self._picture(token, text):
                    yield token.copy(type="text", content=alternative)
            elif token.type == "note":
                yield token.copy(children=list(self._prepared(token.children or [])))
            elif token.type != "attributes":
                if is_linked and token.type in ("formula", "display_formula"):
                    self.lose("the address that a formula is a link to")
                yield token

    def _picture(self, token: "Token", attributes: str | None) -> str:
        """Gather a picture; return what stands for one that the document cannot hold."""
        address = str(token.attrs.get("src", ""))
        inside = token.children or []
        alternative = "".join(" " if t.type == "softbreak" else t.content for t in inside)
        picture: dict[str, Json] = {"url": address}
        if file_id := self._files.get(address):
            picture = {"fileId": file_id}
        elif file_name := _FILE_ADDRESS.fullmatch(address):
            picture = {"fileId": file_name[1]}
        if title := token.attrs.get("title"):
            picture["title"] = str(title)
        caption: tuple[Leaf, ...] = ()
        label = None
        if latex_label := _LATEX_LABEL.search(token.content):
            label = latex_label[1]
            attributes = attributes or ""
            whole = _LATEX_LABEL.sub("", token.content).strip()
            inside = parse_inline_tokens(whole, self._text.definitions)
        if attributes is not None:
            values = Attributes.parse(attributes)
            label = values.label or label
            caption = normal_leaves(self.checked(self._made(inside)))
            alternative = values.values.get("alt", "")
        if alternative:
            picture["alt"] = alternative
        if not address and attributes is not None:
            self._set_figure(caption, label)
            return ""
        try:
            checked = parse_content({"image": [picture]}, "")["image"]
        except EditError as error:
            self.lose(f"the picture {address[:200]}: {error.problem}, or an address in /files")
            return alternative
        self._spend(address)
        assert isinstance(checked, list)
        self.figure.pictures += checked
        self._set_figure(caption, label)
        return ""

    def _set_figure(self, caption: tuple[Leaf, ...], label: str | None) -> None:
        if any(leaf.text or leaf.cite is not None for leaf in caption):
            if self.figure.caption:
                self.lose("the division between captions of pictures beside each other")
                caption = normal_leaves((*self.figure.caption, Leaf("\n"), *caption))
            self.figure.caption = caption
        if label is not None:
            self.figure.label = self.checked_label(label)

    def checked_label(self, label: str) -> str | None:
        """Return the label of a block, or None if documents cannot have it."""
        if is_label(label):
            return label
        self.lose(f"the label {label[:64]}")
        return None

    def checked(self, leaves: Iterable[Leaf]) -> list[Leaf]:
        """Return leaves with what documents can hold of their fields."""
        made = []
        for leaf in leaves:
            if leaf.color is not None and not is_colour(leaf.color):
                self.lose(f"the colour {leaf.color[:64]}")
                leaf = replace(leaf, color=None)
            if leaf.url is not None:
                if not leaf.url:
                    self.lose("a link without an address")
                    leaf = replace(leaf, url=None)
                    if leaf.type == "url":
                        leaf = replace(leaf, type="default")
                else:
                    self._spend(leaf.url)
            if leaf.type == "note":
                leaf = self._flat_note(leaf)
            if leaf.type == "ref" and not is_label(leaf.ref or ""):
                self.lose(f"the reference to {str(leaf.ref)[:64]}")
                leaf = Leaf(str(leaf.ref))
            check_leaf(leaf, "/markdown")
            if len(leaf.text) > limits.LEAF_TEXT:
                problem = (
                    f"the text in line {self.line} has more than {limits.LEAF_TEXT} characters"
                )
                raise schema_error("/markdown", problem)
            made.append(leaf)
        return made

    def _flat_note(self, leaf: Leaf) -> Leaf:
        """Return a note without notes in it, and without marks."""
        inside: list[Leaf] = []
        for child in self.checked(leaf.note):
            if child.type == "note":
                self.lose("a note inside of a note, whose text is here")
                inside += [Leaf(" "), *child.note]
            else:
                inside.append(child)
        note = normal_leaves(inside)
        if not any(child.text for child in note):
            self.lose("a note without text")
            return Leaf("")
        return Leaf(OBJECT, "note", note=note)

    def _spend(self, text: str) -> None:
        # A definition of a link or a note may be used at thousands of places.
        self._characters += len(text)
        if self._characters > limits.MARKDOWN_TEXT:
            problem = (
                "addresses of links and footnotes must have at most "
                f"{limits.MARKDOWN_TEXT} characters in all"
            )
            raise schema_error("/markdown", problem)
