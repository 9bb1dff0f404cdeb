"""Three conversations with one memory: what was said in the first is known in the third.

python remembered.py http://127.0.0.1:8080 gw-…
"""

import json
import sys
import time
from urllib.request import Request, urlopen

address, key = sys.argv[1:]
HEADERS = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}


def call(method, path, body=None):
    """Call an endpoint; give its answer."""
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(address + path, data, HEADERS, method=method)) as answer:
        return json.load(answer)


def say(text, **config):
    """Say one thing, and nothing of what was said before; give the answer."""
    body = {
        "model": "sandbox/echo",
        "messages": [{"role": "user", "content": text}],
        "memory_id": "kitchen",
        "memory_config": config,
    }
    answer = call("POST", "/beta/v1/chat/completions", body)
    return answer["choices"][0]["message"]["content"]


# On Monday. What the user says of herself is found in the background, within moments.
say("My sister Mo lives in Oslo, and she cannot stand fennel.", personal_memory=True)
while not call("GET", "/beta/v1/memory/profile")["facts"]:
    time.sleep(0.1)

# In the weeks after that.
for day in range(2, 16):
    say(f"What I cooked on day {day} went well.")

# Today. The sandbox says all that it was sent.
print(say("What can I cook for my sister? (sandbox: recite)", personal_memory=True))

memory = call("GET", "/beta/v1/memories/kitchen")
print(f"\n{memory['turns']} turns, {memory['summarised']} of them summarised")
call("DELETE", "/beta/v1/memories/kitchen")
call("DELETE", "/beta/v1/memory/profile")
