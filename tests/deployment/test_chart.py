"""The Helm chart: rendered by Helm, held against Kubernetes' schemas, and against our settings.

No cluster runs it here.
"""

import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import yaml

from services.common.settings import parse
from services.common.version import VERSION
from services.envoy.bootstrap import bootstrap
from services.envoy.process import envoy_command
from tests.certificates import issue

CHART = Path(__file__).parents[2] / "deploy/helm/gateway"
NEEDED: Mapping[str, Any] = {
    "database": {"existingSecret": "database"},
    "blobs": {"url": "s3://bucket"},
}
EVERYTHING: Mapping[str, Any] = {
    "database": {"existingSecret": "database"},
    "blobs": {"url": "s3://bucket", "endpoint": "http://s3:8333", "existingSecret": "blobs"},
    "providers": {"existingSecret": "keys", "keys": ["OPENAI_API_KEY", "GROQ_API_KEY"]},
    "settings": "[limits]\ndrain_s = 60\n",
    "env": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"},
    "tls": {"existingSecret": "callers", "internalSecret": "internal"},
    "drainNoticeSeconds": 10,
    "drainSeconds": 60,
    "autoscaling": {"liveRequests": 100},
    "image": {"repository": "registry/gateway", "digest": f"sha256:{'0' * 64}"},
    "imagePullSecrets": [{"name": "registry"}],
    "extraEnvFrom": [{"secretRef": {"name": "keys"}}],
    "extraVolumes": [{"name": "ca", "secret": {"secretName": "ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ca"}],
    "ingress": {
        **{"enabled": True, "className": "nginx", "hosts": ["models.example"]},
        **{"tlsSecret": "web", "annotations": {"a": "b"}},
    },
    "httpRoute": {
        **{"enabled": True, "parentRefs": [{"name": "web"}]},
        "hostnames": ["models.example"],
    },
    "monitoring": {"serviceMonitor": True, "labels": {"release": "prometheus"}},
    "podDisruptionBudget": {"minAvailable": 1},
    "networkPolicy": {"egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]},
    "affinity": {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "postgres"}}}
            ]
        }
    },
    "priorityClassName": "high",
    "topologySpread": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    "podAnnotations": {"a": "b"},
    "serviceAccount": {"annotations": {"a": "b"}},
    "nodeSelector": {"a": "b"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
}
SMALLEST: Mapping[str, Any] = {
    **NEEDED,
    "autoscaling": {"enabled": False},
    "networkPolicy": {"enabled": False},
}
VALUES = pytest.mark.parametrize(
    "values", [NEEDED, EVERYTHING, SMALLEST], ids=["needed", "everything", "smallest"]
)
Objects = dict[tuple[str, str], Any]
# Kinds that other projects define, whose schemas are not Kubernetes'.
OF_OTHERS = {"HTTPRoute", "ServiceMonitor", "PodMonitor"}


def rendered(values: Mapping[str, Any]) -> Objects:
    """Return the objects by kind and name."""
    with helm_python.Chart.load(CHART) as chart:
        texts = chart.render(dict(values), name="one", namespace="space").values()
    documents = [one for text in texts for one in yaml.safe_load_all(text) if one]
    return {(one["kind"], one["metadata"]["name"]): one for one in documents}


def container(objects: Objects, name: str) -> Any:
    return objects["Deployment", name]["spec"]["template"]["spec"]["containers"][0]


@VALUES
@pytest.mark.parametrize("version", ["1.30", "1.34"])
def test_every_object_fits_the_schema_of_kubernetes(values: Any, version: str) -> None:
    objects = rendered(values)
    assert len(objects) >= 8
    for (kind, _), one in objects.items():
        if kind not in OF_OTHERS:
            kubernetes_validate.validate(one, version, strict=True)


@VALUES
def test_helm_finds_no_fault(values: Any) -> None:
    result = helm_python.lint(CHART, values=dict(values))
    assert result["errors"] == []
    assert [one["error"] for one in result["messages"]] == ["icon is recommended"]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"database": {"existingSecret": "a"}},
        {"blobs": {"url": "s3://a"}},
        {**NEEDED, "replica": 3},
        {**NEEDED, "blobs": {"url": "/a"}},
        {**NEEDED, "providers": {"keys": ["a b"]}},
        {**NEEDED, "image": {"digest": "0.1.0"}},
        {**NEEDED, "imagePullSecrets": ["registry"]},
        {**NEEDED, "ingress": {"enabled": True}},
        {**NEEDED, "httpRoute": {"enabled": True}},
        {**NEEDED, "extraVolumeMounts": [{"name": "ca"}]},
    ],
)
def test_wrong_values_are_refused(values: Any) -> None:
    with pytest.raises(helm_python.HelmError):
        rendered(values)


