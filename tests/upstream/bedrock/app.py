"""The paths of Bedrock, over the sandbox's models."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import orjson
from aiohttp import web

from services.common.ids import IdGenerator
from services.sandbox.dialects import Anthropic, Body, Json
from services.sandbox.handlers import Handler, Server
from services.sandbox.model.answers import Answer
from services.sandbox.model.models import LISTED, Kind, Model, SandboxError, TooLongError
from services.sandbox.model.play import Step
from tests.upstream import anthropic_rules
from tests.upstream.bedrock import rules, signatures, wire
from tests.upstream.bedrock.claude import Embeddings, InvokedMessages, embed
from tests.upstream.bedrock.signatures import SignatureError
from tests.upstream.checks import Check

EVENT_STREAM = "application/vnd.amazon.eventstream"
_ERRORS: Mapping[Kind, tuple[int, str]] = {
    "invalid": (400, "ValidationException"),
    "context_length": (400, "ValidationException"),
    "authentication": (403, "UnrecognizedClientException"),
    "permission": (403, "AccessDeniedException"),
    "model_not_found": (404, "ResourceNotFoundException"),
    "not_found": (404, "ResourceNotFoundException"),
    "rate_limit": (429, "ThrottlingException"),
    "server": (500, "InternalServerException"),
    "overloaded": (503, "ServiceUnavailableException"),
}
# Names of Bedrock's models: a geography, a maker, the sandbox's name, and a version.
_NAME = re.compile(r"(?:[a-z]+\.)?(?:anthropic|amazon|cohere|openai)\.(?P<model>.+?)(?:-v\d+:\d+)?")
_TYPE = "x-amzn-errortype"


def sandbox_model(model_id: str) -> str:
    """Return the sandbox's name for a model of Bedrock."""
    match = _NAME.fullmatch(model_id)
    return match["model"] if match else model_id


def name_of(error: SandboxError) -> tuple[int, str]:
    """Return the status and the name of an error."""
    if isinstance(error, SignatureError):
        return 403, error.name
    return _ERRORS[error.kind]


class Converse(Anthropic):
    """Converse, or ConverseStream, or its count of tokens; see `Dialect`."""

    request_id_header = "x-amzn-requestid"

    def __init__(
        self, new_id: IdGenerator, operation: str = "Converse", *, streams: bool = False
    ) -> None:
        super().__init__(new_id)
        self._operation = operation
        self._streams = streams

    def authenticate(self, headers: Mapping[str, str]) -> None:
        """Do nothing: signatures are checked before."""

    def accept(self, body: Body, headers: Mapping[str, str]) -> Body:
        """Check a body, and return it as one of Anthropic's messages."""
        problem = rules.find_problem(body, "anthropic.echo", self._operation)
        if problem is None:
            conversation = body if self._operation == "Converse" else body["input"]["converse"]
            converted = wire.to_messages(conversation)
            problem = anthropic_rules.find_problem(converted)
        if problem is not None:
            where = ".".join(map(str, problem.path))
            raise SandboxError("invalid", 400, f"{where} {problem.message}".strip())
        return {**converted, "stream": self._streams}

    def whole(self, answer: Answer, model: Model, body: Body) -> Json:
        """Write a whole answer."""
        return wire.whole(super().whole(answer, model, body))

    def stream(self, answer: Answer, model: Model, body: Body) -> "_Frames":
        """Return a writer of frames."""
        return _Frames(super().stream(answer, model, body))

    def failure(self, error: SandboxError, request_id: str) -> Json:
        """Write an error, with its name for the header."""
        message = error.message
        if isinstance(error, TooLongError):
            message = "Input is too long for requested model."
        return {"message": message, "__type": name_of(error)[1]}

    def counted(self, read: int) -> Json:
        """Write the result of counting input tokens."""
        return {"inputTokens": read}


class _Frames:
    """Writes the events of a stream of Anthropic's messages as frames."""

    def __init__(self, messages: Any) -> None:
        self._messages = messages

    def write(self, step: Step) -> bytes:
        events = [
            orjson.loads(one.partition(b"data: ")[2])
            for one in self._messages.write(step).split(b"\n\n")
            if one
        ]
        # Bedrock pads its events, so that their sizes say nothing.
        return b"".join(
            wire.frame("event", name, orjson.dumps({**payload, "p": "abcdefgh"}))
            for event in events
            for name, payload in wire.frames_of(event)
        )

    def end(self) -> bytes:
        return b""

    def failure(self, error: SandboxError, request_id: str) -> bytes:
        name = name_of(error)[1]
        payload = orjson.dumps({"message": error.message})
        return wire.frame("exception", name[0].lower() + name[1:], payload)


