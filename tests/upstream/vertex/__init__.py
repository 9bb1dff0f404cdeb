"""Google's Vertex AI, over the sandbox's models: its paths, its tokens, and Google's own types.

Source: google-genai's and Anthropic's clients of Vertex AI, and Google's pages about tokens.
"""
