"""axe-core's rules for pages that everybody can use."""

from functools import cache
from pathlib import Path

from playwright.async_api import Page

_AXE = Path("facade/console/node_modules/axe-core/axe.min.js")
_SERIOUS = ("serious", "critical")


@cache
def _script() -> str:
    return _AXE.read_text("utf-8")


async def serious_violations(page: Page) -> list[str]:
    """Return what axe-core finds serious or critical on a page: rule and element."""
    # A script that the debugger evaluates is not subject to the page's policy.
    await page.evaluate(_script())
    result = await page.evaluate("axe.run({resultTypes: ['violations']})")
    return [
        f"{violation['id']}: {node['html']}"
        for violation in result["violations"]
        if violation["impact"] in _SERIOUS
        for node in violation["nodes"]
    ]
