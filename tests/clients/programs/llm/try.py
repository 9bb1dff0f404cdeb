"""The program `llm`, with models of the gateway in its extra-openai-models.yaml."""

import json
import tempfile
from pathlib import Path

from click.testing import CliRunner
from llm.cli import cli
from steps import ADDRESS, KEY, MODELS, run

_MODELS = "\n".join(
    f"""\
- model_id: {model}
  model_name: {model}
  api_base: {ADDRESS}/beta/v1
  api_key_name: gateway
  supports_tools: true
  supports_schema: true
"""
    for model in MODELS
)
_TOOLS = '''\
def get_weather(place: str) -> str:
    """Tell the weather of a place."""
    return "14 degrees, rain"
'''


def say(*arguments: str) -> str:
    """Return what a call of the program printed."""
    done = CliRunner().invoke(cli, arguments, env={"LLM_USER_PATH": _FOLDER})
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def answers(model: str) -> None:
    whole = say("-m", model, "-s", "Be brief.", "--no-stream", "hello there")
    assert "hello there" in whole, whole
    assert "Be brief." in whole, whole
    assert say("-m", model, "-s", "Be brief.", "hello there") == whole
    assert "thank you" in say("-c", "thank you")


def tools(model: str) -> None:
    for options in ((), ("--no-stream",)):
        output = say("-m", model, "--functions", _TOOLS, *options, "use get_weather for Bern")
        assert "14 degrees, rain" in output, output


def structured(model: str) -> None:
    place = json.loads(say("-m", model, "--schema", "name, population int", "describe a place"))
    assert isinstance(place["population"], int), place


with tempfile.TemporaryDirectory() as _FOLDER:
    Path(_FOLDER, "extra-openai-models.yaml").write_text(_MODELS)
    say("keys", "set", "gateway", "--value", KEY)
    run(answers, tools, structured)
