"""The `gateway` command, run in the process of a test."""

from pathlib import Path

from typer.testing import CliRunner

from services import cli
from services.common.settings.presets import PRESETS

# Variables of whoever runs the tests, which would add providers.
KEY_VARIABLES = [
    name for one in PRESETS.values() for name in (one.key_variable, one.other_key_variable) if name
]


class Command:
    """The `gateway` command with a data folder of its own."""

    def __init__(self, folder: Path) -> None:
        config = folder / "gateway.toml"
        config.touch()
        self.config = config
        self.environ: dict[str, str | None] = {
            "GATEWAY_CONFIG": str(config),
            "GATEWAY_DATA_DIR": str(folder / "var"),
            "GATEWAY_HOST": None,
            "GATEWAY_PORT": None,
            "GATEWAY_METRICS_PORT": None,
            "GATEWAY_DATABASE_URL": None,
            **dict.fromkeys(KEY_VARIABLES),
        }

    def __call__(self, line: str, status: int = 0, answers: str = "") -> tuple[str, str]:
        """Run it; give what it wrote to standard output and to standard error."""
        result = CliRunner().invoke(
            cli.app, line.split(), env=self.environ, prog_name="gateway", input=answers
        )
        assert result.exit_code == status, result.output
        assert "Traceback" not in result.output
        return result.stdout, result.stderr

    def refused(self, line: str, status: int = 1) -> str:
        """Run what is refused with one line on standard error; give that line."""
        output, errors = self(line, status)
        assert output == ""
        (message,) = errors.splitlines()
        return message
