import os
import socket
import stat
from pathlib import Path

import pytest

from services.supervisor.process import StartError
from services.supervisor.resources import (
    LOCK_FILE,
    held_port,
    locked,
    runtime_folder,
    short_path,
)

PORT_SETTINGS = "GATEWAY_PORT"


def test_the_lock_file_of_a_killed_gateway_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).write_text("999999999\n")
    with locked(str(tmp_path)):
        assert (tmp_path / LOCK_FILE).read_text() == f"{os.getpid()}\n"


def test_an_unusable_data_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StartError, match=r"file/var: .*storage\.data_dir"),
        locked(str(tmp_path / "file" / "var")),
    ):
        pass


@pytest.mark.parametrize("shared", [False, True])
def test_a_port_in_use_is_refused_even_with_reuseport(shared: bool) -> None:
    with socket.socket() as other:
        if shared:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with (
            pytest.raises(StartError, match=f"127.0.0.1:{port}: .*in use.*GATEWAY_PORT"),
            held_port("127.0.0.1", port, PORT_SETTINGS),
        ):
            pass


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(StartError, match=r"192\.0\.2\.1:8080: .*GATEWAY_HOST"):
        with held_port("192.0.2.1", 8080, "GATEWAY_HOST"):
            pass


def test_connections_reach_programs_on_a_held_port() -> None:
    with held_port("127.0.0.1", 0, PORT_SETTINGS) as port, socket.socket() as facade:
        facade.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        facade.bind(("127.0.0.1", port))
        facade.listen()
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                facade.accept()[0].close()


def test_the_error_for_a_taken_port_names_its_settings(tmp_path: Path) -> None:
    with held_port("127.0.0.1", 0, PORT_SETTINGS) as port, socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        with (
            pytest.raises(StartError, match="GATEWAY_METRICS_PORT"),
            held_port("127.0.0.1", port, "GATEWAY_METRICS_PORT"),
        ):
            pass


def test_files_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    (tmp_path / "run" / "metrics").mkdir(parents=True)
    (tmp_path / "run" / "0.sock").touch()
    with runtime_folder(str(tmp_path)) as folder:
        assert folder == str(tmp_path / "run")
        assert os.listdir(folder) == []
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", [10, 200])
def test_sockets_in_a_long_path_get_a_short_one(tmp_path: Path, length: int) -> None:
    long = tmp_path / ("x" * length)
    long.mkdir()
    with short_path(str(long)) as (folder, passed), socket.socket(socket.AF_UNIX) as one:
        assert len(f"{folder}/63.sock") <= 100
        assert len(passed) == (length > 100)
        one.bind(f"{folder}/63.sock")
        assert [each.name for each in long.iterdir()] == ["63.sock"]
