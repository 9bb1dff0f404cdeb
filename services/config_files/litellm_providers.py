"""Translation of the providers that LiteLLM's `litellm_params` name: addresses and keys. Pure.

Source: the pages of LiteLLM's providers (docs.litellm.ai/docs/providers), for the prefixes of model
names, the addresses that are used without `api_base`, and the variables of keys.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from services.common.settings.presets import PRESETS
from services.config_files.litellm_values import Report, Section, variable_of

OPENAI = "openai"


class KnownMaker(NamedTuple):
    """The provider that a prefix of LiteLLM's model names stands for.

    Attributes:
        url: the address without `api_base`, or "" if there is none.
        key_variable: the variable with the key without `api_key`, or "".
        version: what is appended to an `api_base` without a path.
        preset: name of the preset here, or "".
        address_variable: the variable with the address without `api_base`, or "".
    """

    url: str = ""
    key_variable: str = ""
    version: str = ""
    preset: str = ""
    address_variable: str = ""


def _like_preset(name: str, key_variable: str = "") -> KnownMaker:
    preset = PRESETS[name]
    return KnownMaker(preset.base_url, key_variable or preset.key_variable, preset=name)


_AZURE = KnownMaker(
    "", "AZURE_API_KEY", "/openai/v1", preset="azure", address_variable="AZURE_API_BASE"
)
_OLLAMA = KnownMaker("http://127.0.0.1:11434", "", "/v1")
# By the prefix of `litellm_params.model`.
MAKERS: Mapping[str, KnownMaker] = {
    **{
        name: _like_preset(name)
        for name in (
            *("openai", "anthropic", "gemini", "groq", "mistral", "deepseek", "openrouter"),
            *("xai", "cerebras", "cohere", "dashscope", "huggingface", "moonshot", "sambanova"),
            "zai",
        )
    },
    "text-completion-openai": _like_preset("openai"),
    "azure": _AZURE,
    "azure_ai": _AZURE._replace(
        key_variable="AZURE_AI_API_KEY", address_variable="AZURE_AI_API_BASE"
    ),
    "together_ai": _like_preset("together", "TOGETHERAI_API_KEY"),
    "fireworks_ai": _like_preset("fireworks"),
    "perplexity": _like_preset("perplexity", "PERPLEXITYAI_API_KEY"),
    "ollama": _OLLAMA,
    "ollama_chat": _OLLAMA,
    "hosted_vllm": KnownMaker(version="/v1", address_variable="HOSTED_VLLM_API_BASE"),
    "openai_like": KnownMaker(),
    "custom_openai": KnownMaker(),
    "lm_studio": KnownMaker("http://127.0.0.1:1234", "", "/v1"),
    "llamafile": KnownMaker("http://127.0.0.1:8080", "", "/v1"),
    "docker_model_runner": KnownMaker("http://127.0.0.1:12434/engines/llama.cpp/v1"),
    "xinference": KnownMaker("http://127.0.0.1:9997", "", "/v1"),
    "litellm_proxy": KnownMaker(
        "", "LITELLM_PROXY_API_KEY", address_variable="LITELLM_PROXY_API_BASE"
    ),
    "cohere_chat": _like_preset("cohere"),
    "deepinfra": KnownMaker("https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"),
    "github": KnownMaker("https://models.inference.ai.azure.com", "GITHUB_API_KEY"),
    "hyperbolic": KnownMaker("https://api.hyperbolic.xyz/v1", "HYPERBOLIC_API_KEY"),
    "lambda_ai": KnownMaker("https://api.lambda.ai/v1", "LAMBDA_API_KEY"),
    "minimax": KnownMaker("https://api.minimax.io/v1", "MINIMAX_API_KEY"),
    "nvidia_nim": _like_preset("nvidia", "NVIDIA_NIM_API_KEY"),
    "vercel_ai_gateway": KnownMaker("https://ai-gateway.vercel.sh/v1", "VERCEL_AI_GATEWAY_API_KEY"),
    "volcengine": KnownMaker("https://ark.cn-beijing.volces.com/api/v3", "VOLCENGINE_API_KEY"),
}
_REMARKS = {
    "bedrock": "write [providers.bedrock] with the region (docs/providers/bedrock.md); its models "
    "are bedrock/NAME",
    "vertex_ai": "write [providers.vertex] with the project and the region "
    "(docs/providers/vertex.md); its models are vertex/NAME",
}
# Azure's v1 API is at one path of these, whatever LiteLLM appends to them.
_AZURE_HOSTS = (".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com")
_LOCAL_KEYS = frozenset(
    {
        *("none", "dummy", "fake", "fake-key", "anything", "empty", "not-needed", "no-key"),
        *("no-key-required", "sk-no-key-required", "lm-studio", "ollama", "local", "na"),
    }
)


class Refusal(Exception):
    """Error raised for an entry that cannot be translated; the message says why."""


def split(model: str, provider: str) -> tuple[str, str]:
    """Return the prefix of a model's name, and the provider's own name for the model."""
    prefix, slash, upstream = model.partition("/")
    if provider:
        return provider, upstream if slash and prefix == provider else model
    if slash and prefix in MAKERS:
        return prefix, upstream
    if slash and "." not in prefix and prefix.islower():
        return prefix, upstream
    for beginning, maker in (("claude", "anthropic"), ("gemini", "gemini")):
        if model.startswith(beginning):
            return maker, model
    return OPENAI, model


class ImportedProviders:
    """The providers of all entries: one for each address and key.

    Attributes:
        sections: sections of the settings, by name.
    """

    def __init__(self, report: Report, variables: Mapping[str, str]) -> None:
        """Begin without providers.

        Args:
            report: takes lines about what remains to be done.
            variables: values of variables, by name.
        """
        self.sections: dict[str, dict[str, Any]] = {}
        self._report = report
        self._variables = variables

    def resolved(self, text: str) -> str:
        """Return a text, or the value of the variable that it names; "" if that is not set."""
        variable = variable_of(text)
        return self._variables.get(variable, "") if variable else text

    def name_of(self, prefix: str, parameters: Section) -> str:
        """Return the name of the provider of an entry; add it if it is new.

        Raises:
            Refusal: there is no such provider here, or its address is missing or invalid.
        """
        maker = MAKERS.get(prefix)
        if maker is None:
            remark = "its OpenAI-compatible address, if it has one, may be a provider"
            raise Refusal(_REMARKS.get(prefix, f"no provider {prefix!r} here; {remark}"))
        steps: list[str] = []
        section = self._section(maker, parameters, steps)
        for name, existing in self.sections.items():
            if existing == section:
                return name
        base = maker.preset or _name_of(section["base_url"], prefix)
        name, number = base, 1
        while name in self.sections:
            number += 1
            name = f"{base}-{number}"
        self.sections[name] = section
        self._report.steps += [f"providers.{name}: {step}" for step in steps]
        return name

    def _section(self, maker: KnownMaker, parameters: Section, steps: list[str]) -> dict[str, Any]:
        """Return the section of an entry's provider; add what remains to be done for it."""
        preset = PRESETS.get(maker.preset)
        kind: str = preset.kind if preset else OPENAI
        address = parameters.text("base_url")
        if not address:
            address = parameters.text("api_base")
        elif "api_base" in parameters.values:
            parameters.unsupported("api_base", "base_url is used")
        url = self._address(maker, address, steps)
        if kind == "anthropic" or "/anthropic" in urlsplit(url).path:
            # The adapter of Anthropic's API appends the rest itself.
            kind, url = "anthropic", url.removesuffix("/messages").removesuffix("/v1")
        section: dict[str, Any] = {"kind": kind, "base_url": url}
        # LiteLLM sends a maker's key to any address; here another server is not sent it.
        default_key = maker.key_variable if url == maker.url or not maker.url else ""
        section |= _credentials(parameters, default_key, steps)
        headers = parameters.section("extra_headers")
        for name, value in headers.values.items():
            if variable_of(value) or "${" in str(value):
                headers.unsupported(name, "a variable; headers of providers are texts")
            else:
                section.setdefault("headers", {})[name] = str(value)
        return section

    def _address(self, maker: KnownMaker, address: str, steps: list[str]) -> str:
        """Return the address of an entry's provider."""
        variable = variable_of(address)
        if not address and not maker.url:
            variable = maker.address_variable
        if variable:
            address = self._variables.get(variable, "")
            if not address:
                steps.append(
                    f"{variable}, which has the address, is not set; write its value to base_url"
                )
                address = f"https://{variable.lower().replace('_', '-')}.invalid"
        url = (address or maker.url).rstrip("/")
        if not url:
            raise Refusal("needs api_base, which is missing")
        if not _is_address(url):
            raise Refusal(f"{url!r} is no address")
        return _with_version(url, maker)


