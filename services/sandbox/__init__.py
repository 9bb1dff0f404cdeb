"""The sandbox: deterministic answers without a network.

`model` holds its models, which the gateway's provider `sandbox` asks in the process
(`services.inference.providers.sandbox`). Everything else is an HTTP server that plays the APIs
of OpenAI, Anthropic and Gemini, and of further providers (`personalities`), for tests against
them (`gateway sandbox`). `model.behaviours` documents what the models answer.
"""
