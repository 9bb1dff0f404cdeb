"""Run the upstream as a process, until it is told to stop."""

import argparse
import asyncio

from services.sandbox.server import serve
from tests.upstream.app import create_app


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    port = parser.parse_args().port
    asyncio.run(
        serve(
            create_app(),
            "127.0.0.1",
            port,
            lambda url: print(f"The upstream listens on {url}", flush=True),
        )
    )


if __name__ == "__main__":
    main()
