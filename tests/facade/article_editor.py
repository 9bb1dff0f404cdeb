"""A user who edits a document over HTTP."""


class Editor:
    """A user of a document, with the ids of its blocks by their types."""

    def __init__(self, gateway, key):
        self.gateway = gateway
        self.key = key
        self.session = ""
        self.document = ""
        self.ids = {}

    async def call(self, path, body):
        async with self.gateway.http.post(
            f"{self.gateway.url}/article/v1/{path}", json=body, headers={"x-api-key": self.key}
        ) as answer:
            answer_body = await answer.json()
            code = answer_body["code"]
            assert answer.status == (200 if code == 1 else code // 100)
            assert set(answer_body) == (
                {"code", "data"} if code == 1 else {"code", "message", "data"}
            )
            return answer_body

    async def done(self, path, /, **body):
        answer = await self.call(path, {"sessionId": self.session, **body})
        assert answer["code"] == 1, answer
        return answer["data"]

    async def refused(self, path, /, **body):
        """Return the code and the message of a refusal, which changes nothing."""
        before = await self.read()
        answer = await self.call(path, {"sessionId": self.session, **body})
        assert answer["data"] == {} and await self.read() == before
        return answer["code"], answer["message"]

    async def open_new(self):
        """Create a document, and open it."""
        self.document = (await self.done("doc/create"))["article"]["outer_id"]
        self.session = (await self.done("session/create", docId=self.document))["sessionId"]

    async def insert(self, *blocks):
        """Insert blocks at the end; return their ids."""
        count = len((await self.read())["blocks"])
        return (await self.done("block/insert", path=[count], blocks=[*blocks]))["ids"]

    async def read(self):
        return await self.done("doc/read")
