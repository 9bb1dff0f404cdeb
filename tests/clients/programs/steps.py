"""Runs the steps of a program against a gateway: `python try.py ADDRESS KEY`."""

import asyncio
import inspect
import sys
import traceback
from collections.abc import Callable

ADDRESS, KEY = sys.argv[1:3]
MODELS = ("openai/echo", "anthropic/echo", "gemini/echo", "sandbox/echo")


def run(*steps: Callable[[str], object]) -> None:
    """Run each step with each model; exit with 1 where any of them failed."""
    failed = False
    with asyncio.Runner() as runner:
        for model in MODELS:
            for step in steps:
                try:
                    made = step(model)
                    if inspect.iscoroutine(made):
                        runner.run(made)
                except Exception:
                    failed = True
                    print(f"FAILED: {step.__name__} with {model}")
                    traceback.print_exc(file=sys.stdout)
                else:
                    print(f"passed: {step.__name__} with {model}")
    sys.exit(failed)
