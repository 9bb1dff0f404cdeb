"""Formulas on lines of their own as LaTeX writes them: in environments, with labels."""

import re
from typing import NamedTuple

# Environments that are formulas, without the star of those that are not numbered.
ENVIRONMENTS = ("equation", "align", "alignat", "eqnarray", "flalign", "gather", "multline")
TEX_LABEL = re.compile(r"\\label\s*\{([^{}]*)\}")

_ENVIRONMENT = re.compile(r"\\begin\{(\w+)\*?\}(.*)\\end\{\1\*?\}", re.DOTALL)
# What environments are inside of a formula.
_INNER = {"align": "aligned", "eqnarray": "aligned", "flalign": "aligned", "gather": "gathered"}


class TexEquation(NamedTuple):
    """A formula without its environment, and the labels in it."""

    latex: str
    labels: tuple[str, ...]


def parse_equation(latex: str) -> TexEquation:
    """Return a formula as documents hold it: the lines of `align` are those of `aligned`."""
    labels = tuple(TEX_LABEL.findall(latex))
    latex = TEX_LABEL.sub("", latex).strip()
    environment = _ENVIRONMENT.fullmatch(latex)
    if environment is not None:
        name, inner = environment[1], environment[2].strip()
        if name == "equation":
            latex = inner
        elif name in _INNER:
            latex = f"\\begin{{{_INNER[name]}}}{inner}\\end{{{_INNER[name]}}}"
    return TexEquation(latex, labels)
