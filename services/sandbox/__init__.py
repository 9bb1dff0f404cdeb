"""The sandbox: deterministic answers without a network.

`model` contains its models, which the gateway's provider `sandbox` calls in-process
(`services.inference.providers.sandbox`); `model.behaviours` documents their answers. `server` is an
HTTP server of them with the APIs of OpenAI, Anthropic and Gemini (`gateway sandbox`).
"""
