"""Identification of callers by all that stands for a key."""

from services.accounts.repository import AccountRepository
from services.common.grpc.authentication import Caller, Identify, is_session
from services.common.grpc.delegated_keys import DelegatedKeys, is_delegated
from services.common.key_format import is_issuer_token


def identify_with(
    accounts: AccountRepository, keys: DelegatedKeys, identify_signed_in: Identify
) -> Identify:
    """Return the function that identifies the owners of API keys, delegated keys and tokens.

    Args:
        accounts: identifies the owners of API keys.
        keys: verifies delegated keys.
        identify_signed_in: identifies the owners of tokens of sessions and issuers.
    """

    async def identify(key: str) -> Caller:
        if is_session(key) or is_issuer_token(key):
            return await identify_signed_in(key)
        if not is_delegated(key):
            return await accounts.identify(key)
        key_id, is_valid = keys.verify(key)
        return await accounts.identify_by_id(key_id, is_valid=is_valid)

    return identify
