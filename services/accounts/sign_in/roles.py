"""Roles of people by the way of their sign-in. Pure."""

from services.common.grpc.roles import ROLES, USER


def role_by_key(account_role: str, *, is_for_sign_in: bool) -> str:
    """Return the role of a person who signs in with an API key.

    Programs have keys, and a lost one must not open administration: only a key that is for the
    sign-in has a role above `user`.

    Args:
        account_role: the role that is set for the user, or "".
        is_for_sign_in: whether the key is for the sign-in.
    """
    role = account_role or USER
    return role if is_for_sign_in else min(role, USER, key=ROLES.index)


def role_by_issuer(claimed_role: str, account_role: str, default_role: str) -> str:
    """Return the role of a person of the issuer, or "" if the person has none.

    Args:
        claimed_role: the role that the issuer's claims name, or "".
        account_role: the role that is set for the user, or "".
        default_role: the role of all others, `console.oidc.default_role`.
    """
    return claimed_role or account_role or default_role