@VALUES
def test_selectors_find_the_pods_they_mean(values: Any) -> None:
    objects = rendered(values)
    pods = {
        name: one["spec"]["template"]["metadata"]["labels"]
        for (kind, name), one in objects.items()
        if kind == "Deployment"
    }

    def selected(selector: Mapping[str, str]) -> set[str]:
        return {name for name, labels in pods.items() if selector.items() <= labels.items()}

    components = {
        ("Service", "one-gateway"): "one-gateway-envoy",
        ("Service", "one-gateway-pods"): "one-gateway",
        ("PodDisruptionBudget", "one-gateway"): "one-gateway",
        ("PodDisruptionBudget", "one-gateway-envoy"): "one-gateway-envoy",
        ("Deployment", "one-gateway"): "one-gateway",
        ("Deployment", "one-gateway-envoy"): "one-gateway-envoy",
        ("NetworkPolicy", "one-gateway"): "one-gateway",
        ("NetworkPolicy", "one-gateway-envoy"): "one-gateway-envoy",
    }
    for key, name in components.items():
        if key not in objects:
            assert key[0] == "NetworkPolicy" and values is SMALLEST
            continue
        spec = objects[key]["spec"]
        selector = spec.get("podSelector") or spec["selector"]
        assert selected(selector.get("matchLabels", selector)) == {name}, key
    if values is not SMALLEST:
        (source,) = objects["NetworkPolicy", "one-gateway"]["spec"]["ingress"][0]["from"]
        assert selected(source["podSelector"]["matchLabels"]) == {"one-gateway-envoy"}


@VALUES
def test_ports_lead_to_containers_that_have_them(values: Any) -> None:
    objects = rendered(values)
    for service, pods in (
        ("one-gateway", "one-gateway-envoy"),
        ("one-gateway-pods", "one-gateway"),
    ):
        ports = {one["name"] for one in container(objects, pods)["ports"]}
        assert {one["targetPort"] for one in objects["Service", service]["spec"]["ports"]} <= ports


