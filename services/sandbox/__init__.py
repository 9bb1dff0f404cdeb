"""The sandbox: deterministic answers without a network.

`model` contains its models, which the gateway's provider `sandbox` calls in-process
(`services.inference.providers.sandbox`). Everything else is an HTTP server that emulates the APIs
of OpenAI, Anthropic and Gemini, and of further providers (`personalities`), for tests against them
(`gateway sandbox`). `model.behaviours` documents the models' answers.
"""
