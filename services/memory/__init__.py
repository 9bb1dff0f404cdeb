"""The memory service: conversations that the server remembers."""
