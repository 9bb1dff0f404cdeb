"""Presets of providers: addresses, and the environment variables of their keys.

Source: each provider's documentation of its OpenAI-compatible (or its own) API. A section
`[providers.NAME]` of the settings with the name of a preset inherits its address and kind. A key in
the environment is enough to add the provider.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple


class Preset(NamedTuple):
    """The preset of one provider.

    Attributes:
        key_variable: environment variable with the provider's key, or "".
        other_key_variable: alternative variable with the key, or "".
        base_url: address; `{…}` is replaced by the value of `place_variable`.
        kind: the provider's API.
        address_variable: variable with an address that overrides `base_url`, or "".
        place_variable: variable with the account-specific part of the address, or "".
        place: default for that part if the variable is not set, or "".
        choice_variable: variable that chooses a provider without a key; see `clouds`.
    """

    key_variable: str
    base_url: str
    kind: Literal["openai", "anthropic", "gemini", "bedrock", "vertex"] = "openai"
    other_key_variable: str = ""
    address_variable: str = ""
    place_variable: str = ""
    place: str = ""
    choice_variable: str = ""

    @property
    def joining_variable(self) -> str:
        """The variable that adds the provider: that with its key, or that which chooses it."""
        return self.key_variable or self.choice_variable

    def set_key_variable(self, environ: Mapping[str, str]) -> str:
        """Return the name of the set variable with the key, or "" if none is set."""
        names = (self.key_variable, self.other_key_variable)
        return next((name for name in names if name and environ.get(name)), "")

    def address(self, environ: Mapping[str, str]) -> str:
        """Return the provider's address, or "" if a required variable is not set."""
        if self.address_variable and (configured_address := environ.get(self.address_variable)):
            return configured_address
        if not self.place_variable:
            return self.base_url
        place = (environ.get(self.place_variable) or self.place).rstrip("/")
        return self.base_url.format(place) if place else ""


PRESETS: Mapping[str, Preset] = {
    "openai": Preset(
        "OPENAI_API_KEY", "https://api.openai.com/v1", address_variable="OPENAI_BASE_URL"
    ),
    "anthropic": Preset(
        "ANTHROPIC_API_KEY",
        "https://api.anthropic.com",
        kind="anthropic",
        address_variable="ANTHROPIC_BASE_URL",
    ),
    "gemini": Preset(
        "GEMINI_API_KEY",
        "https://generativelanguage.googleapis.com/v1beta",
        kind="gemini",
        other_key_variable="GOOGLE_API_KEY",
    ),
    "azure": Preset("AZURE_OPENAI_API_KEY", "{}/openai/v1", place_variable="AZURE_OPENAI_ENDPOINT"),
    "bedrock": Preset(
        "AWS_BEARER_TOKEN_BEDROCK",
        "https://bedrock-runtime.{}.amazonaws.com",
        kind="bedrock",
        place_variable="AWS_REGION",
        place="us-east-1",
    ),
    # Without a key: it takes access tokens.
    "vertex": Preset(
        "",
        "https://aiplatform.googleapis.com",
        kind="vertex",
        place_variable="GOOGLE_CLOUD_PROJECT",
        choice_variable="GOOGLE_GENAI_USE_VERTEXAI",
    ),
    "cerebras": Preset("CEREBRAS_API_KEY", "https://api.cerebras.ai/v1"),
    "cohere": Preset(
        "COHERE_API_KEY",
        "https://api.cohere.ai/compatibility/v1",
        other_key_variable="CO_API_KEY",
    ),
    "dashscope": Preset(
        "DASHSCOPE_API_KEY", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"
    ),
    "deepseek": Preset("DEEPSEEK_API_KEY", "https://api.deepseek.com/v1"),
    "fireworks": Preset("FIREWORKS_API_KEY", "https://api.fireworks.ai/inference/v1"),
    # Not GITHUB_TOKEN and HF_TOKEN, which are often set for other programs.
    "github": Preset("GITHUB_API_KEY", "https://models.github.ai/inference"),
    "groq": Preset("GROQ_API_KEY", "https://api.groq.com/openai/v1"),
    "huggingface": Preset("HUGGINGFACE_API_KEY", "https://router.huggingface.co/v1"),
    # Its OpenAI-compatible API has thinking in the text of answers.
    "minimax": Preset("MINIMAX_API_KEY", "https://api.minimax.io/anthropic", kind="anthropic"),
    "mistral": Preset("MISTRAL_API_KEY", "https://api.mistral.ai/v1"),
    "moonshot": Preset("MOONSHOT_API_KEY", "https://api.moonshot.ai/v1"),
    "nvidia": Preset("NVIDIA_API_KEY", "https://integrate.api.nvidia.com/v1"),
    "openrouter": Preset("OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
    "perplexity": Preset(
        "PERPLEXITY_API_KEY", "https://api.perplexity.ai", other_key_variable="PPLX_API_KEY"
    ),
    "sambanova": Preset("SAMBANOVA_API_KEY", "https://api.sambanova.ai/v1"),
    "together": Preset("TOGETHER_API_KEY", "https://api.together.xyz/v1"),
    "xai": Preset("XAI_API_KEY", "https://api.x.ai/v1"),
    "zai": Preset("ZAI_API_KEY", "https://api.z.ai/api/paas/v4"),
}
