r"""LaTeX in the values of BibTeX, as plain text and back.

Accents and symbols become characters, and braces go. Formulas between dollars, and commands that
are not known, stay as they are written.
"""

import re
import unicodedata
from collections.abc import Iterator

_ACCENTS = {
    **{"`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", '"': "\u0308", "=": "\u0304"},
    **{".": "\u0307", "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "d": "\u0323"},
    **{"b": "\u0331", "r": "\u030a", "k": "\u0328"},
}
_SYMBOLS = {
    **{"ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "aa": "å"},
    **{"AA": "Å", "l": "ł", "L": "Ł", "i": "\u0131", "j": "ȷ", "dh": "ð", "DH": "Ð", "th": "þ"},
    **{"TH": "Þ", "S": "§", "P": "¶", "copyright": "©", "pounds": "£", "dots": "…", "ldots": "…"},
    **{"textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^"},
    **{"textbraceleft": "{", "textbraceright": "}", "textendash": "\u2013", "textemdash": "—"},
    **{"textquoteleft": "\u2018", "textquoteright": "\u2019", "textquotedblleft": "“"},
    **{"textquotedblright": "”", "textdegree": "°", "texttrademark": "™", "textregistered": "®"},
    **{"TeX": "TeX", "LaTeX": "LaTeX", "textless": "<", "textgreater": ">", "textbar": "|"},
    **{"textunderscore": "_", "textquotesingle": "'", "textbullet": "•", "texteuro": "€"},
}
# Commands whose argument is text, which stays without them.
_TEXT_COMMANDS = frozenset(
    "emph textit textbf textsc textrm textsf texttt textup text mbox hbox url href it bf em sc rm "
    "tt sf bibinfo natexlab noopsort".split()
)
_TOKEN = re.compile(
    r"""
    (?P<math>\$(?:[^$\\]|\\.)*\$)
    | \\(?P<accent>[`'^"~=.]|[uvHcdbrk](?![A-Za-z]))\s*
      (?:\{\s*(?P<braced>\\[ij]|[A-Za-z])\s*\}|(?P<dotless>\\[ij](?![A-Za-z]))|(?P<letter>[A-Za-z]))
    | \\(?P<word>[A-Za-z]+)(?P<after>[ \t\n]*(?:\{\})?)
    | \\(?P<escaped>.)
    | (?P<dashes>-{2,3})
    | (?P<quotes>``|'')
    | (?P<other>[{}~])
    """,
    re.VERBOSE | re.DOTALL,
)
_DASHES = {"--": "\u2013", "---": "—"}
_QUOTES = {"``": "“", "''": "”"}

# A formula as its reader sees one: no space inside of the dollars, and no digit after them.
_MATH = re.compile(r"(?<!\\)\$(?=[^\s$])(?:[^$\\]|\\.)*(?<=[^\s$\\])\$(?!\d)")
_SPECIAL = re.compile(r"[\\{}$&%#_~^]|-(?=-)|`(?=`)|'(?=')|(?<![-\u2013])\u2013(?![-\u2013])")
_ESCAPES = {
    **{"\\": r"\textbackslash{}", "{": r"\textbraceleft{}", "}": r"\textbraceright{}"},
    **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\u2013": "--"},
    **{one: one + "{}" for one in "-`'"},
    **{one: "\\" + one for one in "$&%#_"},
}
# Words whose capitals a style of BibTeX would make small.
_CAPITALS = re.compile(r"(?<![\w$\\])[^\W\d_]\w*[A-Z]\w*")


def decode(latex: str) -> str:
    """Return a value of BibTeX as plain text."""
    pieces: list[str] = []
    end = 0
    # For each open brace, what ends it: nothing, or a brace that is text.
    closings: list[str] = []
    is_argument = is_address = False
    for match in _TOKEN.finditer(latex):
        if match.start() > end:
            is_argument = is_address = False
        pieces.append(latex[end : match.start()])
        end = match.end()
        other = match["other"]
        if other == "{":
            brace = "{" if is_argument else ""
            pieces.append(brace)
            closings.append("}" if brace else " " if is_address else "")
        elif other == "}":
            pieces.append(closings.pop() if closings else "")
        else:
            pieces.append(_decoded(match))
        # The text of a link comes after its address.
        is_address = match["word"] == "href"
        is_argument = bool(match["word"]) and match["word"] not in {*_SYMBOLS, *_TEXT_COMMANDS}
    pieces.append(latex[end:])
    return unicodedata.normalize("NFC", "".join(pieces))


def _decoded(match: re.Match[str]) -> str:
    if accent := match["accent"]:
        letter = (match["braced"] or match["dotless"] or match["letter"]).lstrip("\\")
        return letter + _ACCENTS[accent]
    if word := match["word"]:
        if word in _TEXT_COMMANDS:
            return ""
        return _SYMBOLS.get(word) or match[0]
    if escaped := match["escaped"]:
        return {"\\": " ", " ": " ", "\n": " ", ",": "\u2009", "-": "", "/": ""}.get(
            escaped, escaped
        )
    for kind, table in (("dashes", _DASHES), ("quotes", _QUOTES)):
        if match[kind]:
            return table[match[kind]]
    return "\u00a0" if match["other"] == "~" else match[0]


def encode(text: str, *, protects_capitals: bool = False) -> str:
    """Return plain text as a value of BibTeX, which `decode` reads back."""
    return "".join(_encoded(text, protects_capitals))


def _encoded(text: str, protects_capitals: bool) -> Iterator[str]:
    end = 0
    for formula in _MATH.finditer(text):
        if not is_balanced(formula[0]):
            continue
        yield _escaped(text[end : formula.start()], protects_capitals)
        yield formula[0]
        end = formula.end()
    yield _escaped(text[end:], protects_capitals)


def _escaped(text: str, protects_capitals: bool) -> str:
    escaped = _SPECIAL.sub(lambda match: _ESCAPES[match[0]], text)
    if protects_capitals:
        escaped = _CAPITALS.sub(r"{\g<0>}", escaped)
    return escaped


def is_balanced(text: str) -> bool:
    """Return whether each brace of a text has its other one."""
    depth = 0
    for character in text:
        depth += (character == "{") - (character == "}")
        if depth < 0:
            return False
    return depth == 0
