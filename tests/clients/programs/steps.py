"""Runs the steps of a program against a gateway: `python try.py ADDRESS KEY MODEL...`.

The first four models are one of each kind of provider, the fifth is of one with OpenAI's responses
of its own, the others are of personalities.
"""

import asyncio
import faulthandler
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence

# A step takes seconds; one that hangs, or whose threads do, ends the program, which prints where.
STEP_S = 300
ADDRESS, KEY, *MODELS = sys.argv[1:]
KINDS = MODELS[:4]
OF_RESPONSES = MODELS[:5]
# Models that make vectors; Anthropic's API has none.
EMBEDDING = [
    f"{model.partition('/')[0]}/embed" for model in KINDS if not model.startswith("anthropic/")
]


def has_json_mode(model: str) -> bool:
    """Whether a model's provider has a JSON mode; others are told in words, which it quotes."""
    return not model.startswith(("anthropic/", "claude-5/"))


def shows_thoughts(model: str) -> bool:
    """Whether a model's provider shows what the model thinks."""
    return not model.startswith(("azure/", "openai-o/", "gemini-openai/"))


def run(*steps: Callable[[str], object], models: Iterable[str] = MODELS) -> None:
    """Run each step with each model; exit with 1 where any of them failed."""
    run_all({steps: models})


def run_sampled(
    *steps: Callable[[str], object], one: Callable[[str], object], of_all: Sequence[str]
) -> None:
    """Run each step with some kinds of models, and one of them with the other kinds."""
    sampled = [model for model in KINDS if model.partition("/")[0] in of_all]
    run_all({steps: sampled, (one,): [model for model in KINDS if model not in sampled]})


def run_all(over: Mapping[Sequence[Callable[[str], object]], Iterable[str]]) -> None:
    """Run several sets of steps, each with models of its own; see `run`."""
    failed = False
    with asyncio.Runner() as runner:
        for steps, model in ((steps, model) for steps, models in over.items() for model in models):
            for step in steps:
                faulthandler.dump_traceback_later(STEP_S, exit=True)
                try:
                    made = step(model)
                    if inspect.iscoroutine(made):
                        runner.run(made)
                except Exception:
                    failed = True
                    print(f"FAILED: {step.__name__} with {model}", flush=True)
                    traceback.print_exc(file=sys.stdout)
                else:
                    print(f"passed: {step.__name__} with {model}", flush=True)
    sys.exit(failed)
