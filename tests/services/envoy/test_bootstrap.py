"""The generated configuration: what a real Envoy says of it, and what follows from settings."""

import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.common.settings import SettingsError, parse
from services.envoy.bootstrap import bootstrap
from services.envoy.process import envoy_command
from tests.certificates import Certificates, issue

ROOT = Path(__file__).parents[3]
DEFAULT = ROOT / "envoy" / "envoy.yaml"


def settings(**sections: Any) -> Any:
    return parse(sections, "the test")


def generated(**sections: Any) -> Any:
    return yaml.safe_load(bootstrap(settings(**sections)))


def manager(config: Any, listener: int = 0) -> Any:
    found = config["static_resources"]["listeners"][listener]
    return found["filter_chains"][0]["filters"][0]["typed_config"]


def cluster(config: Any, name: str) -> Any:
    (found,) = [one for one in config["static_resources"]["clusters"] if one["name"] == name]
    return found


def routes(config: Any) -> Any:
    return manager(config)["route_config"]["virtual_hosts"][0]["routes"]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return issue(tmp_path_factory.mktemp("certificates"))


def tls_sections(certificates: Certificates) -> dict[str, Any]:
    certificate, key, ca = map(str, (certificates.certificate, certificates.key, certificates.ca))
    return {
        "server": {"tls_certificate": certificate, "tls_key": key, "tls_client_ca": ca},
        "grpc": {"certificate": certificate, "private_key": key, "client_ca": ca},
        "envoy": {
            "certificate": certificate,
            "private_key": key,
            "client_ca": ca,
            "facades": ["a.example:8080", "[::1]:8080"],
            "grpc": ["a.example:50051"],
            "upstream_ca": ca,
            "upstream_certificate": certificate,
            "upstream_private_key": key,
            "metrics_port": 9902,
            "admin_api": True,
        },
    }


