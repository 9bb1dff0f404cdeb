"""gRPC callers of `gateway up`: on a socket of each worker, on a port, with certificates."""

import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
import trustme

from gateway.accounts.v1 import accounts_pb2, accounts_pb2_grpc
from services.common.grpc.authentication import call_metadata
from services.common.grpc.channels import open_channel
from services.common.grpc.tls import channel_credentials
from services.common.settings import Grpc
from tests.e2e.gateway import Gateway, gateway
from tests.e2e.processes import PYTHON, ROOT

NOBODY = 9  # a port on which no provider listens
MAX_MESSAGE = 1 << 20
ANYWHERE = "127.0.0.1:0"


async def identify(channel: grpc.aio.Channel, key: str) -> str:
    """Return the user whose key it is."""
    owner = await accounts_pb2_grpc.AccountsServiceStub(channel).Identify(
        accounts_pb2.IdentifyRequest(), metadata=call_metadata(key, "req_1"), timeout=60
    )
    user_id: str = owner.user_id
    return user_id


async def test_each_worker_has_a_socket_that_is_its_users_own(tmp_path: Path) -> None:
    with gateway(tmp_path, NOBODY, workers=2) as at:
        sockets = sorted((at.data_dir / "run").glob("*.sock"))
        assert [one.name for one in sockets] == ["0.sock", "1.sock"]
        for one in sockets:
            assert stat.S_IMODE(one.stat().st_mode) & 0o077 == 0
            async with open_channel(f"unix:{one}", max_message_bytes=MAX_MESSAGE) as channel:
                assert await identify(channel, at.key)


async def test_workers_share_a_port_for_grpc_callers(tmp_path: Path) -> None:
    with gateway(tmp_path, NOBODY, workers=2, grpc=ANYWHERE) as at:
        assert not list((at.data_dir / "run").glob("*.sock"))
        for _ in range(8):
            # A connection of its own, which any of the workers takes.
            options = [("grpc.use_local_subchannel_pool", 1)]
            address = f"127.0.0.1:{at.services_port}"
            async with grpc.aio.insecure_channel(address, options=options) as channel:
                assert await identify(channel, at.key)


@pytest.fixture
def certificates(tmp_path: Path) -> Grpc:
    """Return files of an authority, and of a certificate that it has issued for this machine."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    issued.private_key_pem.write_to_path(str(tmp_path / "own.key"))
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "own.pem"))
    return Grpc(
        certificate=str(tmp_path / "own.pem"),
        private_key=str(tmp_path / "own.key"),
        client_ca=str(tmp_path / "ca.pem"),
    )


@pytest.fixture
def encrypted(tmp_path: Path, certificates: Grpc) -> Iterator[Gateway]:
    names = ("certificate", "private_key", "client_ca")
    lines = [f'{name} = "{getattr(certificates, name)}"' for name in names]
    settings = "\n".join(["[grpc]", *lines, ""])
    with gateway(tmp_path, NOBODY, settings=settings, grpc=ANYWHERE) as at:
        yield at


def test_the_documented_client_is_answered(tmp_path: Path) -> None:
    with gateway(tmp_path, NOBODY) as at:
        address = f"unix:{at.data_dir}/run/0.sock"
        shown = subprocess.run(
            [PYTHON, "docs/examples/grpc_client.py", address, at.key, "Hello"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    assert "Hello" in shown.stdout


def showing_nothing(certificates: Grpc) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(Path(certificates.client_ca).read_bytes())


async def test_with_certificates_only_those_who_show_one_are_served(
    encrypted: Gateway, certificates: Grpc
) -> None:
    address = f"127.0.0.1:{encrypted.services_port}"
    shown = channel_credentials(certificates)
    async with open_channel(address, max_message_bytes=MAX_MESSAGE, credentials=shown) as channel:
        assert await identify(channel, encrypted.key)
    for credentials in (showing_nothing(certificates), None):
        async with open_channel(
            address, max_message_bytes=MAX_MESSAGE, credentials=credentials
        ) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await identify(channel, encrypted.key)
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
