"""A model that searches the web, whole and streamed, and fetches a page.

python web_search.py http://127.0.0.1:8080 gw-… whole
python web_search.py http://127.0.0.1:8080 gw-… streamed
python web_search.py http://127.0.0.1:8080 gw-… fetch http://example.com/
"""

import sys

from anthropic import Anthropic

address, key, what, *pages = sys.argv[1:]
client = Anthropic(base_url=f"{address}/beta", api_key=key, max_retries=0)


def search():
    """Search, and return the answer once it is there."""
    answer = client.messages.create(
        model="sandbox/echo",
        max_tokens=1000,
        messages=[{"role": "user", "content": "Please call web_search about Typst."}],
        extra_body={"use_built_in_tools": True},
    )
    print([block.type for block in answer.content])
    # ['text', 'server_tool_use', 'web_search_tool_result', 'text']
    return answer


def stream(asked):
    """Ask, print the kinds of blocks as they come, and return the answer."""
    with client.messages.stream(
        model="sandbox/echo",
        max_tokens=1000,
        messages=[{"role": "user", "content": asked}],
        extra_body={"use_built_in_tools": True},
    ) as events:
        for event in events:
            if event.type == "content_block_start":
                print(event.content_block.type, flush=True)
        return events.get_final_message()


if what == "whole":
    answer = search()
elif what == "streamed":
    answer = stream("Please call web_search about Typst.")
else:
    answer = stream(f"Please call web_fetch on {pages[0]} now.")

for block in answer.content:
    if block.type == "web_search_tool_result":
        print([(found.url, found.title) for found in block.content])
    elif block.type == "web_fetch_tool_result":
        print(block.content.type, getattr(block.content, "error_code", ""))
print(answer.content[-1].text)
print(answer.usage.server_tool_use)
