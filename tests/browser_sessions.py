"""A browser without pages: cookies and the session of the console."""

from tests.gateway_in_process import Gateway


class Browser:
    """A browser with the cookies of one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.cookie = ""
        self.csrf_token = ""

    async def send(self, method: str, path: str, body: object = None, **headers: str):
        """Send a request as a page of the console does; return the status and the JSON."""
        sent = {"cookie": self.cookie, "x-csrf-token": self.csrf_token, **headers}
        address = f"{self.gateway.url}{path}"
        sent = {name.replace("_", "-"): value for name, value in sent.items() if value}
        async with self.gateway.http.request(method, address, json=body, headers=sent) as answer:
            parsed = await answer.json()
            if line := answer.headers.get("set-cookie"):
                self.cookie = line.partition(";")[0]
                self.line = line
            if isinstance(parsed, dict) and parsed.get("session"):
                self.csrf_token = parsed["session"]["csrf_token"]
            return answer.status, parsed

    async def sign_in(self, **credential: str):
        return await self.send("POST", "/console/session", credential)
