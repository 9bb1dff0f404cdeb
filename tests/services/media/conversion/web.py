"""Pages as they are on the web, with what a reader of them is after."""

import re

NAVIGATION = "<header><nav><ul>{}</ul></nav></header>".format(
    "".join(f'<li><a href="/n{number}">NavEntry{number}</a></li>' for number in range(12))
)
FOOTER = '<footer><p>FooterImprint 2026 <a href="/privacy">FooterPrivacy</a></p></footer>'
BANNER = '<div id="cookie-banner">CookieConsent: we use cookies <button>Accept</button></div>'
ASIDE = '<aside class="sidebar"><h3>SidebarTitle</h3><a href="/x">SidebarLink</a></aside>'
NOISE = ("NavEntry", "FooterImprint", "CookieConsent", "SidebarTitle")


def sentence(number: int) -> str:
    return (
        f"Sentence {number} says that the river rose by {number} centimetres in spring, and "
        "that nobody in the valley had expected it."
    )


ARTICLE = "".join(f"<p>{sentence(number)}</p>" for number in range(8))
SENTENCES = [sentence(number) for number in range(8)]


def words(text: str) -> str:
    """Return a text without marks and with single spaces."""
    return re.sub(r"[\s\\*`]+", " ", text)


def document(body: str, head: str = "") -> str:
    """Return a whole page."""
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"


ROWS = [(f"RowName{number}", f"{number * 7} kg") for number in range(15)]
PAGES: dict[str, tuple[str, list[str]]] = {
    "an article": (
        f"{BANNER}{NAVIGATION}<main><article><h1>River</h1>{ARTICLE}<h2>SecondHeading</h2>"
        f"<ul><li>PointOne</li><li>PointTwo</li></ul><blockquote>QuotedWords</blockquote>"
        f"</article></main>{ASIDE}{FOOTER}",
        [*SENTENCES, "## SecondHeading", "- PointOne", "QuotedWords"],
    ),
    "nothing but div": (
        f'<div class="top">{NAVIGATION}</div><div id="content"><div>'
        + "".join(f"<div>{one}</div>" for one in SENTENCES)
        + '</div></div><div class="footer">FooterImprint</div>',
        SENTENCES,
    ),
    "a table": (
        f"{NAVIGATION}<main><h1>Weights</h1><p>The table lists the weights of last year.</p>"
        "<table><tr><th>HeadName</th><th>HeadWeight</th></tr>"
        + "".join(f"<tr><td>{name}</td><td>{weight}</td></tr>" for name, weight in ROWS)
        + f"</table></main>{FOOTER}",
        ["HeadName | HeadWeight", *(f"{name} | {weight}" for name, weight in ROWS)],
    ),
    "documentation": (
        f'{NAVIGATION}<div class="document"><h1>API</h1><p>The function <code>add_up</code> '
        "takes two numbers.</p><pre>def add_up(a, b):\n    return a + b</pre><dl><dt>first"
        "</dt><dd>the number to add to</dd></dl><p>It fails when the sum is too large.</p></div>"
        f"{FOOTER}",
        ["add_up", "def add_up(a, b):", "return a + b", "the number to add to", "It fails when"],
    ),
    "questions and answers": (
        f"{NAVIGATION}<div id='question'><h1>How?</h1><p>QuestionText: my valve is stuck.</p>"
        "</div><div id='answers'>"
        + "".join(
            f"<div class='answer'><p>AnswerText{number}: turn the valve {number} to the left "
            "until it clicks, and then wait.</p></div>"
            for number in range(5)
        )
        + f"</div>{FOOTER}",
        ["QuestionText", *(f"AnswerText{number}" for number in range(5))],
    ),
    "a list of links": (
        f"{NAVIGATION}<main><h1>Releases</h1><ul>"
        + "".join(f'<li><a href="/r/{n}">Release 1.{n}</a> fixes Bug{n}</li>' for n in range(20))
        + f"</ul></main>{FOOTER}",
        [
            f"[Release 1.{number}](https://site.example/r/{number}) fixes Bug"
            for number in range(20)
        ],
    ),
    "a short page": ("<h1>Status</h1><p>All systems work.</p>", ["All systems work."]),
    "nothing but a footer": ("<footer>All that there is.</footer>", ["All that there is."]),
    "Japanese": (
        f"{NAVIGATION}<article><h1>河</h1>"
        + "".join(
            f"<p>第{n}段落では、春に川の水位が上がったことを説明しています。</p>" for n in range(6)
        )
        + f"</article>{FOOTER}",
        [f"第{number}段落では" for number in range(6)],
    ),
    "Arabic": (
        f"{NAVIGATION}<article dir=rtl><h1>النهر</h1>"
        + "".join(f"<p>الفقرة رقم {n} تقول إن منسوب النهر ارتفع في الربيع.</p>" for n in range(6))
        + f"</article>{FOOTER}",
        [f"الفقرة رقم {number}" for number in range(6)],
    ),
}
