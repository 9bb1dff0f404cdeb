"""The personalities of the HTTP sandbox: providers that speak a dialect in their own way.

Each is played below a path of its own name: `http://HOST:PORT/deepseek/v1` and so on.
"""

from collections.abc import Mapping

from services.sandbox.personalities.azure import AZURE
from services.sandbox.personalities.base import Personality
from services.sandbox.personalities.claude_5 import CLAUDE_5
from services.sandbox.personalities.deepseek import DEEPSEEK
from services.sandbox.personalities.gemini_openai import GEMINI_OPENAI
from services.sandbox.personalities.mistral import MISTRAL
from services.sandbox.personalities.ollama import OLLAMA
from services.sandbox.personalities.openai_o import OPENAI_O
from services.sandbox.personalities.openrouter import OPENROUTER
from services.sandbox.personalities.vllm import VLLM

# The makers of the dialects themselves.
USUAL = Personality("the dialect's maker")

OF_OPENAI: Mapping[str, Personality] = {
    "azure": AZURE,
    "deepseek": DEEPSEEK,
    "gemini-openai": GEMINI_OPENAI,
    "mistral": MISTRAL,
    "ollama": OLLAMA,
    "openai-o": OPENAI_O,
    "openrouter": OPENROUTER,
    "vllm": VLLM,
}
OF_ANTHROPIC: Mapping[str, Personality] = {"claude-5": CLAUDE_5}
