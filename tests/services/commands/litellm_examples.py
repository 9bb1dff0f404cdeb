"""Configurations of LiteLLM's proxy."""

# A team's proxy: two regions and a spare, a local server, budgets, a cache.
TEAM = """
model_list:
  - model_name: gpt-4o
    litellm_params:
      model: azure/gpt-4o-eu
      api_base: https://team-eu.openai.azure.com/
      api_key: os.environ/AZURE_EU_KEY
      api_version: "2025-01-01-preview"
      rpm: 600
      weight: 3
    model_info:
      base_model: azure/gpt-4o
  - model_name: gpt-4o
    litellm_params:
      model: azure/gpt-4o-us
      api_base: https://team-us.openai.azure.com
      api_key: os.environ/AZURE_US_KEY
      weight: 1
  - model_name: gpt-4o
    litellm_params: {model: gpt-4o, api_key: os.environ/OPENAI_API_KEY, order: 2}
  - model_name: sonnet
    litellm_params:
      model: anthropic/claude-sonnet-4-5
      api_key: os.environ/ANTHROPIC_API_KEY
    model_info:
      max_input_tokens: 200000
      max_output_tokens: 64000
      input_cost_per_token: 0.000003
      output_cost_per_token: 1.5e-05
      supports_vision: true
  - model_name: llama
    litellm_params: {model: ollama_chat/llama3.1, api_base: "http://gpu.lan:11434"}
  - model_name: embed
    litellm_params: {model: text-embedding-3-small, api_key: os.environ/OPENAI_API_KEY}
    model_info: {mode: embedding}
litellm_settings:
  drop_params: true
  request_timeout: 120
  fallbacks: [{gpt-4o: [sonnet]}, {sonnet: [gpt-4o, llama]}]
  context_window_fallbacks: [{llama: [sonnet]}]
  default_fallbacks: [llama]
  max_budget: 250
  budget_duration: 1d
  cache: true
  cache_params: {type: redis, host: os.environ/REDIS_HOST, ttl: 900}
  max_internal_user_budget: 9
  internal_user_budget_duration: 30d
  success_callback: [langfuse]
router_settings:
  routing_strategy: latency-based-routing
  num_retries: 2
  redis_host: os.environ/REDIS_HOST
  model_group_alias: {gpt-4: gpt-4o, old: {model: sonnet, hidden: true}}
general_settings:
  master_key: os.environ/LITELLM_MASTER_KEY
  database_url: os.environ/DATABASE_URL
  alerting: [slack]
environment_variables:
  REDIS_HOST: redis.lan
guardrails:
  - guardrail_name: pii
"""


# What public configurations have beside that of a team.
HOME = """
model_list:
  - model_name: chat
    litellm_params:
      model: nvidia_nim/deepseek-ai/deepseek-v4
      api_key: os.environ/NVIDIA_NIM_API_KEY
      order: 1
      timeout: 30
      max_tokens: 4096
      extra_body: {chat_template_kwargs: {enable_thinking: false}}
    model_info: {max_input_tokens: 128000, max_tokens: 8192, access_groups: [free, beta]}
  - model_name: chat
    litellm_params:
      {model: ollama/llama3, api_base: os.environ/OLLAMA_API_BASE, order: "2", api_key: ollama}
    tpm: 9
    model_info:
      {max_input_tokens: 8000, max_output_tokens: 10, max_tokens: 11, access_groups: [free],
      supports_function_calling: true}
  - model_name: chat
    litellm_params: {model: cohere_chat/command-r, order: 3}
  - model_name: chat
    litellm_params: {model: cohere_chat/command-r, order: 3}
  - model_name: azure-claude
    litellm_params:
      model: azure_ai/claude-sonnet-4-5
      api_base: https://one.services.ai.azure.com/anthropic/
      api_version: "2024-05-01"
      litellm_credential_name: azure
      extra_headers: {anthropic-beta: context-1m, x-tenant: os.environ/TENANT}
  - model_name: router
    litellm_params:
      model: azure/model-router
      api_base: https://two.cognitiveservices.azure.com/openai/deployments/x/chat/completions?a=b
      azure_ad_token: os.environ/AD_TOKEN
    model_info: {base_model: azure/gpt-4o, supports_vision: yes, supports_pdf_input: true}
  - model_name: sonnet
    litellm_params: {model: bedrock/anthropic.claude, aws_region_name: eu-west-1, rpm: 5}
  - model_name: gemini
    litellm_params: {model: vertex_ai/gemini-3, vertex_project: p, vertex_credentials: "{}"}
  - model_name: tuned
    litellm_params: {model: openai/tuned, api_base: "http://vllm:8000/v1", weight: 2, rpm: many}
    model_info: {input_cost_per_token: free, output_cost_per_token: 0, mode: chat, id: "7"}
  - model_name: os.environ/NAME
    litellm_params: {model: os.environ/MODEL, api_base: os.environ/SERVER, api_key: 123}
  - model_name: "*"
    litellm_params: {model: "*"}
  - model_name: "groq/*"
    litellm_params: {model: "groq/*", api_key: os.environ/GROQ_API_KEY, tpm: 100}
  - model_name: draft
    litellm_params: {model: openai/x, api_base: <your-api-base>}
credential_list:
  - credential_name: azure
    credential_values: {api_key: os.environ/AZURE_AI_API_KEY}
    credential_info: {description: of the team}
litellm_settings:
  num_retries: 3
  request_timeout: 600
  drop_params: false
  fallbacks: [{chat: [azure-claude, groq/llama]}, {nothing: [chat]}, {router: [gone, {model: x}]}]
  content_policy_fallbacks: [{chat: [router]}]
  cache: true
  cache_params: {type: redis-semantic, similarity_threshold: 0.8, ttl: soon}
  callbacks: [langfuse_otel, custom.handler]
  default_team_settings:
    - {team_id: lab, max_budget: 5, budget_duration: 1mo, rpm_limit: 10, success_callback: [a]}
  internal_user_budget_duration: 1d
  guardrails: [{pii: {callbacks: [presidio], default_on: true}}]
router_settings:
  routing_strategy: usage-based-routing-v2
  timeout: 90
  redis_url: os.environ/REDIS_URL
  retry_policy: {TimeoutErrorRetries: 3}
  model_group_alias: {fast: chat, lost: nowhere, chat: router, old: {model: chat, hidden: true}}
general_settings:
  store_model_in_db: true
  pass_through_endpoints: [{path: /v1/rerank, target: "https://api.cohere.com/v1/rerank"}]
environment_variables: {NAME: local, MODEL: ollama/qwen3, SERVER: "http://127.0.0.1:8080"}
mcp_servers: {docs: {url: "https://mcp.example"}}
"""
