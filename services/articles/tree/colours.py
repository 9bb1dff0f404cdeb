"""The grammar of literal CSS colours (CSS Color 4).

Valid are hex notation, the named colours, and the functions with plain numbers. `calc()`, `var()`,
`color-mix()` and system colours are not: they have no meaning outside of a style sheet.
"""

import re

_NAMES = frozenset(
    """
    aliceblue antiquewhite aqua aquamarine azure beige bisque black blanchedalmond blue blueviolet
    brown burlywood cadetblue chartreuse chocolate coral cornflowerblue cornsilk crimson cyan
    darkblue darkcyan darkgoldenrod darkgray darkgreen darkgrey darkkhaki darkmagenta
    darkolivegreen darkorange darkorchid darkred darksalmon darkseagreen darkslateblue
    darkslategray darkslategrey darkturquoise darkviolet deeppink deepskyblue dimgray dimgrey
    dodgerblue firebrick floralwhite forestgreen fuchsia gainsboro ghostwhite gold goldenrod gray
    green greenyellow grey honeydew hotpink indianred indigo ivory khaki lavender lavenderblush
    lawngreen lemonchiffon lightblue lightcoral lightcyan lightgoldenrodyellow lightgray
    lightgreen lightgrey lightpink lightsalmon lightseagreen lightskyblue lightslategray
    lightslategrey lightsteelblue lightyellow lime limegreen linen magenta maroon
    mediumaquamarine mediumblue mediumorchid mediumpurple mediumseagreen mediumslateblue
    mediumspringgreen mediumturquoise mediumvioletred midnightblue mintcream mistyrose moccasin
    navajowhite navy oldlace olive olivedrab orange orangered orchid palegoldenrod palegreen
    paleturquoise palevioletred papayawhip peachpuff peru pink plum powderblue purple
    rebeccapurple red rosybrown royalblue saddlebrown salmon sandybrown seagreen seashell sienna
    silver skyblue slateblue slategray slategrey snow springgreen steelblue tan teal thistle
    tomato turquoise violet wheat white whitesmoke yellow yellowgreen transparent currentcolor
    """.split()
)

_NUMBER = r"[+-]?(?:\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})(?:e[+-]?\d{1,2})?"
_VALUE = rf"(?:{_NUMBER}(?:%|deg|grad|rad|turn)?|none)"
_PLAIN = rf"{_NUMBER}(?:%|deg|grad|rad|turn)?"
_COMMA = r"[ \t]*,[ \t]*"
_ALPHA = rf"(?:[ \t]*/[ \t]*{_VALUE})?"
_SPACES = "srgb|srgb-linear|display-p3|a98-rgb|prophoto-rgb|rec2020|xyz|xyz-d50|xyz-d65"

_COLOUR = re.compile(
    r"#(?:[0-9a-f]{3}|[0-9a-f]{4}|[0-9a-f]{6}|[0-9a-f]{8})"
    rf"|(?:rgba?|hsla?)\([ \t]*{_PLAIN}(?:{_COMMA}{_PLAIN}){{2,3}}[ \t]*\)"
    r"|(?:rgba?|hsla?|hwb|lab|lch|oklab|oklch)"
    rf"\([ \t]*{_VALUE}(?:[ \t]+{_VALUE}){{2}}{_ALPHA}[ \t]*\)"
    rf"|color\([ \t]*(?:{_SPACES})(?:[ \t]+{_VALUE}){{3}}{_ALPHA}[ \t]*\)",
    re.IGNORECASE | re.ASCII,
)
_LONGEST = 128


def is_colour(value: str) -> bool:
    """Return whether a string is a CSS colour."""
    if len(value) > _LONGEST:
        return False
    return value.lower() in _NAMES or _COLOUR.fullmatch(value) is not None
