"""Field names of Google's `generateContent`, by canonical field."""

from facade.dialects.paths import FieldNames

_CONFIG = "generationConfig"

FIELD_NAMES = FieldNames(
    {
        "temperature": f"{_CONFIG}.temperature",
        "top_p": f"{_CONFIG}.topP",
        "top_k": f"{_CONFIG}.topK",
        "max_tokens": f"{_CONFIG}.maxOutputTokens",
        "stop_sequences": f"{_CONFIG}.stopSequences",
        "n": f"{_CONFIG}.candidateCount",
        "seed": f"{_CONFIG}.seed",
        "presence_penalty": f"{_CONFIG}.presencePenalty",
        "frequency_penalty": f"{_CONFIG}.frequencyPenalty",
        "logprobs": f"{_CONFIG}.responseLogprobs",
        "top_logprobs": f"{_CONFIG}.logprobs",
        "thinking": f"{_CONFIG}.thinkingConfig",
        "thinking.budget_tokens": f"{_CONFIG}.thinkingConfig.thinkingBudget",
        "thinking.effort": f"{_CONFIG}.thinkingConfig.thinkingLevel",
        "output_format": f"{_CONFIG}.responseMimeType",
        "output_format.schema": f"{_CONFIG}.responseSchema",
        "output_modalities": f"{_CONFIG}.responseModalities",
        "tool_choice": "toolConfig.functionCallingConfig",
        "tool_choice.name": "toolConfig.functionCallingConfig.allowedFunctionNames",
        "tools[].input_schema": "tools[].parameters",
        "messages[].blocks[].media.name": "contents[].parts[].inlineData.displayName",
        "messages[].blocks[].tool_result.is_error": (
            "contents[].parts[].functionResponse.response.error"
        ),
        "messages[].blocks[].thinking": "contents[].parts[].thought",
        "messages[].blocks[].thinking.field": "contents[].parts[].thought",
    },
    lists=("parts",),
    messages="contents",
    system="systemInstruction.parts",
    inner="functionResponse.parts",
)
EMBEDDING_NAMES = FieldNames({"texts": "content", "dimensions": "outputDimensionality"})
