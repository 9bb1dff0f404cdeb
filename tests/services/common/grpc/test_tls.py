"""Certificates of a gRPC server, which may be replaced while it runs."""

from pathlib import Path

import grpc
import pytest
import trustme

from services.common.grpc.tls import channel_credentials, server_credentials
from services.common.settings import Grpc
from tests.certificates import issue_by

METHOD = "/test.Echo/Say"


class Echo(grpc.GenericRpcHandler):
    def service(self, call):
        async def say(request, context):
            return request

        return grpc.unary_unary_rpc_method_handler(say)


def settings_of(authority: trustme.CA, folder: Path) -> Grpc:
    folder.mkdir(exist_ok=True)
    made = issue_by(authority, folder)
    return Grpc(
        certificate=str(made.certificate), private_key=str(made.key), client_ca=str(made.ca)
    )


async def says(port: int, settings: Grpc) -> bool:
    """Return whether a caller with these certificates is served on a connection of its own."""
    own = [("grpc.use_local_subchannel_pool", 1)]
    credentials = channel_credentials(settings)
    assert credentials is not None
    async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, own) as channel:
        try:
            return await channel.unary_unary(METHOD)(b"a", timeout=30) == b"a"
        except grpc.aio.AioRpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE, error
            return False


async def test_a_replaced_certificate_is_shown_to_new_connections(tmp_path: Path) -> None:
    settings = settings_of(trustme.CA(), tmp_path / "server")
    old = Grpc(**settings.model_dump())
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Echo(),))
    credentials = server_credentials(settings)
    assert credentials is not None
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        assert await says(port, old)
        other = trustme.CA()
        caller = settings_of(other, tmp_path / "caller")
        assert not await says(port, caller)
        settings_of(other, tmp_path / "server")
        assert await says(port, caller)
        # One that cannot be read leaves the one in use.
        (tmp_path / "server" / "own.pem").unlink()
        assert await says(port, caller)
    finally:
        await server.stop(None)


def test_without_a_certificate_nothing_is_encrypted() -> None:
    assert server_credentials(Grpc()) is None


def test_a_missing_file_is_told_at_the_start(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        server_credentials(Grpc(certificate=missing, private_key=missing, client_ca=missing))
