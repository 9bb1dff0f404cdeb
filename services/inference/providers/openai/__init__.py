"""Servers that speak OpenAI's chat completions.

OpenAI and Azure, vLLM, Ollama, llama-server, DeepSeek, Groq, Mistral and many more.
`request` writes what is sent, `events` reads what comes back, both without I/O.
"""

from services.inference.providers.openai.provider import OpenAIProvider

__all__ = ["OpenAIProvider"]
