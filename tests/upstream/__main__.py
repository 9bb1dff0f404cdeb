"""Run the upstream as a process, until it is told to stop."""

import argparse
import asyncio
from pathlib import Path

from services.sandbox.server import serve
from tests.upstream.app import create_app
from tests.upstream.vertex.tokens import ServiceAccount


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--account", type=Path, help="the file to write of a service account")
    arguments = parser.parse_args()
    account = ServiceAccount() if arguments.account else None

    def show(url: str) -> None:
        if account is not None:
            arguments.account.write_text(account.file(f"{url}/token"))
        print(f"The upstream listens on {url}", flush=True)

    asyncio.run(serve(create_app(account=account), "127.0.0.1", arguments.port, show))


if __name__ == "__main__":
    main()
