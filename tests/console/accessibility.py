"""axe-core's rules for pages that everybody can use."""

from functools import cache
from pathlib import Path

from playwright.async_api import Page

_AXE = Path("facade/console/node_modules/axe-core/axe.min.js")
_SERIOUS = ("serious", "critical")


@cache
def _script() -> str:
    return _AXE.read_text("utf-8")


async def serious_violations(page: Page, *rules: str) -> list[str]:
    """Return what axe-core finds serious or critical on a page: rule and element.

    Only `rules` are checked, where any are named.
    """
    # A script that the debugger evaluates is not subject to the page's policy.
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_script())
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    result = await page.evaluate("options => axe.run(options)", options)
    return [
        f"{violation['id']}: {node['html']}"
        for violation in result["violations"]
        if violation["impact"] in _SERIOUS
        for node in violation["nodes"]
    ]


async def serious_violations_in_the_dark(page: Page) -> list[str]:
    """Return what `serious_violations` finds about the colours of a page where it is dark."""
    await page.emulate_media(color_scheme="dark")
    violations = await serious_violations(page, "color-contrast")
    await page.emulate_media(color_scheme="light")
    return violations
