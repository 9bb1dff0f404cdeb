r"""What a document in LaTeX needs before its text: packages of commands, and characters.

pdfLaTeX stops at characters that it does not know, and the others leave out what their fonts do not
have. Symbols and Greek letters become formulas. Letters of other scripts need XeLaTeX or LuaLaTeX
with a font that has them; pdfLaTeX shows their numbers, so that the document compiles at least.
"""

# ruff: noqa: RUF001  # The characters are those that texts have.

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from services.articles.bibliography.entries import Omission

# Packages beside those that pandoc loads, with the commands that need them.
_PACKAGES: Mapping[str, Sequence[str]] = {
    "bm": ("bm",),
    "cancel": ("cancel", "bcancel", "xcancel"),
    "dsfont": ("mathds",),
    "mathrsfs": ("mathscr",),
    "mathtools": (
        *("coloneqq", "eqqcolon", "mathclap", "underbracket", "overbracket", "prescript"),
        *("xleftrightarrow", "mathmakebox", "shortintertext", "DeclarePairedDelimiter"),
    ),
    "mhchem": ("ce",),
    "siunitx": ("SI", "si", "qty", "unit", "num", "ang"),
    "stmaryrd": ("llbracket", "rrbracket", "mapsfrom"),
}
_OPTIONS = {"mhchem": "[version=4]"}
# Pandoc's package for lines below and through texts stops at accents.
_LINES = (
    "\\ifLuaTeX\\else",
    "\\usepackage[normalem]{ulem}\\renewcommand{\\ul}[1]{\\uline{#1}}\\renewcommand{\\st}[1]{\\sout{#1}}",
    "\\fi",
)
_OTHER_LISTING = "\\begin{Verbatim}"
# Pandoc writes a listing that has this in it by commands that it defines nowhere.
_ENDS_LISTING = "\\end{verbatim}"
_LISTINGS = (
    "\\newenvironment{Shaded}{}{}",
    "\\DefineVerbatimEnvironment{Highlighting}{Verbatim}{commandchars=\\\\\\{\\}}",
    "\\newcommand{\\NormalTok}[1]{#1}",
)
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_SYMBOLS = {
    **{"≤": r"\le", "≥": r"\ge", "≠": r"\ne", "≈": r"\approx", "≡": r"\equiv", "≪": r"\ll"},
    **{"≫": r"\gg", "∼": r"\sim", "≃": r"\simeq", "≅": r"\cong", "∝": r"\propto", "∞": r"\infty"},
    **{"∂": r"\partial", "∇": r"\nabla"},
    **{"∈": r"\in", "∉": r"\notin", "∋": r"\ni", "⊂": r"\subset"},
    **{"⊆": r"\subseteq", "⊃": r"\supset", "⊇": r"\supseteq", "∪": r"\cup", "∩": r"\cap"},
    **{"∅": r"\emptyset", "∀": r"\forall", "∃": r"\exists", "∧": r"\wedge", "∨": r"\vee"},
    **{"→": r"\rightarrow", "←": r"\leftarrow", "↔": r"\leftrightarrow", "⇒": r"\Rightarrow"},
    **{"⇐": r"\Leftarrow", "⇔": r"\Leftrightarrow", "↑": r"\uparrow", "↓": r"\downarrow"},
    **{"↦": r"\mapsto", "−": "-", "⋅": r"\cdot", "∗": r"\ast", "∘": r"\circ", "⊕": r"\oplus"},
    **{"⊗": r"\otimes", "′": r"\prime", "″": r"\prime\prime", "∖": r"\setminus"},
    **{"ℝ": r"\mathbb{R}", "ℕ": r"\mathbb{N}", "ℤ": r"\mathbb{Z}", "ℚ": r"\mathbb{Q}"},
    **{"ℂ": r"\mathbb{C}", "ℓ": r"\ell", "ℏ": r"\hbar", "ℜ": r"\Re", "ℑ": r"\Im"},
    **{"⟨": r"\langle", "⟩": r"\rangle", "⌈": r"\lceil", "⌉": r"\rceil", "⌊": r"\lfloor"},
    **{"⌋": r"\rfloor", "∥": r"\parallel", "⊥": r"\perp", "∠": r"\angle", "∎": r"\blacksquare"},
    **{"✓": r"\checkmark", "★": r"\bigstar", "■": r"\blacksquare", "□": r"\square"},
    **{"▲": r"\blacktriangle", "●": r"\bullet", "○": r"\circ", "◊": r"\lozenge"},
    **{"ϵ": r"\epsilon", "ϕ": r"\phi", "ϑ": r"\vartheta", "ϱ": r"\varrho", "ς": r"\varsigma"},
}
# Symbols that XeLaTeX and LuaLaTeX define anew when the document begins.
_OPERATORS = {"∑": r"\sum", "∏": r"\prod", "∫": r"\int", "√": r"\surd"}
# Greek letters with accents are letters of texts.
_GREEK = re.compile(r"GREEK (SMALL|CAPITAL) LETTER (FINAL )?([A-Z]+)")
_GREEK_NAMES = {"LAMDA": "lambda", "OMICRON": "o"}
# Capitals that LaTeX has no command for are those of Latin.
_LATIN_CAPITALS = {
    **{"ALPHA": "A", "BETA": "B", "EPSILON": "E", "ZETA": "Z", "ETA": "H", "IOTA": "I"},
    **{"KAPPA": "K", "MU": "M", "NU": "N", "OMICRON": "O", "RHO": "P", "TAU": "T", "CHI": "X"},
}
_DIGITS = re.compile(r"(SUPERSCRIPT|SUBSCRIPT) (\w+)")
_DIGIT_VALUES = {
    **{"ZERO": "0", "ONE": "1", "TWO": "2", "THREE": "3", "FOUR": "4", "FIVE": "5", "SIX": "6"},
    **{"SEVEN": "7", "EIGHT": "8", "NINE": "9"},
    **{"MINUS": "-", "LATIN SMALL LETTER N": "n", "LATIN SMALL LETTER I": "i"},
}
# Spaces and marks that say nothing.
_SPACES = {"\u2009": r"\,", "\u202f": r"\,", "\u2002": r"\enspace ", "\u2003": r"\quad "}
_INVISIBLE = frozenset("\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad\ufe0e\ufe0f")
# Up to here, pdfLaTeX and the usual fonts have all letters.
_LAST_LATIN = "\u017f"
# Punctuation beyond that they have, too.
_KNOWN = frozenset("–—‘’‚“”„†‡•…‰‹›€™№ȘșȚțẞ")  # typographic
# Different characters that are declared.
_MOST_CHARACTERS = 5_000
# Fonts of TeX distributions and systems that have letters of many scripts; LuaLaTeX takes each
# letter from the first that has it.
_FALLBACK_FONTS = (
    *("FreeSerif", "Noto Serif CJK SC", "Source Han Serif SC", "FandolSong-Regular"),
    *("Noto Serif", "Noto Serif Hebrew", "Noto Naskh Arabic", "Noto Serif Devanagari"),
    *("Noto Serif Thai", "DejaVu Serif", "DejaVu Sans", "Noto Emoji"),
)
_CJK_FONTS = ("Noto Serif CJK SC", "Source Han Serif SC", "FandolSong-Regular")
# Fonts with the letters of many alphabets, of which XeLaTeX takes the first that exists.
_WIDE_FONTS = ("FreeSerif", "CMU Serif", "Noto Serif", "DejaVu Serif")
_LETTERS = "letters that pdfLaTeX does not have: compile it with LuaLaTeX, or with XeLaTeX"


