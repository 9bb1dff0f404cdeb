from gateway.conversation.v1.conversation_pb2 import ROLE_ASSISTANT, ROLE_USER, Block, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.messages.large_request import LargeRequest, serialize


def request_of(messages: int) -> GenerateRequest:
    return GenerateRequest(
        model="a/model",
        max_tokens=7,
        messages=[
            Message(role=(ROLE_USER, ROLE_ASSISTANT)[n % 2], blocks=[Block(text=f"turn {n}")])
            for n in range(messages)
        ],
    )


def test_a_request_comes_back_from_its_parts() -> None:
    parts = serialize(request_of(4_001))
    assert [len(GenerateRequest.FromString(part).messages) for part in parts] == [2000, 2000, 1, 0]
    assert LargeRequest(parts).parse() == request_of(4_001)


def test_a_request_without_messages_has_one_part() -> None:
    parts = serialize(request_of(0))
    assert len(parts) == 1
    assert LargeRequest(parts).parse() == request_of(0)


def test_the_parts_are_a_serialized_request_together() -> None:
    large = LargeRequest(serialize(request_of(4_001)))
    assert GenerateRequest.FromString(large.SerializeToString()) == request_of(4_001)
    assert large.ByteSize() == request_of(4_001).ByteSize()


def test_a_parsed_request_releases_its_parts() -> None:
    large = LargeRequest(serialize(request_of(4_001)))
    large.parse()
    assert large.SerializeToString() == b""
