"""Personalities of the upstream: providers that have another provider's API with differences.

Each is emulated below a path with its name: `http://HOST:PORT/deepseek/v1` and so on.
"""

from collections.abc import Mapping, Sequence

from tests.upstream.personalities.azure import AZURE
from tests.upstream.personalities.base import Personality, as_it_is
from tests.upstream.personalities.claude_5 import CLAUDE_5
from tests.upstream.personalities.deepseek import DEEPSEEK
from tests.upstream.personalities.gemini_openai import GEMINI_OPENAI
from tests.upstream.personalities.mistral import MISTRAL
from tests.upstream.personalities.ollama import OLLAMA
from tests.upstream.personalities.openai_o import OPENAI_O
from tests.upstream.personalities.openrouter import OPENROUTER
from tests.upstream.personalities.vllm import VLLM

# The makers of the APIs themselves.
USUAL = Personality("", "the maker of the API", convert_responses_request=as_it_is)

# To add a personality, define it in a module here, or pass it to `app.create_app`.
PERSONALITIES: Sequence[Personality] = (
    AZURE,
    CLAUDE_5,
    DEEPSEEK,
    GEMINI_OPENAI,
    MISTRAL,
    OLLAMA,
    OPENAI_O,
    OPENROUTER,
    VLLM,
)
OF_OPENAI: Mapping[str, Personality] = {
    one.name: one for one in PERSONALITIES if one.dialect == "openai"
}
OF_ANTHROPIC: Mapping[str, Personality] = {
    one.name: one for one in PERSONALITIES if one.dialect == "anthropic"
}