@VALUES
def test_containers_run_without_root_and_write_nowhere(values: Any) -> None:
    objects = rendered(values)
    for (kind, _), one in objects.items():
        if kind != "Deployment":
            continue
        pod = one["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["automountServiceAccountToken"] is False
        volumes = {volume["name"] for volume in pod["volumes"]}
        for each in [*pod["containers"], *pod.get("initContainers", [])]:
            assert each["securityContext"]["readOnlyRootFilesystem"]
            assert each["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert not each["securityContext"]["allowPrivilegeEscalation"]
            assert {mount["name"] for mount in each["volumeMounts"]} <= volumes
            assert each["resources"]["limits"]["memory"]


@VALUES
def test_pods_have_longer_than_their_streams(values: Any) -> None:
    objects = rendered(values)
    drain_s, notice_s = values.get("drainSeconds", 30), values.get("drainNoticeSeconds", 5)
    for name, needed_s in (("one-gateway", notice_s + drain_s), ("one-gateway-envoy", drain_s)):
        pod = objects["Deployment", name]["spec"]["template"]["spec"]
        assert pod["terminationGracePeriodSeconds"] > needed_s + 10


def test_secrets_come_as_files() -> None:
    gateway = container(rendered(EVERYTHING), "one-gateway")
    environ = {one["name"]: one["value"] for one in gateway["env"]}
    assert environ["GATEWAY_DATABASE_URL_FILE"] == "/run/secrets/database/url"
    assert environ["GROQ_API_KEY_FILE"] == "/run/secrets/providers/GROQ_API_KEY"
    assert environ["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://collector:4318"
    assert gateway["envFrom"] == [{"secretRef": {"name": name}} for name in ("blobs", "keys")]


@VALUES
def test_the_settings_are_right_and_make_an_envoy(values: Any, tmp_path: Path) -> None:
    text = rendered(values)["ConfigMap", "one-gateway"]["data"]["gateway.toml"]
    settings = parse(tomllib.loads(text), "the chart")
    assert settings.limits.drain_s == values.get("drainSeconds", 30)
    assert settings.server.drain_notice_s == values.get("drainNoticeSeconds", 5)
    config = bootstrap(settings)
    assert "one-gateway-pods.space.svc.cluster.local" in config
    # The certificates of a test, at the paths that secrets are mounted at.
    made = issue(tmp_path)
    for name, path in (("tls.crt", made.certificate), ("tls.key", made.key), ("ca.crt", made.ca)):
        for folder in ("callers", "internal"):
            config = config.replace(f"/run/secrets/{folder}/{name}", str(path))
    (tmp_path / "envoy.yaml").write_text(config)
    checked = subprocess.run(
        [envoy_command(), "--mode", "validate", "--config-path", str(tmp_path / "envoy.yaml")],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stderr


def test_new_settings_start_new_pods() -> None:
    def digest(values: Mapping[str, Any]) -> str:
        template = rendered(values)["Deployment", "one-gateway"]["spec"]["template"]
        checksum: str = template["metadata"]["annotations"]["checksum/settings"]
        return checksum

    assert digest(NEEDED) != digest({**NEEDED, "settings": "[limits]\ndrain_s = 40\n"})


def test_the_image_is_that_of_the_version_or_of_a_digest() -> None:
    assert container(rendered(NEEDED), "one-gateway")["image"] == f"gateway:{VERSION}"
    tagged = rendered({**NEEDED, "image": {"tag": "other"}})
    assert container(tagged, "one-gateway")["image"] == "gateway:other"
    pinned = rendered(EVERYTHING)
    image = f"registry/gateway@sha256:{'0' * 64}"
    assert container(pinned, "one-gateway")["image"] == image
    pod = pinned["Deployment", "one-gateway-envoy"]["spec"]["template"]["spec"]
    assert pod["initContainers"][0]["image"] == image


def test_pods_of_both_parts_are_scheduled_as_the_values_say() -> None:
    objects = rendered(EVERYTHING)
    for name in ("one-gateway", "one-gateway-envoy"):
        template = objects["Deployment", name]["spec"]["template"]
        pod = template["spec"]
        for field in ("imagePullSecrets", "affinity", "priorityClassName", "tolerations"):
            assert pod[field] == EVERYTHING[field], field
        [spread] = pod["topologySpreadConstraints"]
        assert spread["topologyKey"] == "zone"
        labels = template["metadata"]["labels"]
        assert spread["labelSelector"]["matchLabels"].items() <= labels.items()
        budget = objects["PodDisruptionBudget", name]["spec"]
        assert (budget["minAvailable"], "maxUnavailable" in budget) == (1, False)
        pod = rendered(NEEDED)["Deployment", name]["spec"]["template"]["spec"]
        [spread] = pod["topologySpreadConstraints"]
        assert spread["topologyKey"] == "kubernetes.io/hostname"


def test_callers_are_led_to_envoy() -> None:
    objects = rendered(EVERYTHING)
    service = objects["Service", "one-gateway"]
    [rule] = objects["Ingress", "one-gateway"]["spec"]["rules"]
    [path] = rule["http"]["paths"]
    assert path["backend"]["service"] == {"name": "one-gateway", "port": {"name": "callers"}}
    [rule] = objects["HTTPRoute", "one-gateway"]["spec"]["rules"]
    assert rule["backendRefs"] == [
        {"name": service["metadata"]["name"], "port": service["spec"]["ports"][0]["port"]}
    ]
    # Streams have no limit of time there.
    assert rule["timeouts"] == {"request": "0s"}
    assert not {"Ingress", "HTTPRoute"} & {kind for kind, _ in rendered(NEEDED)}


def test_monitors_find_what_serves_metrics() -> None:
    objects = rendered(EVERYTHING)
    monitor = objects["ServiceMonitor", "one-gateway"]
    selector = monitor["spec"]["selector"]["matchLabels"]
    services = [
        one
        for (kind, _), one in objects.items()
        if kind == "Service" and selector.items() <= one["metadata"]["labels"].items()
    ]
    [service] = services
    [endpoint] = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    monitor = objects["PodMonitor", "one-gateway-envoy"]
    pods = objects["Deployment", "one-gateway-envoy"]["spec"]["template"]
    selector = monitor["spec"]["selector"]["matchLabels"]
    assert selector.items() <= pods["metadata"]["labels"].items()
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    ports = {port["name"] for port in container(objects, "one-gateway-envoy")["ports"]}
    assert endpoint["port"] in ports
    for kind in ("ServiceMonitor", "PodMonitor"):
        [one] = [one for (its_kind, _), one in objects.items() if its_kind == kind]
        assert one["metadata"]["labels"]["release"] == "prometheus"


def test_what_pods_reach_is_limited_where_values_say() -> None:
    limited = rendered(EVERYTHING)["NetworkPolicy", "one-gateway"]["spec"]
    assert limited["policyTypes"] == ["Ingress", "Egress"]
    dns, *others = limited["egress"]
    assert {port["port"] for port in dns["ports"]} == {53}
    assert others == EVERYTHING["networkPolicy"]["egress"]
    assert rendered(NEEDED)["NetworkPolicy", "one-gateway"]["spec"]["policyTypes"] == ["Ingress"]
