"""The gRPC servicer of SessionService."""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from gateway.accounts.v1 import sessions_pb2, sessions_pb2_grpc
from gateway.accounts.v1.sessions_pb2 import Role, Session
from gateway.errors.v1 import errors_pb2
from services.accounts.admin.audit import Actor
from services.accounts.invitations.acceptance import InvitationAcceptance, IssuedName
from services.accounts.sign_in.administrators import Administrators
from services.accounts.sign_in.code_flow import CodeFlow
from services.accounts.sign_in.people import People
from services.accounts.sign_in.sessions import (
    KEY,
    LINK,
    OIDC,
    ConsoleSessionRepository,
    NewSession,
    ended,
)
from services.common.client_address import TrustedProxies
from services.common.errors import GatewayError, invalid, invalid_api_key, permission_denied
from services.common.grpc.authentication import Caller, Identify, SignIn, caller
from services.common.grpc.peers import caller_address
from services.common.grpc.roles import ADMIN
from services.common.key_format import is_key, malformed
from services.common.process import logs

SERVICE_NAME = "gateway.accounts.v1.SessionService"
# Returns the development key for a one-time code, or None.
Redeem = Callable[[str], Awaitable[str | None]]

Context = grpc.aio.ServicerContext[Any, Any]


class SessionServicer(sessions_pb2_grpc.SessionServiceServicer):
    """Begins, shows and ends sessions.

    Args:
        sessions: the sessions.
        redeem: redeems one-time codes.
        identify: returns the owner of an API key.
        administrators: which calls of administration are open to a person.
        code_flow: signs people in at the issuer; None without one.
        people: the issuer's people.
        invitations: accepts invitations.
        forget: invalidates the cached owner of the tokens of a subject.
        proxies: the proxies whose `x-forwarded-for` is believed.
    """

    def __init__(
        self,
        sessions: ConsoleSessionRepository,
        redeem: Redeem,
        identify: Identify,
        administrators: Administrators,
        code_flow: CodeFlow | None,
        people: People,
        invitations: InvitationAcceptance,
        forget: Callable[[str, str], None],
        proxies: TrustedProxies,
    ) -> None:
        self._sessions = sessions
        self._redeem = redeem
        self._identify = identify
        self._administrators = administrators
        self._code_flow = code_flow
        self._people = people
        self._invitations = invitations
        self._forget = forget
        self._proxies = proxies

    async def CreateSession(
        self, request: sessions_pb2.CreateSessionRequest, context: Context
    ) -> sessions_pb2.CreateSessionResponse:
        """Begin a session by a one-time code or an API key."""
        match request.WhichOneof("credential"):
            case "code":
                key = await self._redeem(request.code)
                if key is None:
                    raise GatewayError(
                        errors_pb2.REASON_NOT_FOUND,
                        "code: used or expired; `gateway console` prints a new link",
                        param="code",
                    )
                # Whoever reads the gateway's own files may do everything anyway.
                role, method = ADMIN, LINK
            case "key":
                key, role, method = request.key, "", KEY
                if not is_key(key):
                    raise invalid_api_key(malformed(key))
            case _:
                raise invalid("code", "code, key: exactly one is required")
        owner = await self._identify(key)
        session = await self._begin(owner, role, method, context)
        shown = await self._show(session.id)
        return sessions_pb2.CreateSessionResponse(token=session.token, session=shown)

    async def ReadInvitation(
        self, request: sessions_pb2.ReadInvitationRequest, context: Context
    ) -> sessions_pb2.ReadInvitationResponse:
        """Return what an invitation offers."""
        invitation = await self._invitations.read(request.token)
        return sessions_pb2.ReadInvitationResponse(
            role=invitation.role,
            user=invitation.user,
            team=invitation.team,
            invited_by=invitation.created_by_name,
            expires_at_ms=invitation.expires_at_ms,
        )

    async def AcceptInvitation(
        self, request: sessions_pb2.AcceptInvitationRequest, context: Context
    ) -> sessions_pb2.AcceptInvitationResponse:
        """Create the user of an invitation, and begin a session."""
        if self._code_flow is not None:
            raise permission_denied("people sign in at the issuer here; accept it by signing in")
        created = await self._invitations.accept(
            request.token, request.user, _invited(self._address(context))
        )
        owner = await self._identify(created.key)
        session = await self._begin(owner, "", KEY, context)
        return sessions_pb2.AcceptInvitationResponse(
            token=session.token, session=await self._show(session.id), key=created.key
        )

    async def BeginOidcSignIn(
        self, request: sessions_pb2.BeginOidcSignInRequest, context: Context
    ) -> sessions_pb2.BeginOidcSignInResponse:
        """Return the address at which the issuer signs a person in."""
        flow, invitation_id = self._flow(), ""
        if request.invitation:
            invitation_id = (await self._invitations.read(request.invitation)).id
        begun = await flow.begin(request.return_to, invitation_id)
        return sessions_pb2.BeginOidcSignInResponse(
            authorization_url=begun.authorization_url, attempt=begun.attempt
        )

    async def FinishOidcSignIn(
        self, request: sessions_pb2.FinishOidcSignInRequest, context: Context
    ) -> sessions_pb2.FinishOidcSignInResponse:
        """Begin a session for the person whom the issuer has signed in."""
        signed_in = await self._flow().finish(
            request.attempt, request.state, request.code, request.issuer
        )
        person, invitation_id = signed_in.person, signed_in.invitation_id
        issued = IssuedName(person.name, person.email, person.team is not None)
        if invitation_id:
            await self._invitations.check(invitation_id, issued)
        owner = await self._people.owner_of(person, is_invited=invitation_id != "")
        account_role = owner.role
        if invitation_id:
            account_role = await self._invitations.bind(
                invitation_id,
                issued,
                owner.user_id,
                _invited(self._address(context), person.name),
            )
            self._forget("user", owner.user_id)
        self._people.role_of(person, account_role)
        session = await self._begin(owner, person.role, OIDC, context)
        return sessions_pb2.FinishOidcSignInResponse(
            token=session.token, return_to=signed_in.return_to
        )

    async def GetSession(
        self, request: sessions_pb2.GetSessionRequest, context: Context
    ) -> sessions_pb2.GetSessionResponse:
        """Return who is signed in."""
        sign_in = _sign_in()
        return sessions_pb2.GetSessionResponse(
            session=await self._show(sign_in.session_id, sign_in.admin_key_id)
        )

    async def UnlockAdministration(
        self, request: sessions_pb2.UnlockAdministrationRequest, context: Context
    ) -> sessions_pb2.UnlockAdministrationResponse:
        """Open to the session what an admin key opens."""
        sign_in = _sign_in()
        if (await self._sessions.get(sign_in.session_id)).method == OIDC:
            raise permission_denied("your issuer decides your role; ask its administrator")
        administrator = await self._administrators.by_key(request.admin_key)
        token = await self._sessions.unlock(
            sign_in.session_id, administrator.key_id, self._actor(caller.get(), context)
        )
        self._forget("session", sign_in.session_id)
        return sessions_pb2.UnlockAdministrationResponse(
            token=token, session=await self._show(sign_in.session_id, administrator.key_id)
        )

    async def EndSession(
        self, request: sessions_pb2.EndSessionRequest, context: Context
    ) -> sessions_pb2.EndSessionResponse:
        """End the session."""
        session_id = _sign_in().session_id
        await self._sessions.end(session_id, self._actor(caller.get(), context))
        self._forget("session", session_id)
        return sessions_pb2.EndSessionResponse()

    def _flow(self) -> CodeFlow:
        if self._code_flow is None:
            raise GatewayError(
                errors_pb2.REASON_NOT_FOUND, "this gateway has no issuer (console.oidc.issuer)"
            )
        return self._code_flow

    async def _begin(self, owner: Caller, role: str, method: str, context: Context) -> NewSession:
        actor = self._actor(owner, context)
        return await self._sessions.create(owner.key_id, role, method, actor)

    async def _show(self, session_id: str, admin_key_id: str = "") -> Session:
        stored = await self._sessions.get(session_id)
        sign_in = SignIn(session_id, stored.user, stored.role, admin_key_id)
        return Session(
            user_id=stored.user_id,
            user=stored.user,
            team=stored.team,
            role=Role.Value(f"ROLE_{stored.role.upper()}"),
            admin_scopes=sorted(await self._administrators.scopes_of(sign_in)),
            may_unlock=stored.method != OIDC,
            ends_at_ms=stored.ends_at_ms,
        )

    def _actor(self, owner: Caller, context: Context) -> Actor:
        return Actor(owner.user_id, logs.request_id.get(), "", self._address(context))

    def _address(self, context: Context) -> str:
        return caller_address(context, self._proxies)


def _invited(address: str, name: str = "") -> Actor:
    """Return the author of what an invitation changes."""
    return Actor("invitation", logs.request_id.get(), name, address)


def _sign_in() -> SignIn:
    """Return the session of the call.

    Raises:
        GatewayError: invalid_api_key, when the call has another credential.
    """
    sign_in = caller.get().sign_in
    if sign_in is None or not sign_in.session_id:
        raise ended()
    return sign_in
