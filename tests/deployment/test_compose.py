"""`compose.yaml` and the files that it mounts: held against the specification, and each other.

No Docker runs it here.
"""

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import compose_spec
import pytest
import yaml

from services.common.settings import parse
from services.envoy.bootstrap import bootstrap
from tests.grid import each_row

ROOT = Path(__file__).parents[2]
# Images that change their own files as root while they start.
NOT_HARDENED = {"postgres", "s3", "s3-bucket"}


@pytest.fixture(scope="module")
def compose() -> Any:
    # Merge keys are part of YAML's older version, which Compose reads.
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_the_file_follows_the_specification(compose: Any) -> None:
    services = {
        name: {key: value for key, value in service.items() if key != "pre_stop"}
        for name, service in compose["services"].items()
    }
    for service in services.values():
        # The library takes no image with both a tag and a digest, which Docker does.
        service["image"] = re.sub(":[^:@]*@", "@", service["image"])
    # A later version of the specification has hooks.
    parsed = compose_spec.PyCompose.from_json(json.dumps(compose | {"services": services}))
    assert set(parsed.services or ()) == set(services)
    with pytest.raises(ValueError, match="imagee"):
        compose_spec.PyCompose.from_json('{"services": {"a": {"imagee": "b"}}}')


def test_what_services_name_is_there(compose: Any) -> None:
    for name, service in compose["services"].items():
        for other in service.get("depends_on", ()):
            assert other in compose["services"], name
        for config in service.get("configs", ()):
            assert config["source"] in compose["configs"], name
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            if source.startswith("."):
                # Dashboards come with what makes the metrics.
                assert (ROOT / source).exists() or source.endswith("/dashboards"), name
            else:
                assert source in compose["volumes"], name


def test_images_have_versions_and_digests_of_their_own(compose: Any) -> None:
    for name, service in compose["services"].items():
        image, _, digest = service["image"].partition("@")
        assert image == "gateway" or re.fullmatch(r"[\w./-]+:v?\d+\.\d+[\w.-]*", image), name
        # Envoy's is that of the chart, and of the tests.
        if image != "gateway" and name != "envoy":
            assert re.fullmatch("sha256:[0-9a-f]{64}", digest), name


BUCKET_SCRIPT = """\
weed() { cat >command; if grep -q list command; then cat buckets; else echo gateway >>buckets; fi; }
sleep() { :; }
"""


def test_the_bucket_is_made_once(compose: Any, tmp_path: Path) -> None:
    [script] = compose["services"]["s3-bucket"]["command"]
    (tmp_path / "buckets").write_text("")
    for _ in range(2):
        subprocess.run(["sh", "-c", BUCKET_SCRIPT + script], cwd=tmp_path, check=True, timeout=60)
    assert (tmp_path / "buckets").read_text() == "gateway\n"


def test_services_have_no_more_rights_than_they_need(compose: Any) -> None:
    for name, service in compose["services"].items():
        if name not in NOT_HARDENED:
            assert service["read_only"] is True, name
            assert service["cap_drop"] == ["ALL"], name
            assert service["security_opt"] == ["no-new-privileges:true"], name
        # Nothing listens on other machines' side: that is for who sets up TLS.
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name


def test_every_secret_comes_from_the_environment(compose: Any) -> None:
    text = (ROOT / "compose.yaml").read_text()
    example = (ROOT / "deploy/compose/example.env").read_text()
    named = set(re.findall(r"\$\{(\w+)", text))
    assert named == set(re.findall(r"^(\w+)=", example, re.M))
    # Those without which nothing starts have no default.
    for name in ("POSTGRES_PASSWORD", "S3_SECRET_KEY", "GRAFANA_PASSWORD"):
        assert f"${{{name}:-" not in text and re.search(rf"^{name}=$", example, re.M)
    assert json.loads(re.sub(r"\$\{[^}]*\}", "x", compose["configs"]["s3"]["content"]))


def test_the_settings_lead_to_the_services(compose: Any) -> None:
    settings = parse(tomllib.loads((ROOT / "deploy/compose/gateway.toml").read_text()), "compose")
    for address in (*settings.envoy.facades, *settings.envoy.grpc):
        assert address.partition(":")[0] in compose["services"]
    config = yaml.safe_load(bootstrap(settings))
    listener = config["static_resources"]["listeners"][0]["address"]["socket_address"]
    (published,) = compose["services"]["envoy"]["ports"]
    assert published.endswith(f":{listener['port_value']}")
    stops_s = int(compose["services"]["gateway"]["stop_grace_period"].removesuffix("s"))
    assert stops_s > settings.server.drain_notice_s + settings.limits.drain_s + 5


def test_prometheus_asks_where_metrics_are(compose: Any) -> None:
    settings = parse(tomllib.loads((ROOT / "deploy/compose/gateway.toml").read_text()), "compose")
    scraped = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yaml").read_text())
    ports = {
        job["job_name"]: (job["dns_sd_configs"][0]["names"], job["dns_sd_configs"][0]["port"])
        for job in scraped["scrape_configs"]
    }
    assert ports == {
        "gateway": (["gateway"], settings.server.metrics_port),
        "envoy": (["envoy"], settings.envoy.metrics_port),
    }
    assert set(ports) <= set(compose["services"])


@each_row("path", sorted(str(path.relative_to(ROOT)) for path in (ROOT / "deploy").rglob("*.yaml")))
def test_files_of_deployments_are_yaml(path: str) -> None:
    if "/templates/" not in path:
        assert yaml.safe_load((ROOT / path).read_text())


def test_the_collector_s_pipelines_have_their_parts() -> None:
    collector = yaml.safe_load((ROOT / "deploy/otel/collector.yaml").read_text())
    for pipeline in collector["service"]["pipelines"].values():
        for kind, names in pipeline.items():
            assert set(names) <= set(collector[kind])
