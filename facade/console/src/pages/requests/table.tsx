// The rows of the log.
import { Status, type Tone } from "../../parts/status";
import { count, duration, moment, money } from "../../parts/formats";
import { requestsWords } from "../../words/requests";
import type { Scope } from "../../admin/scope";
import type { LoggedRequest } from "./log";

const { columns } = requestsWords;

/** Return the address of the page of a request. */
export function addressOf(id: string, scope: Scope): string {
  const query = scope === "everyone" ? "?scope=everyone" : "";
  return `/console/requests/${encodeURIComponent(id)}${query}`;
}

export function toneOf(status: number, errorCode: string | null): Tone {
  if (status >= 500) return "bad";
  if (status >= 400 || errorCode !== null) return "warning";
  return "good";
}

export function RequestTable({
  requests,
  users,
  scope,
}: {
  requests: readonly LoggedRequest[];
  users: ReadonlyMap<string, string>;
  scope: Scope;
}) {
  const hasUsers = scope === "everyone";
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={requestsWords.title}>
      <table class="stacked">
        <thead>
          <tr>
            <th>{columns.time}</th>
            <th>{columns.status}</th>
            <th>{columns.model}</th>
            {hasUsers && <th>{columns.user}</th>}
            <th class="number">{columns.duration}</th>
            <th class="number">{columns.tokens}</th>
            <th class="number">{columns.cost}</th>
          </tr>
        </thead>
        <tbody>
          {requests.map((request) => (
            <tr key={request.id}>
              <td>
                <a href={addressOf(request.id, scope)} title={request.request_id}>
                  {moment(request.ended_at)}
                </a>
              </td>
              <td>
                <Status tone={toneOf(request.status, request.error_code)}>{request.status}</Status>
              </td>
              <td class="what">
                {request.requested_model ?? <code>{request.endpoint}</code>}
                <span class="hint">{notes(request)}</span>
              </td>
              {hasUsers && <td>{users.get(request.user_id) ?? <code>{request.user_id}</code>}</td>}
              <td class="number">{duration(request.duration_ms)}</td>
              <td class="number">
                {request.input_tokens + request.output_tokens > 0 &&
                  `${count(request.input_tokens)} + ${count(request.output_tokens)}`}
              </td>
              <td class="number">{request.cost !== null && money(Number(request.cost))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function notes(request: LoggedRequest): string {
  return [
    request.error_code,
    request.model !== null && request.model !== request.requested_model && request.model,
    request.provider,
    request.attempts > 1 && requestsWords.attempts(request.attempts),
  ]
    .filter(Boolean)
    .join(" · ");
}
