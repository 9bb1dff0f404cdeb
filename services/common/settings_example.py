"""The settings file that `gateway config example` prints: every key with its default.

A test checks that it matches the types of `services.common.settings`.
"""

EXAMPLE = """\
# Settings of the gateway. Every key is optional; what stands here is the default
# unless it is marked as an example. Environment over this file: GATEWAY_HOST,
# GATEWAY_PORT, GATEWAY_METRICS_PORT, GATEWAY_GRPC, GATEWAY_DATA_DIR,
# GATEWAY_DATABASE_URL, GATEWAY_DATABASE_URL_FILE, GATEWAY_BLOB_URL; GATEWAY_CONFIG names the
# file. SIGHUP makes a running gateway read it again (providers and their keys, models, roles).

[server]
host = "127.0.0.1"
port = 8080
tls_certificate = ""          # PEM files; with both, callers use https://. SIGHUP reads them again
tls_key = ""
tls_client_ca = ""            # PEM file; then only callers that show a certificate of it connect
metrics_host = "127.0.0.1"    # where /metrics and /readyz?verbose are served: an address of
metrics_port = 9464           # this machine, and a port of its own; 0: any free one
grpc = ""                     # where gRPC callers go, as "127.0.0.1:50051"; empty: sockets in
                              # data_dir/run, one a worker, for the gateway's own user
access_log_per_s = 50         # requests of a second with a line in the log; server errors always
cors_origins = []             # pages that may call the gateway from a browser, as
                              # "https://app.example", or "*" for all; never with cookies
plain_requests = true         # false: serve every request with aiohttp, also a POST of chats
                              # and messages that needs nothing of it, which is slower

[storage]
data_dir = "var"
database_url = ""             # postgresql://… to scale out; empty: SQLite in data_dir
database_connections = 15     # of each worker to PostgreSQL at most, at least 5, which stay open
database_url_file = ""        # or a file that holds it, such as a secret of Docker or Kubernetes
blob_url = ""                 # s3://bucket/prefix; empty: files in data_dir
min_free_bytes = 268435456    # free space on the disk of data_dir below which uploads, edits and
                              # memory writes are refused; 0: never

[discovery]
enabled = true                # providers whose key is in the environment (`gateway providers`
                              # lists them) and local servers that answer (Ollama, llama-server,
                              # vLLM) join by themselves

[providers.openai]            # an example; names of `gateway providers` need no address
kind = "openai"               # openai (any compatible server) | anthropic | gemini | sandbox
base_url = "https://api.openai.com/v1"
api_key_env = "OPENAI_API_KEY"    # or api_key = "…", or api_key_file = "/run/secrets/openai":
                              # a file that holds it, read again at SIGHUP; OPENAI_API_KEY_FILE in
                              # the environment names one too
headers = {}                  # sent along with every request, e.g. for a proxy
pass_stateful = false         # let callers name things kept at the provider
# fetches_urls = true         # images go to the provider by their address, which it fetches;
                              # default: not to servers on the operator's own network
# responses = true            # the server has OpenAI's /responses, which requests of responses go
                              # to; default: OpenAI's own and Azure's at …/openai/v1. Others are
                              # sent chat completions, and so is one that answers 404
# price = {input = 0, output = 0}   # of all its models that have none of their own: a server of
                              # one's own costs nothing by the token

[[models]]                    # an example
name = "fast"                 # what callers write; "claude-*": every name that begins so. A full
                              # name counts before a wildcard, a longer wildcard before a shorter
provider = "openai"
upstream = "gpt-4o-mini"      # default: the name that was asked for
# In place of provider and upstream, places that serve the same model (docs/load-balancing.md):
# deployments = [
#   {provider = "azure-east", upstream = "mini-1", weight = 3},
#   {provider = "azure-west", upstream = "mini-2", weight = 1},
#   {provider = "openai", weight = 0},   # 0: while no other can be asked
# ]
balance = "weighted"          # weighted | least_busy (fewest calls of this process under way) |
                              # fastest (shortest time to the first content)
sticky = true                 # conversations stay where they began, for the provider's cache
inputs = ["text", "image"]    # of text image pdf audio video; default: as known, else all
context_window = 128000
max_output_tokens = 16384
# What the built-in catalogue says of the model, or nothing, may be said otherwise:
# thinking = true             # it can think; of the kind openai: it does so unasked
# adaptive = false            # Anthropic's: it is asked to think by an effort, and not by a budget
# efforts = ["low", "high"]   # the efforts that it knows, weakest first
# thinking_off = {reasoning_effort = "none"}   # what a body says so that it does not think
# refuses = ["temperature"]   # fields that it is never sent; of max_tokens and
                              # max_completion_tokens the other one is sent; "prefill": an
                              # assistant's message at the end; "reasoning_content": its thoughts
fallbacks = []                # what `auto` may try, in order; for embeddings those of them alone
                              # that have the same vector_space
# vector_space = "te3-small"  # of an embedding model: models of one name make the same vectors of
                              # a text, such as one model at two providers, and may stand in for
                              # each other; default: no other model does
# price = {input = 0.15, output = "0.6", cached_input = 0.075}   # dollars for a million tokens;
                              # also cache_write, cache_write_1h, reasoning, input_audio,
                              # input_image, input_video, cached_audio, cached_image, output_audio,
                              # output_image, output_video; web_search and request for a thousand,
                              # audio_hour; default: the published price, if it is known

[roles]                       # which model does a side job; empty: the embedded way, or none
describe_image = ""           # "embedded": size, colours and OCR, without a model; empty: the first
                              # of [[models]] that is known to read images
transcribe_audio = ""         # of a provider of kind openai; empty or "embedded": without a model
summarise = ""
extract = ""                  # facts about users, in any language; empty: the model of summarise,
                              # or without one rules, which know English alone
embed = ""                    # vectors of older turns; "embedded/multilingual-e5-small" needs no
                              # provider: pip install 'llm-gateway[embeddings]'

[limits]
max_head_bytes = 65536        # bytes of a request line and its header fields
max_header_fields = 128       # header fields of a request
head_timeout_s = 10           # until a request's head is complete, and a first one after connecting
idle_connection_s = 75        # how long a connection may wait for its next request
stalled_reader_s = 60         # after which a caller that reads nothing of its answer is cut off
max_stalled_readers = 50      # callers of one process that read nothing, before the longest is cut
max_connections = 0           # of one process; 0: 2/5 of its file descriptors, at most 10000
reserved_connections = 0.5    # share of them for connections that came with a good key
max_body_bytes = 67108864           # bytes of a chat, messages or embeddings body
max_body_values = 1000000     # JSON values in a body, at any depth
max_parallel_parses = 1       # bodies that take long to read are read by so many processes
max_background_responses = 4  # responses that one user generates in the background of a process
max_queued_responses = 16     # and how many more may wait for that
max_buffered_bytes = 536870912    # bytes of bodies that a process reads at once
max_buffered_bytes_per_user = 134217728   # of them those of one user
body_idle_s = 60              # how long a client may send nothing of a body or file
min_body_bytes_per_s = 8192   # bytes a second that a body or file comes with, beyond body_idle_s
max_message_bytes = 83886080  # bytes of a message between processes
max_answer_bytes = 83886080   # bytes of a provider's answer, as it comes and unpacked
max_answer_parts = 10000      # blocks and tool calls of an answer, and pieces that wait for others
max_answer_values = 1000000   # JSON values in an answer, or in one event of it
max_recovered_characters = 4194304  # of an answer that broke off with which another goes on
max_sse_line_bytes = 33554432  # bytes of one event of a provider's stream
upstream_idle_s = 30          # after which an unused connection to a provider is closed
max_idle_upstream_connections = 256   # of a process; more are closed as soon as they are unused
connect_timeout_s = 10
step_timeout_s = 600          # one model: until its first content, or a whole answer
stream_idle_s = 300           # silence in a stream after its first content
hedge_after_s = 10            # silence after which `auto` asks the next model too; 0: never
breaker_failures = 5          # failures in a row after which a model is left alone for a while
keepalive_s = 10              # between keep-alives to a waiting caller, at most 15
hold_headers_s = 15           # how long a failure still becomes an HTTP status, at most 15
drain_s = 30                  # what running streams get when the gateway stops
lease_every_s = 1             # how often a worker claims what keys, users and teams will need
slot_lease_s = 4              # after which requests of a worker that died are no longer under
                              # way; at least three times lease_every_s is taken
identify_cache_s = 30         # how long a key is believed without looking, at most 30, where
                              # nothing of it is changed
max_file_bytes = 52428800           # bytes of a file
default_file_lifetime_s = 2592000   # of a file that does not say, at most 31536000
sweep_every_s = 60            # how often expired files are cleared away
orphan_grace_s = 3600         # how old bytes without a file must be to be cleared away
max_fetched_bytes = 20971520  # that an address may hold which a caller or a model names
max_parallel_fetches = 16     # of such addresses, of a process; others wait
fetch_timeout_s = 10          # for all of one fetch, redirects included
max_parallel_conversions = 2  # processes that convert documents, images and recordings at once
max_waiting_conversions = 100 # conversions that may wait for one of them
conversion_timeout_s = 300    # how long one conversion may take
conversion_memory_bytes = 2147483648  # bytes of address space that such a process may have

[limits.storage]              # bytes that an owner's files may have together, by plan
personal_free = 1073741824
personal_pro = 5368709120
team_pro = 53687091200
enterprise = 53687091200

[grpc]                        # gRPC callers over TCP (server.grpc, `gateway serve services`)
certificate = ""              # PEM files; with the two that follow: TLS, for callers that show
private_key = ""              # a certificate of client_ca; a facade apart shows this one to
client_ca = ""                # services apart
max_connections = 1000        # at a time; one more is closed at once
max_calls_per_connection = 1000   # at a time; one more waits at its caller
max_metadata_bytes = 16384    # of one call
handshake_timeout_s = 10      # how long a connection may take to begin with HTTP/2
idle_connection_s = 300       # how long a connection stays without a call
connection_age_s = 3600       # after which a connection takes no more calls; its last ones end
read_timeout_s = 60           # how long the message of a call may take to come
max_reads_per_user = 2        # messages of one user that are received at a time; others wait
max_held_bytes_per_user = 167772160   # of the messages of one user's calls together

[admin]                       # who may use /admin/v1; while there is no admin key (here, or one of
                              # `gateway admin-key create`) there are no such paths
key_env = ""                  # a variable that holds an admin key, as `gateway admin-key make`
                              # prints one; or
key_file = ""                 # a file that does, read again at SIGHUP; or
key_sha256 = ""               # the SHA-256 of one, in hex
audit_retention_s = 31536000  # how long the audit log has its entries

[articles]                    # document editing
require_grant = false         # only for users with `gateway grants add`
session_ttl_s = 600           # how long a session lasts without a call
session_remembered_s = 86400  # how long a caller is told that a session expired
deleted_retention_s = 2592000 # how long a deleted document can be brought back, if the quota
                              # has room for it
max_sessions = 1000           # sessions that a user may have open at once
cache_bytes = 134217728       # of memory, about, that open documents are held in

[articles.quota]              # bytes that a user's documents may have together, by plan: every
                              # operation with what undoes it, and some hundred bytes for each
personal_free = 268435456
personal_pro = 1073741824
team_pro = 10737418240
enterprise = 10737418240

[articles.documents]          # documents that a user may have, by plan
personal_free = 1000
personal_pro = 5000
team_pro = 10000
enterprise = 10000

[memory]                      # conversations that the server remembers
lock_wait_s = 10              # how long a request waits for the one before it, or for a place
lock_lease_s = 3              # after which a memory is free whose holder is gone, at most 30
sync_wait_s = 30              # how long a request waits for a model's summary of older turns
leave_drain_s = 120           # how long an answer is read to its end for a client that left
max_readers = 5               # requests that may read one memory at once
inject_tokens = 4000          # of profile, summary and found turns in a request; a quarter of what
                              # its model reads where that is less
retrieve_top_k = 16           # older turns that are found for a request
retrieve_tokens = 2000        # of them together
embed_wait_s = 2              # how long a request waits for the vector of its question
job_poll_s = 2                # how often summaries and facts that wait are looked for
response_ttl_s = 2592000      # how long a stored response of /beta/v1/responses is kept; one that
                              # others continue, as long as the last of them
response_lease_s = 15         # after which a background response fails whose worker is gone
max_response_bytes = 67108864 # of one stored response with its input
max_conversation = 1000       # responses of one conversation, by previous_response_id
max_conversation_items = 10000 # items of one conversation of /beta/v1/conversations, which is kept
                              # for response_ttl_s from its last change on

[memory.quota]                # memories that one user may have, by plan
personal_free = 10
personal_pro = 50
team_pro = 100
enterprise = 100

[memory.storage]              # bytes that a user's memories and stored responses may have together,
                              # by plan: what was said, twice, as the index of it takes about as
                              # much again, and responses once
personal_free = 268435456
personal_pro = 1073741824
team_pro = 10737418240
enterprise = 10737418240

[tools.web_search]            # what models search the web with; without a backend they cannot
backend = ""                  # searxng | brave | tavily
url = ""                      # of the SearXNG server, which needs `json` in its search.formats;
                              # of the others where they are not asked themselves
api_key_env = ""              # or api_key = "…"; empty: BRAVE_API_KEY or TAVILY_API_KEY; for
api_key_file = ""             # or a file that holds it
api_key = ""                  # SearXNG a bearer token, where a proxy before it wants one
max_results = 8               # of a search, at most 20
timeout_s = 10

[adaptation]                  # what was made of media for models that do not read them, kept so
                              # that the next turn of a conversation need not make it again
kept_s = 604800               # how long
kept_bytes = 4294967296       # of all users together; the oldest go first
kept_bytes_per_user = 536870912   # of one user

[telemetry]                   # traces and measurements for an OpenTelemetry collector
otlp_endpoint = ""            # of its receiver for HTTP, as "http://127.0.0.1:4318"; empty:
                              # OTEL_EXPORTER_OTLP_ENDPOINT, and without that nothing is sent
service_name = "llm-gateway"
sample_ratio = 1.0            # of the traces that begin here; others are kept as they came
metrics_every_s = 60          # how often measurements are sent

[response_cache]              # answers to equal requests (docs/response-cache.md)
enabled = false
ttl_s = 3600                  # how long an answer is kept, at most 2592000
max_bytes = 1073741824        # of all answers together; the oldest go first
max_answer_bytes = 1048576    # of one answer; larger ones are not kept
scope = "user"                # whose equal requests share an answer: user | team

[usage]                       # records of what requests used and cost, for `gateway usage`
enabled = true
write_every_s = 2             # how often the database gets them; until then they are in a journal
                              # in data_dir/usage
max_journal_bytes = 67108864  # of the journal of one process, some 300 bytes a request, while the
                              # database does not answer; what goes beyond is not recorded
keep_records_s = 2592000      # how long the record of a request is kept
keep_days_s = 63158400        # how long the sums of a day are

[envoy]                       # the Envoy in front: `gateway envoy config` and `gateway envoy run`
host = "127.0.0.1"            # where it listens for callers, HTTP and gRPC on one port
port = 10000
admin_port = 9901             # its admin interface, on 127.0.0.1 alone
metrics_host = "127.0.0.1"    # where it serves its own /stats/prometheus and /ready
metrics_port = 0              # 0: nowhere
certificate = ""              # PEM files; with both, callers use TLS
private_key = ""
client_ca = ""                # PEM file; then callers must show a certificate of it
facades = []                  # addresses of the gateway's machines, ["10.0.0.1:8080"]; names are
                              # looked up again and again. Empty: server.host and server.port
grpc = []                     # and those for gRPC callers; empty: server.grpc, if there is one
upstream_ca = ""              # PEM files: who has issued the certificates of the machines
upstream_certificate = ""     # (server.tls_certificate, grpc.certificate), and what Envoy shows to
upstream_private_key = ""     # them (server.tls_client_ca, grpc.client_ca)
trusted_proxies = 0           # proxies in front of Envoy whose x-forwarded-for is believed
admin_api = false             # let callers reach /admin/v1 and its gRPC services
max_connections = 20000       # of callers, at a time
"""