def validate(path: Path) -> None:
    checked = subprocess.run(
        [envoy_command(), "--mode", "validate", "--config-path", str(path)],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stderr
    assert "deprecated" not in checked.stderr.lower()


def test_the_file_in_the_source_is_that_of_the_defaults():
    assert DEFAULT.read_text() == bootstrap(settings()), "run make generate"


def test_envoy_takes_the_file_in_the_source():
    validate(DEFAULT)


@pytest.mark.parametrize("encrypted", [False, True])
def test_envoy_takes_the_configuration(
    tmp_path: Path, certificates: Certificates, encrypted: bool
) -> None:
    path = tmp_path / "envoy.yaml"
    sections = {"server": {"grpc": "127.0.0.1:50051"}, "envoy": {"metrics_port": 9902}}
    path.write_text(bootstrap(settings(**(tls_sections(certificates) if encrypted else sections))))
    validate(path)


def test_names_of_files_are_not_read_as_yaml():
    paths = {"certificate": '/a: b #"$host".pem', "private_key": "/\\é {x}\n*"}
    filters = generated(envoy=paths)["static_resources"]["listeners"][0]["filter_chains"][0]
    context = filters["transport_socket"]["typed_config"]["common_tls_context"]
    assert context["tls_certificates"] == [
        {
            "certificate_chain": {"filename": paths["certificate"]},
            "private_key": {"filename": paths["private_key"]},
        }
    ]


def test_durations_have_no_exponent():
    config = generated(limits={"step_timeout_s": 2_345_678.5})
    (endpoints,) = [one for one in routes(config) if "article" in str(one["match"])]
    assert endpoints["route"]["idle_timeout"] == "2345738.5s"


def test_limits_follow_those_of_the_gateway():
    limits = {
        "max_body_bytes": 1 << 20,
        "max_file_bytes": 5 << 20,
        "min_body_bytes_per_s": 1 << 20,
        "body_idle_s": 10,
        "step_timeout_s": 40,
        "stream_idle_s": 100,
        "head_timeout_s": 3,
    }
    config = generated(limits=limits)
    refused = routes(config)[0]["match"]["headers"][0]["range_match"]["start"]
    assert refused == (6 << 20) + 1
    assert str(6 << 20) in json.dumps(manager(config)["local_reply_config"])
    assert manager(config)["request_timeout"] == "16s"
    assert manager(config)["request_headers_timeout"] == "3s"
    (endpoints,) = [one for one in routes(config) if "article" in str(one["match"])]
    assert endpoints["route"] == {"cluster": "facades", "timeout": "0s", "idle_timeout": "160s"}


def test_hosts_are_those_of_the_settings():
    config = generated(
        envoy={"facades": ["10.0.0.1:80", "10.0.0.2:81"], "grpc": ["one.example:82"]}
    )
    facades, services = cluster(config, "facades"), cluster(config, "services")
    assert (facades["type"], services["type"]) == ("STATIC", "STRICT_DNS")
    places = [one["endpoint"] for one in facades["load_assignment"]["endpoints"][0]["lb_endpoints"]]
    assert [one["address"]["socket_address"]["port_value"] for one in places] == [80, 81]


def test_a_single_machine_is_its_own_host():
    config = generated(server={"host": "0.0.0.0", "port": 8081, "grpc": "0.0.0.0:82"})
    for name, port in (("facades", 8081), ("services", 82)):
        assert f"{{'address': '127.0.0.1', 'port_value': {port}}}" in str(cluster(config, name))


def test_without_an_address_for_grpc_there_is_no_route_to_it():
    assert "services" not in str(routes(generated()))
    assert "services" in str(routes(generated(server={"grpc": "127.0.0.1:50051"})))


def test_administration_has_a_route_only_where_it_is_asked_for():
    assert "/admin/v1" not in str(routes(generated()))
    assert "/admin/v1" in str(routes(generated(envoy={"admin_api": True})))


def test_forwarded_addresses_of_trusted_proxies_count():
    assert manager(generated())["xff_num_trusted_hops"] == 0
    assert manager(generated(envoy={"trusted_proxies": 2}))["xff_num_trusted_hops"] == 2


def test_hosts_must_have_certificates_of_their_own_names(certificates: Certificates):
    config = generated(**tls_sections(certificates))
    context = cluster(config, "facades")["transport_socket"]["typed_config"]["common_tls_context"]
    names = context["validation_context"]["match_typed_subject_alt_names"]
    assert names == [
        {"san_type": "DNS", "matcher": {"exact": "a.example"}},
        {"san_type": "IP_ADDRESS", "matcher": {"exact": "::1"}},
    ]


def test_the_metrics_listener_has_two_paths():
    listener = manager(generated(envoy={"metrics_port": 9902}), 1)
    found = listener["route_config"]["virtual_hosts"][0]["routes"]
    assert [one["match"] for one in found] == [{"path": "/stats/prometheus"}, {"path": "/ready"}]


@pytest.mark.parametrize(
    ("sections", "missing"),
    [
        ({"server": {"tls_certificate": "a", "tls_key": "b"}}, "envoy.upstream_ca"),
        (
            {
                "server": {"tls_certificate": "a", "tls_key": "b", "tls_client_ca": "c"},
                "envoy": {"upstream_ca": "c"},
            },
            "envoy.upstream_certificate",
        ),
        (
            {
                "server": {"grpc": "127.0.0.1:1"},
                "grpc": {"certificate": "a", "private_key": "b", "client_ca": "c"},
                "envoy": {"upstream_ca": "c"},
            },
            "envoy.upstream_certificate",
        ),
    ],
)
def test_a_missing_certificate_is_named(sections: Any, missing: str):
    with pytest.raises(SettingsError, match=missing):
        generated(**sections)


@pytest.mark.parametrize(
    ("section", "named"),
    [
        ({"certificate": "a"}, "certificate and private_key must be set together"),
        ({"upstream_private_key": "a"}, "upstream_certificate and upstream_private_key"),
        ({"client_ca": "a"}, "client_ca"),
        ({"facades": ["a.example"]}, "facades"),
        ({"grpc": ["http://a:1"]}, "grpc"),
    ],
)
def test_a_wrong_section_is_refused(section: Any, named: str):
    with pytest.raises(SettingsError, match=named):
        settings(envoy=section)


def test_connections_to_vanished_machines_end_within_seconds() -> None:
    config = generated(server={"grpc": "127.0.0.1:50051"})
    for name in ("facades", "services"):
        found = cluster(config, name)
        probes = found["upstream_connection_options"]["tcp_keepalive"]
        assert probes["keepalive_time"] + 3 * probes["keepalive_interval"] <= 5
        (option,) = found["upstream_bind_config"]["socket_options"]
        assert (option["level"], option["name"]) == (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        assert option["int_value"] <= 5000
