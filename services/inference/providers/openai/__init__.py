"""Adapter of servers with OpenAI's API of chat completions.

OpenAI and Azure, vLLM, Ollama, llama-server, DeepSeek, Groq, Mistral and many more.
`request` writes the request body, `events` parses the response, both without I/O.
"""

from services.inference.providers.openai.endpoints import headers, path_of
from services.inference.providers.openai.provider import OpenAIProvider

__all__ = ["OpenAIProvider", "headers", "path_of"]