class Preamble(NamedTuple):
    """Lines of the preamble, and what depends on the program that compiles the document."""

    lines: tuple[str, ...]
    omitted: tuple[Omission, ...] = ()


def preamble(text: str, *, has_lines: bool) -> Preamble:
    """Return what a document needs.

    Args:
        text: its texts and formulas.
        has_lines: whether it has texts that are underlined or struck through.
    """
    commands = frozenset(_COMMAND.findall(text))
    lines = [
        f"\\usepackage{_OPTIONS.get(package, '')}{{{package}}}"
        for package, needed_by in _PACKAGES.items()
        if not commands.isdisjoint(needed_by)
    ]
    lines += _LINES if has_lines else ()
    if _OTHER_LISTING in text or _ENDS_LISTING in text:
        lines += ("\\usepackage{fancyvrb}", *_LISTINGS)
    unusual = [one for one in sorted(set(text)) if one > _LAST_LATIN and one not in _KNOWN]
    made = {
        one: latex for one in unusual[:_MOST_CHARACTERS] if (latex := _formula(one)) is not None
    }
    if made:
        lines.append("\\usepackage{newunicodechar}")
    for one, latex in made.items():
        line = f"\\newunicodechar{{{one}}}{{{latex}}}"
        lines.append(f"\\ifPDFTeX{line}\\fi" if one in _OPERATORS else line)
    letters = [one for one in unusual[:_MOST_CHARACTERS] if one not in made]
    if not letters:
        return Preamble(tuple(lines))
    lines += _other_letters(letters)
    return Preamble(tuple(lines), (Omission("".join(letters[:20]), _LETTERS),))


