"""The codes and words with which all providers refuse a prompt that is too long."""

import re

CONTEXT_CODES = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",  # llama.cpp
        "context_window_exceeded",
        "model_context_window_exceeded",
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
            r"context (?:length|limit|size|window) (?:is |was |has been )?exceed(?:s|ed)\b",
            # Cloudflare, llama-cpp-python
            r"exceed(?:s|ed)? (?:this |the )?model(?:'s)? context",
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
            # OpenRouter, Poolside, OpenAI, Hugging Face
            r"exceeds? (?:the )?maximum (?:(?:allowed )?input length|number of (?:input )?tokens)",
            r"input tokens exceed the configured limit",
            r"input length (?:\(\d+\) )?exceeds (?:the )?(?:model'?s )?(?:maximum )?context",
            # watsonx, Databricks
            r"number of input tokens \d* ?cannot exceed|prompt token count \(?\d+\)? cannot exceed",
            # vLLM, oMLX
            r"is too long and exceeds limit|but the configured context size is",
            r"requested tokens? \(?\d+\)? exceeds? context",
            # GitHub Copilot, Novita, SiliconFlow
            r"prompt (?:length|tokens?) exceeds|tokens in request more than max tokens",
            r"prompt exceeds the length limit|prompt (?:length )?is (?:larger|longer) than",
            # StepFun, Baidu
            r"(?:prompt|input) (?:tokens?|length) (?:is )?too l(?:ong|arge)",
            r"max input (?:characters|tokens|length)",
            # Chinese servers
            r"(?:prompt|输入|上下文|请求)(?:的)?(?:内容|文本|长度|token)* ?(?:超长|过长|超出|超过)",
            r"(?:超出|超过)(?:了)?(?:模型)?(?:的)?(?:最大)?(?:上下文|输入|长度)",
            # GitHub Models
            r"request body too large for .{0,80} model",
        )
    ),
    re.IGNORECASE,
)
