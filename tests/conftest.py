"""What holds for all tests."""

import gc

import hypothesis
import pytest

# How long an example takes says how busy the machine is, and nothing about the code.
hypothesis.settings.register_profile("gateway", deadline=None)
hypothesis.settings.load_profile("gateway")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Keep the garbage collector from the tests themselves: they are a million objects."""
    gc.collect()
    gc.freeze()
