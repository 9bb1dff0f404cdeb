"""Model servers of this machine, which are looked for on their default ports."""

from services.common.settings.providers import Provider
from services.common.settings.sections import Server

LOCAL_SERVERS = {
    "ollama": "http://127.0.0.1:11434/v1",
    "llama-server": "http://127.0.0.1:8080/v1",
    "vllm": "http://127.0.0.1:8000/v1",
    "lm-studio": "http://127.0.0.1:1234/v1",
    "sglang": "http://127.0.0.1:30000/v1",
}


def local_servers(server: Server) -> dict[str, Provider]:
    """Return the possible local servers, without the gateway's own address."""
    return {
        name: Provider(kind="openai", base_url=url)
        for name, url in LOCAL_SERVERS.items()
        if not server.is_at(url)
    }