def _formula(character: str) -> str | None:
    """Return the LaTeX of a symbol; None for a letter of another script."""
    if character in _SYMBOLS:
        return f"\\ensuremath{{{_SYMBOLS[character]}}}"
    if character in _OPERATORS:
        return f"\\ensuremath{{{_OPERATORS[character]}}}"
    if character in _SPACES:
        return _SPACES[character]
    if character in _INVISIBLE:
        return ""
    name = unicodedata.name(character, "")
    if greek := _GREEK.fullmatch(name):
        return _greek(greek[3], is_capital=greek[1] == "CAPITAL", is_final=bool(greek[2]))
    if (digit := _DIGITS.match(name)) and digit[2] in _DIGIT_VALUES:
        command = "super" if digit[1] == "SUPERSCRIPT" else "sub"
        return f"\\text{command}script{{{_DIGIT_VALUES[digit[2]]}}}"
    return None


def _greek(name: str, *, is_capital: bool, is_final: bool) -> str:
    if is_final:
        return "\\ensuremath{\\varsigma}"
    if is_capital and name in _LATIN_CAPITALS:
        return f"\\ensuremath{{\\mathrm{{{_LATIN_CAPITALS[name]}}}}}"
    command = _GREEK_NAMES.get(name, name.lower())
    if command == "o":
        return "\\ensuremath{o}"
    return f"\\ensuremath{{\\{command.capitalize() if is_capital else command}}}"


def _other_letters(letters: Collection[str]) -> list[str]:
    cjk = _first_font(_CJK_FONTS, "\\usepackage{xeCJK}\\setCJKmainfont")
    main = _first_font(_WIDE_FONTS, "\\setmainfont")
    return [
        "\\ifPDFTeX",
        "\\newcommand{\\missingletter}[2]{\\ifcsname u8:\\detokenize{#1}\\endcsname\\else"
        "\\DeclareUnicodeCharacter{#2}{{\\tiny[U+#2]}}\\fi}",
        *(f"\\missingletter{{{one}}}{{{ord(one):04X}}}" for one in letters),
        "\\else\\ifLuaTeX",
        # Without one of the fonts, LuaLaTeX loads none.
        "\\newcommand{\\otherfonts}{}",
        *(
            f'\\IfFontExistsTF{{{font}}}{{\\edef\\otherfonts{{\\otherfonts"{font}:mode=node;",}}}}{{}}'
            for font in _FALLBACK_FONTS
        ),
        "\\ifx\\otherfonts\\empty\\else",
        '\\directlua{luaotfload.add_fallback("otherletters", {\\otherfonts})}',
        "\\setmainfont{Latin Modern Roman}[RawFeature={fallback=otherletters}]",
        "\\setsansfont{Latin Modern Sans}[RawFeature={fallback=otherletters}]",
        "\\setmonofont{Latin Modern Mono}[RawFeature={fallback=otherletters}]",
        "\\fi",
        "\\else",
        *([cjk] if any(map(_is_cjk, letters)) else []),
        *([main] if not all(map(_is_cjk, letters)) else []),
        "\\fi\\fi",
    ]


def _first_font(fonts: Sequence[str], command: str) -> str:
    """Return the LaTeX that sets the first of some fonts that exists, or none."""
    tried = "".join(f"\\IfFontExistsTF{{{font}}}{{{command}{{{font}}}}}{{" for font in fonts)
    return tried + "}" * len(fonts)


def _is_cjk(letter: str) -> bool:
    return (
        "\u2e80" <= letter <= "\u9fff" or "\uac00" <= letter <= "\ud7a3" or letter >= "\U00020000"
    )
