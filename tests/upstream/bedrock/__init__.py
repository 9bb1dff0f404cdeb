"""Amazon Bedrock as an upstream: Converse over the sandbox's models, and signed requests.

Bodies are checked against the service model of `bedrock-runtime` in botocore and by the rules that
it does not express; signatures are computed again by botocore's signer.
"""
