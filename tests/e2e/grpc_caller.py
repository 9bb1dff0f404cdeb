"""The gRPC call that docs/grpc.md shows: `python -m tests.e2e.grpc_caller ADDRESS KEY`."""

import sys

import grpc

from gateway.conversation.v1.conversation_pb2 import ROLE_USER, Block, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest
from gateway.inference.v1.inference_pb2_grpc import InferenceServiceStub


def main(address: str, key: str) -> None:
    with grpc.insecure_channel(address) as channel:
        inference = InferenceServiceStub(channel)
        hello = Message(role=ROLE_USER, blocks=[Block(text="Hello")])
        answer = inference.Generate(
            GenerateRequest(model="sandbox/echo", messages=[hello]),
            metadata=[("authorization", f"Bearer {key}")],
        )
    print(answer.choices[0].blocks[0].text)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
