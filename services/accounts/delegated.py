"""Identification of callers by their keys, and by keys that the gateway makes for its own work."""

from services.accounts.repository import AccountRepository
from services.common.grpc.authentication import Caller, Identify
from services.common.grpc.delegated_keys import DelegatedKeys, is_delegated


def identify_with(accounts: AccountRepository, keys: DelegatedKeys) -> Identify:
    """Return the function that identifies the owners of API keys and of delegated keys."""

    async def identify(key: str) -> Caller:
        if not is_delegated(key):
            return await accounts.identify(key)
        key_id, is_valid = keys.verify(key)
        return await accounts.identify_by_id(key_id, is_valid=is_valid)

    return identify
