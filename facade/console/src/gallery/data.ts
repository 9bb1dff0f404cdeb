// What the gallery shows: the same at any time.
import type { Line } from "../parts/chart";
import type { NamedLimit } from "../parts/limit_bars";
import type { Comparison } from "../pages/chat/comparison";
import type { AssistantTurn, Turn } from "../pages/chat/conversation";
import type { LoggedRequest, RequestDetails } from "../pages/requests/log";

const NOON_S = Date.UTC(2026, 10, 20, 12) / 1000;

export const TIMES: readonly number[] = Array.from({ length: 24 }, (_, index) => NOON_S + 3600 * index);
export const LINES: readonly Line[] = [
  { name: "fast", values: TIMES.map((_, index) => 20 + 10 * Math.sin(index / 3)) },
  { name: "careful", values: TIMES.map((_, index) => (index % 7 === 0 ? null : 12 + (index % 5))) },
];
export const USERS: ReadonlyMap<string, string> = new Map([["user_1", "ada"]]);

const LIMIT: NamedLimit = {
  subject: "team research",
  subject_kind: "team",
  name: "spend_per_month",
  limit: "250",
  used: "90.5",
  reserved: "0",
  remaining: "159.5",
  starts_at: "2026-11-01T00:00:00Z",
  resets_at: "2026-12-01T00:00:00Z",
  forecast: "200",
  exhausted_at: null,
  soft_limit_percent: 80,
  soft_limit_reached: false,
};
const COUNT = { starts_at: null, resets_at: null, forecast: null, soft_limit_percent: null, soft_limit_reached: null };
export const LIMITS: NamedLimit[] = [
  LIMIT,
  { ...LIMIT, subject: "user ada", subject_kind: "user", used: "240", remaining: "10", forecast: "360", exhausted_at: "2026-11-22T10:00:00Z", soft_limit_reached: true },
  { ...LIMIT, ...COUNT, subject: "key ci", subject_kind: "key", name: "requests_per_minute", limit: 60, used: 60, reserved: 0, remaining: 0 },
];

const LOGGED: LoggedRequest = {
  id: "log_1",
  request_id: "req_1",
  ended_at: NOON_S,
  user_id: "user_1",
  key_id: "key_1",
  tags: { project: "alpha" },
  end_user: null,
  endpoint: "POST /beta/v1/chat/completions",
  status: 200,
  error_code: null,
  requested_model: "fast",
  model: "fast",
  provider: "openai",
  attempts: 1,
  duration_ms: 1240,
  first_content_ms: 412,
  input_tokens: 1200,
  output_tokens: 340,
  cost: "0.00125",
  has_bodies: true,
};
export const REQUESTS: readonly LoggedRequest[] = [
  LOGGED,
  { ...LOGGED, id: "log_2", status: 503, error_code: "upstream_unavailable", model: null, provider: null, attempts: 3, first_content_ms: null, cost: null, duration_ms: 30_400, input_tokens: 0, output_tokens: 0 },
  { ...LOGGED, id: "log_3", status: 429, error_code: "rate_limited", user_id: "user_2", model: null, provider: null, attempts: 0, duration_ms: 3, cost: null, input_tokens: 0, output_tokens: 0 },
  { ...LOGGED, id: "log_4", requested_model: null, endpoint: "GET /beta/v1/models", model: null, provider: null, attempts: 0, duration_ms: 8, cost: null, input_tokens: 0, output_tokens: 0 },
];
export const REQUEST: RequestDetails = {
  ...LOGGED,
  attempts: 2,
  duration_ms: 2400,
  first_content_ms: 1300,
  failed_attempts: [{ step: "primary", model: "anthropic/careful", status: 529, reason: "upstream_overloaded", ms: 800 }],
  headers: {},
  request_body: null,
  response_body: null,
};

export const TEXT = `A **tide** of $$T = 12.4\\,\\mathrm{h}$$, see [Brest](https://example.com/).

| field | tons |
|---|---:|
| north | 14 |

The moon costs $5 and $6, its pull is $g_m \\approx 10^{-7} g$.

- [x] high
- [ ] low

\`\`\`python
def tides(day: int) -> list[str]:
    """Return the tides of a day."""
    return ["high", "low"] * 2  # about
\`\`\`
`;

const ANSWER: AssistantTurn = {
  role: "assistant",
  blocks: [
    { type: "thinking", text: "Two of each." },
    { type: "call", id: "c", name: "tides", arguments: '{"day":1}', result: "high, low" },
    { type: "text", text: "High, low, **high**, low." },
  ],
  facts: {
    model: "fast",
    provider: "openai",
    attempts: 1,
    firstMs: 412,
    totalMs: 1240,
    inputTokens: 12,
    outputTokens: 40,
    cost: 0.00125,
  },
  state: "done",
};
export const TURNS: readonly Turn[] = [
  { role: "user", text: "Name the tides of a day.", attachments: [] },
  ANSWER,
];
export const COMPARISON: Comparison = {
  asker: "1",
  at: 1,
  columns: [
    { model: "fast", branch: "1", turn: { ...ANSWER, blocks: ANSWER.blocks.slice(2) } },
    {
      model: "careful",
      branch: "",
      turn: {
        ...ANSWER,
        blocks: [],
        facts: {},
        state: "failed",
        fault: {
          message: "the provider anthropic failed (status 529)",
          status: 529,
          code: "upstream_overloaded",
          param: "",
          requestId: "req_1",
          attempts: [],
        },
      },
    },
  ],
};
