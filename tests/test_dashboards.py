"""The dashboard and the alert rules name metrics that the gateway has, with their labels."""

import json
import re
from pathlib import Path

import yaml

from tests.gateway_in_process import running_gateway
from tests.tools.reference import declared_metrics

DEPLOY = Path(__file__).parents[1] / "deploy"
# Metrics of the webhook exist only with one.
BUDGETS = {"webhook_url": "http://127.0.0.1:9/", "webhook_secret": "whsec_" + "YWJj" * 8}
_NAME = re.compile(r"\b(?:gateway|process)_[a-z_]+")
_GROUPED = re.compile(r"by \(([^)]*)\)")


def expressions() -> list[str]:
    dashboard = json.loads((DEPLOY / "grafana/dashboards/gateway.json").read_text())
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    rules = yaml.safe_load((DEPLOY / "prometheus/alerts.yaml").read_text())
    shown = [target["expr"] for panel in panels for target in panel["targets"]]
    return shown + [rule["expr"] for group in rules["groups"] for rule in group["rules"]]


async def test_every_metric_is_there(tmp_path):
    async with running_gateway(tmp_path, request_log={"enabled": True}, budgets=BUDGETS) as gateway:
        async with gateway.http.get(f"{gateway.metrics_url}/metrics") as answer:
            text = await answer.text()
    metrics = set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))
    metrics |= {f"{name}_bucket" for name in metrics}
    used = {name for one in expressions() for name in _NAME.findall(one)}
    assert used
    assert used - metrics == set()


def test_labels_are_those_of_the_metrics():
    # Prometheus adds the instance.
    labels = {"le", "instance"}
    for _, own, _ in declared_metrics().values():
        labels |= set(own)
    for one in expressions():
        for group in _GROUPED.findall(one):
            assert set(group.replace(" ", "").split(",")) <= labels, one
