import orjson
import pytest
from anthropic.types import ModelInfo

from facade.dialects.anthropic import render_model, render_model_list
from gateway.conversation.v1.conversation_pb2 import MEDIA_KIND_DOCUMENT, MEDIA_KIND_IMAGE
from gateway.inference.v1.inference_pb2 import Model
from services.common.errors import GatewayError
from tests.grid import each_row

MODELS = [Model(name=f"m{number}", display_name=f"Model {number}") for number in range(45)]


def page(**query: str) -> tuple[list[str], bool]:
    listed = orjson.loads(render_model_list(MODELS, query))
    names = [model["id"] for model in listed["data"]]
    assert (listed["first_id"], listed["last_id"]) == (names[0], names[-1])
    return names, listed["has_more"]


def names(start: int, end: int) -> list[str]:
    return [f"m{number}" for number in range(start, end)]


def test_a_model_has_its_known_facts():
    model = Model(
        name="fast",
        display_name="Fast",
        provider="p",
        created_at=1_700_000_000,
        context_window=128_000,
        max_output_tokens=16_384,
        inputs=[MEDIA_KIND_IMAGE],
        thinking=True,
        structured_output=True,
    )
    body = render_model(model)
    ModelInfo.model_validate_json(body, strict=True)
    parsed = orjson.loads(body)
    capabilities = parsed.pop("capabilities")
    assert parsed == {
        "id": "fast",
        "type": "model",
        "display_name": "Fast",
        "created_at": "2023-11-14T22:13:20Z",
        "lifecycle": "active",
        "deprecated_at": None,
        "retires_at": None,
        "max_input_tokens": 128_000,
        "max_tokens": 16_384,
        "pricing": None,
    }
    assert capabilities["image_input"] == {"supported": True}
    assert capabilities["pdf_input"] == {"supported": False}
    assert capabilities["thinking"]["types"]["enabled"] == {"supported": True}
    assert capabilities["structured_outputs"] == {"supported": True}


def test_an_unknown_model_is_listed_without_facts():
    body = render_model(Model(name="x", display_name="x", inputs=[MEDIA_KIND_DOCUMENT]))
    ModelInfo.model_validate_json(body, strict=True)
    parsed = orjson.loads(body)
    assert parsed["created_at"] == "1970-01-01T00:00:00Z"
    assert parsed["max_input_tokens"] is parsed["max_tokens"] is None
    assert parsed["capabilities"]["pdf_input"] == {"supported": True}
    assert parsed["capabilities"]["thinking"]["supported"] is False


def test_pages_go_forward_to_the_end():
    assert page() == (names(0, 20), True)
    assert page(after_id="m19") == (names(20, 40), True)
    assert page(after_id="m39") == (names(40, 45), False)
    assert page(limit="45") == (names(0, 45), False)
    assert page(limit="44") == (names(0, 44), True)
    assert page(limit="1", after_id="m3") == (["m4"], True)


def test_pages_go_backward_in_the_same_order():
    assert page(before_id="m44") == (names(24, 44), True)
    assert page(before_id="m20") == (names(0, 20), False)
    assert page(before_id="m5", limit="2") == (["m3", "m4"], True)
    assert page(before_id="m1") == (["m0"], False)


@pytest.mark.parametrize(("models", "query"), [([], {}), (MODELS, {"after_id": "m44"})])
def test_an_empty_page_has_no_ids(models, query):
    listed = orjson.loads(render_model_list(models, query))
    assert listed == {"data": [], "has_more": False, "first_id": None, "last_id": None}


def test_unknown_parameters_are_read_past():
    assert page(lifecycle="active", workspace_id="w", limit="1000") == (names(0, 45), False)


@each_row(
    ("query", "param"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "1001"}, "limit"),
        ({"limit": "-1"}, "limit"),
        ({"limit": "1.5"}, "limit"),
        ({"limit": ""}, "limit"),
        ({"limit": "ten"}, "limit"),
        ({"limit": "٣"}, "limit"),
        ({"limit": "9" * 100_000}, "limit"),
        ({"after_id": "x"}, "after_id"),
        ({"after_id": ""}, "after_id"),
        ({"before_id": "x"}, "before_id"),
        ({"before_id": "m1", "after_id": "m2"}, "before_id"),
    ],
)
def test_a_bad_page_is_refused_with_its_parameter(query, param):
    with pytest.raises(GatewayError) as caught:
        render_model_list(MODELS, query)
    assert caught.value.http_status == 400
    assert caught.value.param == param
    assert caught.value.message.startswith(f"{param}: ")
