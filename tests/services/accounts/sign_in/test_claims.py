"""People by the claims of an issuer's token, and the paths to which browsers return."""

import pytest

from services.accounts.sign_in.attempts import SignInAttempt, safe_return, seal, unseal
from services.accounts.sign_in.claims import person_of
from services.accounts.sign_in.roles import role_by_issuer, role_by_key
from services.common.errors import GatewayError
from services.common.settings import Oidc
from tests.grid import Grid, each_row

SETTINGS = Oidc(
    issuer="https://login.example.com",
    client_id="gateway",
    team_claim="groups",
    teams={"g-lab": "lab"},
    role_claim="realm.roles",
    roles={"auditors": "viewer", "leads": "team_admin", "operators": "admin"},
)
CLAIMS = {"sub": "1", "email": "ada@example.com"}
ROLES = {
    "none": ({}, ""),
    "unknown": ({"realm": {"roles": ["other"]}}, ""),
    "the lowest": ({"realm": {"roles": "auditors"}}, "viewer"),
    "the highest": ({"realm": {"roles": ["auditors", "operators", "leads"]}}, "admin"),
    "a name with a dot": ({"realm.roles": ["leads"]}, "team_admin"),
    "not a text": ({"realm": {"roles": [["operators"], 7, None]}}, ""),
    "not an object": ({"realm": "operators"}, ""),
}
REFUSED = {
    "no subject": ({"sub": ""}, "sub"),
    "a subject that is a number": ({"sub": 1}, "sub"),
    "no name": ({"email": None}, "email"),
    "a name that no user has": ({"email": "Ada Lovelace"}, "email"),
    "an unverified address": ({"email_verified": False}, "verified"),
}
RETURNS = {
    "": "/console",
    "/console": "/console",
    "/console/documents/d_1?x=1": "/console/documents/d_1?x=1",
    "/console?chat=conv_1": "/console?chat=conv_1",
    "//evil.example": "/console",
    "/console//evil.example": "/console",
    "/consolevil": "/console",
    "/console/\\evil.example": "/console",
    "/console\n": "/console",
    "https://evil.example/console": "/console",
    "javascript:alert(1)": "/console",
    "/console/" + "a" * 600: "/console",
}


def test_roles_and_teams_come_from_claims() -> None:
    with Grid() as grid:
        for name, (claims, role) in ROLES.items():
            with grid.row(name):
                assert person_of({**CLAIMS, **claims}, SETTINGS).role == role
    assert person_of({**CLAIMS, "groups": ["x", "g-lab"]}, SETTINGS).team == "lab"
    assert person_of(CLAIMS, SETTINGS).team == ""
    assert person_of(CLAIMS, Oidc()).team is None
    verified = {**CLAIMS, "email_verified": True}
    assert person_of(verified, SETTINGS).email == "ada@example.com"
    assert person_of(CLAIMS, SETTINGS).email == ""


def test_roles_by_the_way_of_the_sign_in() -> None:
    claimed = [role_by_issuer(*one) for one in (("viewer", "admin", "user"), ("", "admin", "user"))]
    assert claimed == ["viewer", "admin"]
    assert [role_by_issuer("", "", one) for one in ("user", "")] == ["user", ""]
    expected = {"": "user", "viewer": "viewer", "user": "user", "team_admin": "user"}
    for role, of_a_program in {**expected, "admin": "user"}.items():
        assert role_by_key(role, is_for_sign_in=False) == of_a_program
        assert role_by_key(role, is_for_sign_in=True) == (role or "user")


def test_people_without_a_name_are_refused() -> None:
    with Grid() as grid:
        for name, (claims, word) in REFUSED.items():
            with grid.row(name), pytest.raises(GatewayError, match=word):
                person_of({**CLAIMS, **claims}, SETTINGS)


@each_row("path, expected", RETURNS.items())
def test_browsers_return_to_the_console_alone(path: str, expected: str) -> None:
    assert safe_return(path) == expected


def test_an_attempt_is_its_browsers_for_ten_minutes() -> None:
    attempt = SignInAttempt("state", "nonce", "verifier", "/console", 100)
    sealed = seal(attempt, b"secret")
    assert unseal(sealed, "state", b"secret", 99) == attempt
    for case in (
        (sealed, "other", b"secret", 99),
        (sealed, "state", b"secret", 100),
        (sealed, "state", b"others", 99),
        (f"x{sealed}", "state", b"secret", 99),
        ("", "", b"secret", 99),
    ):
        with pytest.raises(GatewayError, match="begin again"):
            unseal(*case)
