"""The codes and words with which all providers refuse a prompt that is too long."""

import re

CONTEXT_CODES = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",  # llama.cpp
        "model_max_prompt_tokens_exceeded",  # GitHub Copilot
        "tokens_limit_reached",  # GitHub Models
        "1261",  # Z.ai
    }
)
CONTEXT_WORDS = re.compile(
    "|".join(
        (
            r"context_length_exceeded",
            r"prompt (?:is )?too long",
            r"(?:input|prompt|context)s? (?:is|are) too long",
            r"maximum (?:context|model|prompt) length",
            r"max(?:imum)? context length",
            # OpenAI, Anthropic, llama.cpp, MiniMax, Bedrock
            r"exceed(?:s|ed)? (?:the )?(?:available |model'?s? |maximum )?"
            r"context (?:length|limit|size|window)",
            r"context (?:length|limit|size|window) (?:is |was )?exceed(?:s|ed)\b",
            # Gemini, GitHub Copilot
            r"(?:input|prompt) token count .{0,40}(?:exceeds|supports up to)",
            # LM Studio, SGLang
            r"(?:longer|greater) than the (?:model'?s )?context",
            r"context length of only",
            # Groq, Cerebras
            r"reduce the length of the (?:messages|prompt|input)",
            # DashScope
            r"range of input length should be",
            # Moonshot
            r"exceeded model token limit",
            # Z.ai
            r"prompt exceeds max length",
            # Cohere, Bedrock
            r"too many (?:input )?tokens\b",
            # Text Generation Inference, Together
            r"`?inputs`? (?:tokens \+ `?max_new_tokens`? must be|must have less than)",
            # NVIDIA
            r"input length \d+ exceeds (?:the )?maximum",
            # Volcengine
            r"exceed max (?:message|input) tokens",
            # GitHub Models
            r"request body too large for .{0,80} model",
        )
    ),
    re.IGNORECASE,
)
