"""Answers of Google's `generateContent`, as types.

Source: the reference of the Gemini API (`GenerateContentResponse`, `v1beta`), as of November 2026.
"""

from typing import Literal, Required, TypedDict


class Text(TypedDict, total=False):
    text: Required[str]
    thoughtSignature: str


class Thought(TypedDict, total=False):
    text: Required[str]
    thought: Required[Literal[True]]
    thoughtSignature: str


class Blob(TypedDict, total=False):
    mimeType: Required[str]
    data: Required[str]
    displayName: str


class InlineData(TypedDict, total=False):
    inlineData: Required[Blob]


class FileReference(TypedDict, total=False):
    mimeType: str
    fileUri: Required[str]


class FileData(TypedDict, total=False):
    fileData: Required[FileReference]


class Call(TypedDict, total=False):
    id: str
    name: Required[str]
    args: Required[dict[str, str]]


class FunctionCall(TypedDict, total=False):
    functionCall: Required[Call]
    thoughtSignature: str


class Code(TypedDict, total=False):
    language: Required[str]
    code: Required[str]
    id: str


class ExecutableCode(TypedDict, total=False):
    executableCode: Required[Code]


class CodeResult(TypedDict, total=False):
    outcome: Required[str]
    output: Required[str]
    id: str


class CodeExecutionResult(TypedDict, total=False):
    codeExecutionResult: Required[CodeResult]


class ServerCall(TypedDict, total=False):
    id: str
    toolType: Required[str]
    args: dict[str, str]


class ToolCall(TypedDict, total=False):
    toolCall: Required[ServerCall]


class ServerResponse(TypedDict, total=False):
    id: str
    toolType: Required[str]
    response: Required[dict[str, str]]


class ToolResponse(TypedDict, total=False):
    toolResponse: Required[ServerResponse]


Part = (
    Text
    | Thought
    | InlineData
    | FileData
    | FunctionCall
    | ExecutableCode
    | CodeExecutionResult
    | ToolCall
    | ToolResponse
)


class Content(TypedDict, total=False):
    parts: Required[list[Part]]
    role: Literal["model"]


class SafetyRating(TypedDict, total=False):
    category: Required[str]
    probability: Required[str]
    blocked: bool


class CitationSource(TypedDict, total=False):
    startIndex: Required[int]
    endIndex: Required[int]
    uri: Required[str]
    license: str


class CitationMetadata(TypedDict, total=False):
    citationSources: Required[list[CitationSource]]


class WebPage(TypedDict, total=False):
    uri: Required[str]
    title: Required[str]


class WebChunk(TypedDict, total=False):
    web: Required[WebPage]


class Segment(TypedDict, total=False):
    partIndex: int
    startIndex: int
    endIndex: Required[int]
    text: str


class GroundingSupport(TypedDict, total=False):
    groundingChunkIndices: Required[list[int]]
    segment: Required[Segment]
    confidenceScores: list[float]


class SearchEntryPoint(TypedDict, total=False):
    renderedContent: Required[str]


class GroundingMetadata(TypedDict, total=False):
    groundingChunks: Required[list[WebChunk]]
    groundingSupports: Required[list[GroundingSupport]]
    webSearchQueries: list[str]
    searchEntryPoint: SearchEntryPoint


class UrlMetadata(TypedDict, total=False):
    retrievedUrl: Required[str]
    urlRetrievalStatus: Required[str]


class UrlContextMetadata(TypedDict, total=False):
    urlMetadata: Required[list[UrlMetadata]]


class Token(TypedDict, total=False):
    token: Required[str]
    tokenId: Required[int]
    logProbability: Required[float]


class LogprobsResult(TypedDict, total=False):
    chosenCandidates: Required[list[Token]]


class Candidate(TypedDict, total=False):
    content: Required[Content]
    finishReason: Required[
        Literal[
            "STOP",
            "MAX_TOKENS",
            "SAFETY",
            "RECITATION",
            "LANGUAGE",
            "OTHER",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "MALFORMED_FUNCTION_CALL",
            "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_OTHER",
            "NO_IMAGE",
            "IMAGE_RECITATION",
            "UNEXPECTED_TOOL_CALL",
            "TOO_MANY_TOOL_CALLS",
            "MISSING_THOUGHT_SIGNATURE",
            "MALFORMED_RESPONSE",
        ]
    ]
    finishMessage: str
    safetyRatings: list[SafetyRating]
    citationMetadata: CitationMetadata
    tokenCount: int
    groundingMetadata: GroundingMetadata
    avgLogprobs: float
    logprobsResult: LogprobsResult
    urlContextMetadata: UrlContextMetadata
    index: Literal[0]


class PromptFeedback(TypedDict, total=False):
    blockReason: Literal["SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY"]
    safetyRatings: list[SafetyRating]


class ModalityTokens(TypedDict, total=False):
    modality: Required[str]
    tokenCount: Required[int]


class UsageMetadata(TypedDict, total=False):
    promptTokenCount: Required[int]
    candidatesTokenCount: Required[int]
    totalTokenCount: Required[int]
    cachedContentTokenCount: int
    toolUsePromptTokenCount: int
    thoughtsTokenCount: int
    promptTokensDetails: list[ModalityTokens]
    candidatesTokensDetails: list[ModalityTokens]
    cacheTokensDetails: list[ModalityTokens]
    serviceTier: str


class GeminiAnswer(TypedDict, total=False):
    candidates: Required[list[Candidate]]
    promptFeedback: PromptFeedback
    usageMetadata: UsageMetadata
    modelVersion: str
    responseId: str