def add_bedrock(
    app: web.Application,
    server: Server,
    new_id: IdGenerator,
    now: Callable[[], float],
    claude: Mapping[str, tuple[Check, Check]],
    betas: Collection[str],
) -> None:
    """Add Bedrock's paths to an application.

    Args:
        app: the application.
        server: has the handlers.
        new_id: generates ids of answers.
        now: returns Unix seconds.
        claude: checks of Anthropic's bodies: `messages` and `count`, each without and with betas.
        betas: the names of beta features.
    """

    def signed(handler: Handler, dialect: Converse | InvokedMessages) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                await signatures.check(request, now)
            except SignatureError as error:
                return web.json_response(dialect.failure(error, ""), status=403)
            request.match_info["model"] = sandbox_model(request.match_info["id"])
            return await handler(request)

        return handle

    whole, stream = Converse(new_id), Converse(new_id, streams=True)
    counting = Converse(new_id, "CountTokens")
    invoked = InvokedMessages(new_id, claude["messages"], betas, name_of)
    chunked = InvokedMessages(new_id, claude["messages"], betas, name_of, streams=True)
    packed = InvokedMessages(new_id, claude["messages"], betas, name_of, counts=True)
    count = signed(server.handler(counting, server.count_tokens), counting)
    count_packed = signed(server.handler(packed, server.count_tokens), packed)
    invoke = signed(server.handler(invoked, server.generate), invoked)
    vectors = signed(server.handler(Embeddings(new_id), embed), invoked)
    streamed = signed(server.handler(chunked, server.generate), chunked)

    async def count_either(request: web.Request) -> web.StreamResponse:
        is_packed = "invokeModel" in orjson.loads(await request.read())["input"]
        return await (count_packed if is_packed else count)(request)

    async def invoke_either(request: web.Request) -> web.StreamResponse:
        return await (vectors if "embed" in request.match_info["id"] else invoke)(request)

    app.router.add_post("/model/{id:[^/]+}/count-tokens", count_either)
    app.router.add_post("/model/{id:[^/]+}/invoke", invoke_either)
    app.router.add_post("/model/{id:[^/]+}/invoke-with-response-stream", streamed)
    for path, dialect, answer in (
        ("converse", whole, server.generate),
        ("converse-stream", stream, server.generate),
    ):
        handler = signed(server.handler(dialect, answer), dialect)
        app.router.add_post(f"/model/{{id:[^/]+}}/{path}", handler)
    app.router.add_get("/{list:foundation-models|inference-profiles}", _list(now))
    app.on_response_prepare.append(_add_head)


def _list(now: Callable[[], float]) -> Handler:
    """Return a handler that lists the models, each as a profile too."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            await signatures.check(request, now)
        except SignatureError as error:
            return web.json_response(
                {"message": error.message}, status=403, headers={_TYPE: error.name}
            )
        models = [
            {
                "modelId": f"anthropic.{model.name}",
                "modelName": model.display_name,
                "outputModalities": ["TEXT"],
                "inferenceTypesSupported": ["ON_DEMAND"],
                "modelLifecycle": {
                    "status": "LEGACY",
                    "legacyTime": "2026-05-01T00:00:00Z",
                    "endOfLifeTime": "2027-03-01T00:00:00Z",
                },
            }
            for model in LISTED
        ]
        if request.match_info["list"] == "foundation-models":
            return web.json_response({"modelSummaries": models})
        profiles = [
            {
                "inferenceProfileId": f"us.{one['modelId']}",
                "status": "ACTIVE",
                "models": [
                    {"modelArn": f"arn:aws:bedrock:us-east-1::foundation-model/{one['modelId']}"}
                ],
            }
            for one in models
        ]
        return web.json_response({"inferenceProfileSummaries": profiles})

    return handle


async def _add_head(request: web.Request, response: web.StreamResponse) -> None:
    """Add the type of a stream, and the header with an error's name, as Bedrock has them."""
    if not request.path.startswith("/model/"):
        return
    if isinstance(response, web.Response):
        body = response.body
        if response.status >= 400 and isinstance(body, bytes):
            name = orjson.loads(body)["__type"]
            response.headers[_TYPE] = f"{name}:http://internal.amazon.com/coral/"
    elif request.path.endswith(("/converse-stream", "/invoke-with-response-stream")):
        response.content_type = EVENT_STREAM
