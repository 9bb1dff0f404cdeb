"""The paths of requests that a conversation was put into."""

import json

from facade.dialects.responses import (
    FIELD_NAMES,
    ContinuedPaths,
    load_paths,
    parse_request,
)
from tests.grid import each_row

BODY = {
    "model": "m",
    "instructions": "Be terse.",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "b"}]},
    ],
}
STEP = "fallback_config.steps[1].parameters"
# The system prompt, three messages of the conversation, and the two of the body.
PATHS = [
    ("messages[0]", "instructions", "instructions"),
    ("messages[1].blocks[0].media", "previous_response_id", "previous_response_id"),
    ("messages[3]", "previous_response_id", "previous_response_id"),
    ("messages[4].blocks[0].text", "input[0].content[0]", "input"),
    ("messages[5].blocks[0]", "input[1].content[0]", "input"),
    (f"{STEP}.messages[2].blocks[0]", f"{STEP}.input", f"{STEP}.input"),
    (f"{STEP}.temperature", f"{STEP}.temperature", f"{STEP}.temperature"),
    ("max_tokens", "max_output_tokens", "max_output_tokens"),
]


@each_row(("path", "of_body", "rewritten"), PATHS)
def test_paths_name_the_conversation_or_the_input(path: str, of_body: str, rewritten: str) -> None:
    source_map = parse_request(json.dumps(BODY).encode()).source_map
    for is_rewritten, expected in ((False, of_body), (True, rewritten)):
        paths = ContinuedPaths(
            *(FIELD_NAMES, source_map, range(1, 4), "previous_response_id"),
            is_rewritten=is_rewritten,
        )
        loaded = load_paths(json.loads(json.dumps(paths.dump())))
        assert paths.path(path) == loaded.path(path) == expected
