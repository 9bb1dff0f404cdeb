"""The expected outcome of each fault: both endpoints over both dialects, both forms, the modes."""

import pytest

from tests.faults.scenario import CHAT, MESSAGES

ENDPOINTS = pytest.mark.parametrize("path", [CHAT, MESSAGES], ids=["chat", "messages"])
FORMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
PROVIDERS = pytest.mark.parametrize("provider", ["openai", "anthropic"])
MODES = pytest.mark.parametrize("mode", ["auto", "enabled", "strict"])
CHAINS = pytest.mark.parametrize("mode", ["enabled", "strict"])
