"""Entry point of `python -m services.supervisor`, which `gateway up` replaces itself with."""

import sys

from services.supervisor.config import SupervisorConfig


def main() -> int:
    """Run a gateway until a signal ends it; return the exit status."""
    try:
        from services.supervisor.gateway import run_gateway
        from services.supervisor.process import StartError

        try:
            run_gateway(SupervisorConfig.parse(sys.argv[1:]))
        except StartError as error:
            return _fail(str(error))
    except KeyboardInterrupt:
        return _fail("interrupted before the gateway was ready")
    return 0


def _fail(reason: str) -> int:
    print(f"gateway: {reason}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
