"""Writes `services/inference/facts/context_sizes.json` from the data of the package genai-prices.

`make context-sizes` runs it in an environment of its own, so that the gateway depends on no
more than the file.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from genai_prices.data import providers

FILE = Path(__file__).parents[2] / "services" / "inference" / "context_sizes.json"
# Providers whose own names for models are known at an address; see `catalogue.toml`.
SECTIONS = frozenset(
    {
        *("anthropic", "cerebras", "deepseek", "fireworks", "google", "groq", "mistral"),
        *("moonshotai", "openai", "openrouter", "perplexity", "together", "x-ai", "zai"),
    }
)


def names(clause: Any) -> Iterator[str]:
    """Return the whole names that a rule of the data set takes."""
    if name := getattr(clause, "equals", None):
        yield name
    for inner in getattr(clause, "or_", None) or ():
        yield from names(inner)


def main() -> None:
    """Write the file."""
    sizes: dict[str, dict[str, int]] = {}
    for provider in providers:
        if provider.id not in SECTIONS:
            continue
        section = sizes.setdefault(provider.id, {})
        for model in provider.models:
            if model.context_window:
                for name in (model.id, *names(model.match)):
                    section.setdefault(name, model.context_window)
    if missing := SECTIONS - sizes.keys():
        raise SystemExit(f"the data set has lost {sorted(missing)}")
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    FILE.write_bytes(orjson.dumps(sizes, option=options))


if __name__ == "__main__":
    main()
