"""Aider, which edits and commits a file of a git repository: whole and streamed, both dialects."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

from aider.main import main
from steps import ADDRESS, KEY, KINDS, run_sampled

os.environ |= {
    "OPENAI_API_BASE": f"{ADDRESS}/beta/v1",
    "OPENAI_API_KEY": KEY,
    "ANTHROPIC_API_BASE": f"{ADDRESS}/beta",
    "ANTHROPIC_API_KEY": KEY,
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "Somebody"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "somebody@example.com"),
}
# What Aider would otherwise ask the network for.
_METADATA = {
    f"{dialect}/{model}": {"litellm_provider": dialect, "mode": "chat", "max_input_tokens": 100_000}
    for dialect in ("openai", "anthropic")
    for model in KINDS
}
# The sandbox says back what it is told, so that the edit is the model's.
_ASKED = """\
Change the greeting:

greet.py
```python
<<<<<<< SEARCH
    return "hello"
=======
    return "good morning"
>>>>>>> REPLACE
```
"""
_OPTIONS = (
    *("--yes-always", "--no-pretty", "--no-gitignore", "--no-auto-lint", "--edit-format", "diff"),
    *("--no-check-update", "--no-show-release-notes", "--no-show-model-warnings"),
    *("--analytics-disable", "--model-metadata-file", "../metadata.json"),
)


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def edit(model: str, *options: str) -> None:
    with tempfile.TemporaryDirectory(dir=_FOLDER) as repository:
        os.chdir(repository)
        greeting = Path("greet.py")
        greeting.write_text('def greet():\n    return "hello"\n')
        git("init", "--quiet")
        git("add", ".")
        git("commit", "--quiet", "--message", "First")
        main([*_OPTIONS, "--model", model, *options, "--message", _ASKED, str(greeting)])
        assert 'return "good morning"' in greeting.read_text(), greeting.read_text()
        # The model words the commit too.
        latest, *earlier = git("log", "--format=%s").splitlines()
        assert latest.startswith("Sandbox echo: you said") and earlier == ["First"], latest
        os.chdir(_FOLDER)


def chat_whole(model: str) -> None:
    edit(f"openai/{model}", "--no-stream")


def chat_streamed(model: str) -> None:
    edit(f"openai/{model}", "--stream")


def messages_whole(model: str) -> None:
    edit(f"anthropic/{model}", "--no-stream")


def messages_streamed(model: str) -> None:
    edit(f"anthropic/{model}", "--stream")


with tempfile.TemporaryDirectory() as _FOLDER:
    Path(_FOLDER, "metadata.json").write_text(json.dumps(_METADATA))
    os.chdir(_FOLDER)
    steps = (chat_whole, chat_streamed, messages_whole, messages_streamed)
    run_sampled(*steps, one=chat_streamed, of_all=("openai", "anthropic"))
