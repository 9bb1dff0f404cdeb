"""Google's Vertex AI as a provider: its addresses, and the list of its models.

Its models of Google are called by the adapter of Gemini's API, those of Anthropic by that of
Anthropic's messages. Source: the reference of `aiplatform.googleapis.com`.
"""

from services.inference.providers.vertex.listing import PUBLISHERS, ask, names_of
from services.inference.providers.vertex.paths import base_url

__all__ = ["PUBLISHERS", "ask", "base_url", "names_of"]
