"""The charges that are held for a response which no HTTP connection sends."""

from services.common.process.byte_budget import Charge


class HeldCharges:
    """Charges that are released together; see `ClientConnection.hold`."""

    def __init__(self) -> None:
        self._charges: list[Charge] = []

    def hold(self, charge: Charge) -> None:
        """Hold a charge until `release`."""
        self._charges.append(charge)

    def holds(self, charge: Charge) -> bool:
        """Return whether a charge is held."""
        return charge in self._charges

    def release(self) -> None:
        """Release all charges."""
        for charge in self._charges:
            charge.release()
        self._charges.clear()
