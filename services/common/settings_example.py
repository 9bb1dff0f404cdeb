"""The settings file that `gateway config example` prints: every key with its default.

A test checks that it matches the types of `services.common.settings`.
"""

EXAMPLE = """\
# Settings of the gateway. Every key is optional; the values below are the defaults unless marked
# as an example. Environment variables override this file: GATEWAY_HOST, GATEWAY_PORT,
# GATEWAY_METRICS_PORT, GATEWAY_GRPC, GATEWAY_DATA_DIR, GATEWAY_DATABASE_URL,
# GATEWAY_DATABASE_URL_FILE, GATEWAY_BLOB_URL; GATEWAY_CONFIG sets the path of the file. On SIGHUP,
# a running gateway reloads providers and their keys, models and roles.

[server]
host = "127.0.0.1"
port = 8080
tls_certificate = ""          # PEM files; with both, callers use https://; reloaded on SIGHUP
tls_key = ""
tls_client_ca = ""            # PEM file; if set, callers must present a certificate of this CA
metrics_host = "127.0.0.1"    # address of this machine for /metrics and /readyz?verbose
metrics_port = 9464           # port of that address; 0: any free port
grpc = ""                     # address for gRPC callers, such as "127.0.0.1:50051"; empty: Unix
                              # sockets in data_dir/run, one per worker, for the gateway's user only
access_log_per_s = 50         # requests logged per second; server errors are always logged
cors_origins = []             # origins whose pages may call the gateway from a browser, such as
                              # "https://app.example", or "*" for all; never with cookies
plain_requests = true         # false: serve every request with aiohttp, which is slower, including
                              # simple POST requests of chats and messages
worker_stall_s = 20           # a worker whose event loop has not run for so long is killed and
                              # replaced, after its stacks were logged; at least 5; 0: never

[storage]
data_dir = "var"
database_url = ""             # postgresql://… for several machines; empty: SQLite in data_dir
database_connections = 15     # maximum per worker for PostgreSQL, at least 5; 5 stay open
database_url_file = ""        # file with the URL, such as a secret of Docker or Kubernetes
blob_url = ""                 # s3://bucket/prefix; empty: files in data_dir
min_free_bytes = 268435456    # uploads, edits and memory writes are rejected if the disk of
                              # data_dir has less free space; 0: never

[discovery]
enabled = true                # add providers whose key is in the environment (listed by `gateway
                              # providers`) and local servers that respond (Ollama, llama-server,
                              # vLLM)

[sandbox]                     # models for development, such as sandbox/echo, that need no provider
# enabled = true              # true: present; false: absent; default: present while no other
                              # provider is in this file or joins by a key in the environment.
                              # Local servers that are discovered do not count

[providers.openai]            # example; providers listed by `gateway providers` need no base_url
kind = "openai"               # openai (any compatible server) | anthropic | gemini | sandbox
base_url = "https://api.openai.com/v1"
api_key_env = "OPENAI_API_KEY"    # or api_key = "…", or api_key_file = "/run/secrets/openai":
                              # a file with the key, reloaded on SIGHUP; the variable
                              # OPENAI_API_KEY_FILE also sets its path
headers = {}                  # sent with every request, e.g. for a proxy
pass_stateful = false         # let callers refer to what is stored at the provider (files, …), in
                              # the one account that they share there
# fetches_urls = true         # send image URLs to the provider, which fetches them; default: false
                              # for servers on the operator's own network, else true
# responses = true            # the server supports OpenAI's /responses; default: true for OpenAI
                              # and for Azure at …/openai/v1. Other servers, and those that answer
                              # 404, get chat completions
# price = {input = 0, output = 0}   # for its models without a price of their own; a
                              # self-hosted server costs nothing per token

[[models]]                    # example
name = "fast"                 # name that callers use; "claude-*" matches every name with that
                              # prefix. Full names take precedence, then longer wildcards
provider = "openai"
upstream = "gpt-4o-mini"      # the provider's name for the model; default: the requested name
# Instead of provider and upstream, several deployments of the model (docs/load-balancing.md):
# deployments = [
#   {provider = "azure-east", upstream = "mini-1", weight = 3},
#   {provider = "azure-west", upstream = "mini-2", weight = 1},
#   {provider = "openai", weight = 0},   # 0: used only if no other deployment is available
# ]
balance = "weighted"          # weighted | least_busy (fewest running calls of this process) |
                              # fastest (shortest time to the first content)
sticky = true                 # keep a conversation at one deployment, for the provider's cache
inputs = ["text", "image"]    # of text image pdf audio video; default: from the catalogue, or all
context_window = 128000
max_output_tokens = 16384
# The following override the built-in catalogue:
# thinking = true             # the model can think; for kind openai: it thinks by default
# adaptive = false            # Anthropic only; true: thinking is set by an effort, not by a budget
# efforts = ["low", "high"]   # supported efforts, weakest first
# thinking_off = {reasoning_effort = "none"}   # fields that disable thinking
# refuses = ["temperature"]   # fields that are never sent; for max_tokens or max_completion_tokens,
                              # the other one is sent. "prefill": a final assistant message;
                              # "reasoning_content": thinking of earlier turns
fallbacks = []                # models that `auto` may try, in order; for embeddings, only those
                              # with the same vector_space
# vector_space = "te3-small"  # for embedding models: models with the same name here return the same
                              # vectors for a text, such as one model at two providers, and can
                              # replace each other; default: no replacement
# price = {input = 0.15, output = "0.6", cached_input = 0.075}   # dollars per million tokens;
                              # also cache_write, cache_write_1h, reasoning, input_audio,
                              # input_image, input_video, cached_audio, cached_image, output_audio,
                              # output_image, output_video; web_search and request per thousand,
                              # audio_hour per hour; default: the published price, if known

[roles]                       # models for auxiliary tasks; empty: built-in method, or none
describe_image = ""           # "embedded": size, colours and OCR, without a model; empty: the first
                              # of [[models]] that is known to read images
transcribe_audio = ""         # of a provider of kind openai; empty or "embedded": without a model
summarise = ""
extract = ""                  # facts about users, in any language; empty: the model of summarise,
                              # or without one rules, for English only
embed = ""                    # vectors of older turns; "embedded/multilingual-e5-small" needs no
                              # provider: pip install 'llm-gateway[embeddings]'

[limits]
max_head_bytes = 65536        # bytes of a request line and its header fields
max_header_fields = 128       # header fields of a request
head_timeout_s = 10           # time to receive a request's head; for the first, from connecting
idle_connection_s = 75        # time that a connection may wait for its next request
stalled_reader_s = 60         # callers that read nothing of their answer for so long are
                              # disconnected
max_stalled_readers = 50      # such callers per process; beyond it, the longest is disconnected
max_connections = 0           # per process; 0: 2/5 of its file descriptors, at most 10000
reserved_connections = 0.5    # share of them reserved for connections with a valid key
max_body_bytes = 67108864     # bytes of the body of chats, messages, responses or embeddings
max_body_values = 1000000     # JSON values in a body, at any depth
max_parallel_parses = 1       # processes that parse large bodies in parallel
max_background_responses = 4  # running background responses per user and process
max_queued_responses = 16     # waiting background responses per user and process
max_buffered_bytes = 536870912    # bytes that a process holds of bodies and of what requests name
max_buffered_bytes_per_user = 134217728   # the same per user
max_buffer_wait_s = 10        # time that a request waits for room for what it names
max_parallel_requests_per_user = 256   # requests of a user in progress in a process
body_idle_s = 60              # time without data of a body or file
min_body_bytes_per_s = 8192   # minimum average rate of a body or file, after body_idle_s of waiting
max_message_bytes = 83886080  # bytes of a message between processes
max_answer_bytes = 83886080   # bytes of a provider's answer, compressed and decompressed
max_answer_parts = 10000      # blocks and tool calls of an answer, and pieces waiting for others
max_answer_values = 1000000   # JSON values in an answer, or in one event of it
max_recovered_characters = 4194304  # of an interrupted answer that another model continues
max_sse_line_bytes = 33554432  # bytes of one event of a provider's stream
upstream_idle_s = 30          # unused connections to providers are closed after this time
max_idle_upstream_connections = 256   # per process; further unused connections are closed at once
connect_timeout_s = 10
step_timeout_s = 600          # per model: time to its first content, or to a whole answer
stream_idle_s = 300           # silence in a stream after its first content
hedge_after_s = 10            # silence after which `auto` also calls the next model; 0: never
breaker_failures = 5          # consecutive failures after which a model is skipped for a while
keepalive_s = 10              # interval of keep-alives to a waiting caller, at most 15
hold_headers_s = 15           # time in which a failure still becomes an HTTP status, at most 15
drain_s = 30                  # time for running streams when the gateway stops
lease_every_s = 1             # interval at which workers lease allowances of keys, users and teams
slot_lease_s = 4              # time after which the requests of a dead worker no longer count as
                              # running; at least three times lease_every_s is used
identify_cache_s = 30         # time that a key is cached, at most 30; changes end it earlier
max_file_bytes = 52428800     # bytes of a file
default_file_lifetime_s = 2592000   # of a file without an expiry, at most 31536000
sweep_every_s = 60            # interval at which expired files are deleted
orphan_grace_s = 3600         # age at which bytes without a file are deleted
max_fetched_bytes = 20971520  # bytes of a URL that a caller or a model provides
max_parallel_fetches = 16     # such fetches per process; others wait
fetch_timeout_s = 10          # time for one fetch, including redirects
max_parallel_conversions = 2  # processes that convert documents, images and recordings
max_waiting_conversions = 100 # conversions that may wait for such a process
conversion_timeout_s = 300    # time for one conversion
conversion_seconds_per_user = 1800  # time for the conversions of a user in an hour
conversion_memory_bytes = 2147483648  # address space of such a process

[limits.storage]              # maximum bytes of an owner's files, by plan
personal_free = 1073741824
personal_pro = 5368709120
team_pro = 53687091200
enterprise = 53687091200

[grpc]                        # gRPC callers over TCP (server.grpc, `gateway serve services`)
certificate = ""              # PEM files; all three enable TLS, and callers must present a
private_key = ""              # certificate of client_ca; a facade on its own host presents this
client_ca = ""                # certificate to the services
max_connections = 1000        # at a time; further ones are closed at once
max_calls_per_connection = 1000   # at a time; further ones wait at their caller
max_metadata_bytes = 16384    # per call
handshake_timeout_s = 10      # time to begin HTTP/2 on a connection
idle_connection_s = 300       # time that a connection may stay without a call
connection_age_s = 3600       # age at which a connection accepts no new calls; running ones go on
read_timeout_s = 60           # time to receive the message of a call
max_reads_per_user = 2        # messages of one user received at a time; others wait
max_held_bytes_per_user = 167772160   # bytes of the messages of one user's running calls

[admin]                       # keys for /admin/v1, which exists only if a key is set here or made
                              # by `gateway admin-key create`
key_env = ""                  # variable with an admin key, as printed by `gateway admin-key make`
key_file = ""                 # file with an admin key, reloaded on SIGHUP
key_sha256 = ""               # SHA-256 of an admin key, in hex
audit_retention_s = 31536000  # time that entries of the audit log are stored

[articles]                    # document editing
require_grant = false         # true: only for users with `gateway grants add`
session_ttl_s = 600           # time that a session lasts without a call
session_remembered_s = 86400  # time that an expired session is reported as expired
deleted_retention_s = 2592000 # time that a deleted document can be restored, if the quota has room
max_sessions = 1000           # open sessions per user
cache_bytes = 134217728       # approximate size of the cache of open documents

[articles.quota]              # maximum bytes of a user's documents, by plan: every operation with
                              # its inverse, and some hundred bytes for each
personal_free = 268435456
personal_pro = 1073741824
team_pro = 10737418240
enterprise = 10737418240

[articles.documents]          # maximum number of a user's documents, by plan
personal_free = 1000
personal_pro = 5000
team_pro = 10000
enterprise = 10000

[memory]                      # stored conversations
lock_wait_s = 10              # time that a request waits for the lock of a memory
lock_lease_s = 3              # time after which the lock of a dead process expires, at most 30
sync_wait_s = 30              # time that a request waits for a model's summary of older turns
leave_drain_s = 120           # time to read an answer to its end after its client disconnected
max_readers = 5               # requests that may read one memory at once
inject_tokens = 4000          # tokens of profile, summary and retrieved turns in a request; at most
                              # a quarter of the model's context
retrieve_top_k = 16           # older turns retrieved for a request
retrieve_tokens = 2000        # tokens of these turns together
embed_wait_s = 2              # time that a request waits for the vector of its question
job_poll_s = 2                # interval at which waiting summaries and facts are polled
response_ttl_s = 2592000      # time that a response of /beta/v1/responses is stored; a response
                              # that others continue is stored as long as the last of them
response_lease_s = 15         # time after which a background response of a dead worker fails
max_response_bytes = 67108864 # of one stored response with its input
max_conversation = 1000       # responses of one conversation, by previous_response_id
max_conversation_items = 10000 # items of a conversation of /beta/v1/conversations, which is stored
                              # for response_ttl_s after its last change

[memory.quota]                # maximum number of a user's memories, by plan
personal_free = 10
personal_pro = 50
team_pro = 100
enterprise = 100

[memory.storage]              # maximum bytes of a user's memories and stored responses, by plan;
                              # the texts of memories count twice, as their index is about as
                              # large, and responses once
personal_free = 268435456
personal_pro = 1073741824
team_pro = 10737418240
enterprise = 10737418240

[tools.web_search]            # search backend for models; empty: no web search
backend = ""                  # searxng | brave | tavily
url = ""                      # of the SearXNG server, which needs `json` in its search.formats; for
                              # brave and tavily, only to use another address than their own
api_key_env = ""              # or api_key = "…", or api_key_file, a file with the key; empty:
api_key_file = ""             # BRAVE_API_KEY or TAVILY_API_KEY; for SearXNG, a bearer token for a
api_key = ""                  # proxy in front of it
max_results = 8               # per search, at most 20
timeout_s = 10

[adaptation]                  # cache of media converted for models that cannot read them
kept_s = 604800               # time that a conversion is cached
kept_bytes = 4294967296       # bytes of all users together; the oldest are deleted first
kept_bytes_per_user = 536870912   # bytes per user

[telemetry]                   # traces and metrics for an OpenTelemetry collector
otlp_endpoint = ""            # its OTLP/HTTP address, such as "http://127.0.0.1:4318"; empty:
                              # OTEL_EXPORTER_OTLP_ENDPOINT; if both are empty, nothing is sent
service_name = "llm-gateway"
sample_ratio = 1.0            # of traces that begin here; others keep the caller's decision
metrics_every_s = 60          # interval at which metrics are sent

[response_cache]              # cache of answers to equal requests (docs/response-cache.md)
enabled = false
ttl_s = 3600                  # time that an answer is cached, at most 2592000
max_bytes = 1073741824        # bytes of all answers together; the oldest are deleted first
max_answer_bytes = 1048576    # bytes of one answer; larger ones are not cached
scope = "user"                # who shares answers: user | team

[usage]                       # records of usage and cost, for `gateway usage`
enabled = true
write_every_s = 2             # interval of writes to the database; until then, records are in a
                              # journal in data_dir/usage
max_journal_bytes = 67108864  # of the journal of one process, about 300 bytes per request; if the
                              # database is unavailable for longer, further records are lost
keep_records_s = 2592000      # time that the record of a request is stored
keep_days_s = 63158400        # time that the sums of a day are stored

[envoy]                       # the Envoy in front: `gateway envoy config` and `gateway envoy run`
host = "127.0.0.1"            # address for callers, with HTTP and gRPC on one port
port = 10000
admin_port = 9901             # port of its admin interface, on 127.0.0.1 only
metrics_host = "127.0.0.1"    # address of its own /stats/prometheus and /ready
metrics_port = 0              # 0: disabled
certificate = ""              # PEM files; with both, callers use TLS
private_key = ""
client_ca = ""                # PEM file; if set, callers must present a certificate of this CA
facades = []                  # addresses of the gateway's machines, as ["10.0.0.1:8080"]; names are
                              # resolved repeatedly. Empty: server.host and server.port
grpc = []                     # the same for gRPC callers; empty: server.grpc, if set
upstream_ca = ""              # PEM files: CA of the machines' certificates
upstream_certificate = ""     # (server.tls_certificate, grpc.certificate), and the certificate that
upstream_private_key = ""     # Envoy presents (server.tls_client_ca, grpc.client_ca)
trusted_proxies = 0           # number of trusted proxies in front of Envoy, for x-forwarded-for
admin_api = false             # true: callers can reach /admin/v1 and its gRPC services
max_connections = 20000       # connections of callers at a time
"""
