"""The alert rules: each fires in its case, and none on an ordinary day."""

import re
import shutil
import subprocess
from pathlib import Path

import yaml

FOLDER = Path(__file__).parents[2] / "deploy/prometheus"
# Debian's package `prometheus` has it.
PROMTOOL = shutil.which("promtool")


def alerts() -> set[str]:
    rules = yaml.safe_load((FOLDER / "alerts.yaml").read_text())
    return {rule["alert"] for group in rules["groups"] for rule in group["rules"]}


def test_every_rule_has_a_case_in_which_it_fires() -> None:
    fires, ordinary = set(), set()
    for case in yaml.safe_load((FOLDER / "alerts.test.yaml").read_text())["tests"]:
        names = {re.split(r"[{ ]", series["series"])[0] for series in case["input_series"]}
        for test in case["promql_expr_test"]:
            samples = test.get("exp_samples", [])
            fires |= {alert for one in samples for alert in re.findall(r'"(\w+)"', one["labels"])}
            if not samples:
                ordinary |= names
    assert fires == alerts()
    # Nothing fires on an ordinary day because its metric is there, not because it is missing.
    named = re.findall(r"\b(?:gateway|process)_\w+", (FOLDER / "alerts.yaml").read_text())
    mentioned_in_actions = {"gateway_http_connections"}
    assert set(named) - mentioned_in_actions <= ordinary


def test_the_rules_pass_their_tests() -> None:
    if PROMTOOL:
        command = [PROMTOOL, "test", "rules", str(FOLDER / "alerts.test.yaml")]
        tested = subprocess.run(command, capture_output=True, text=True)
        assert tested.returncode == 0, tested.stdout + tested.stderr