def _credentials(parameters: Section, default_key: str, steps: list[str]) -> dict[str, str]:
    key = parameters.text("api_key")
    if variable := variable_of(key):
        return {"api_key_env": variable}
    if key.lower() in _LOCAL_KEYS:
        parameters.needless("api_key", "a server without keys is sent none")
        return {}
    if key:
        steps.append("the key stands in the file; better use api_key_env or api_key_file")
        return {"api_key": key}
    return {"api_key_env": default_key} if default_key else {}


def _with_version(url: str, maker: KnownMaker) -> str:
    """Return an address with the path of its OpenAI-compatible API."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if maker.preset == "azure" and host.endswith(_AZURE_HOSTS):
        path = "/anthropic" if parts.path.endswith("/anthropic") else maker.version
        return f"{parts.scheme}://{parts.netloc}{path}"
    if maker.version and not parts.path.strip("/"):
        is_serverless = host.endswith((".models.ai.azure.com", ".inference.ai.azure.com"))
        return url + ("/v1" if is_serverless else maker.version)
    return url


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and "${" not in url
    except ValueError:
        return False


def _name_of(url: str, prefix: str) -> str:
    """Return a name for the provider at an address."""
    host = urlsplit(url).hostname or ""
    if host in ("127.0.0.1", "localhost", "0.0.0.0", "::1"):
        return prefix
    return host.replace(".", "-").replace(":", "-").strip("-")
