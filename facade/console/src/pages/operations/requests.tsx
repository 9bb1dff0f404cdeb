// The request log: search, list, one entry with its bodies.
import { useState } from "preact/hooks";

import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { dollars, when } from "../../parts/formats";
import { useLoaded } from "../../parts/loading";
import { MoreButton } from "../../parts/more_button";
import { usePaged } from "../../parts/paged";
import {
  type LoggedBody,
  type LoggedRequest,
  type RequestFilter,
  getLoggedRequest,
  listLoggedRequests,
} from "./request_log";

const FIELDS = [
  ["text", "Text"],
  ["model", "Model"],
  ["status", "Status (429, 5xx)"],
  ["request_id", "Request id"],
  ["user_id", "User id"],
  ["key_id", "Key id"],
  ["tag", "Tag (project=alpha)"],
  ["end_user", "End user"],
  ["min_cost", "Cost from ($)"],
] as const;

const count = new Intl.NumberFormat();

export function Requests() {
  const [filter, setFilter] = useState<RequestFilter>({});
  const requests = usePaged(
    (page, signal) => listLoggedRequests(filter, page, signal),
    [filter],
  );
  const [shown, setShown] = useState("");

  function search(event: SubmitEvent): void {
    event.preventDefault();
    const data = new FormData(event.currentTarget as HTMLFormElement);
    const fields = FIELDS.map(([name]) => [name, String(data.get(name) ?? "").trim()] as const);
    setFilter(Object.fromEntries(fields.filter(([, value]) => value !== "")));
    requests.reload();
  }

  return (
    <section aria-labelledby="requests">
      <h2 id="requests">Requests</h2>
      <form class="limits" aria-label="Search requests" onSubmit={search}>
        {FIELDS.map(([name, label]) => (
          <label key={name}>
            {label}
            <input name={name} autocomplete="off" />
          </label>
        ))}
        <button>Search</button>
      </form>
      <Failure error={requests.error} />
      {requests.isLoaded && requests.items.length === 0 && (
        <Empty title={requests.more ? "None among those searched so far" : "No logged requests"}>
          <p>
            Requests are logged if <code>request_log.enabled</code> is set; an entry appears some
            seconds after its request.
          </p>
        </Empty>
      )}
      <ul class="cards" aria-label="Requests">
        {requests.items.map((request) => (
          <li key={request.id}>
            <article aria-label={request.request_id}>
              <h3>
                <span class={`status ${request.status < 400 ? "healthy" : "down"}`}>
                  {request.status}
                </span>{" "}
                {request.requested_model ?? request.endpoint}
                {request.error_code !== null && ` · ${request.error_code}`}
              </h3>
              <p class="hint">
                {when(request.ended_at)} · {count.format(request.duration_ms)} ms ·{" "}
                {count.format(request.input_tokens)} + {count.format(request.output_tokens)} tokens
                {request.cost !== null && ` · ${dollars(request.cost)}`}
                {request.provider !== null && ` · ${request.provider}`}
              </p>
              <button
                type="button"
                class="quiet"
                aria-expanded={shown === request.id}
                onClick={() => setShown((id) => (id === request.id ? "" : request.id))}
              >
                Details
                <span class="visually-hidden"> of {request.request_id}</span>
              </button>
              {shown === request.id && <Details request={request} />}
            </article>
          </li>
        ))}
      </ul>
      <MoreButton list={requests} label="More requests" />
    </section>
  );
}

function Details({ request }: { request: LoggedRequest }) {
  const { data, error } = useLoaded((signal) => getLoggedRequest(request.id, signal), [request.id]);
  return (
    <>
      <p class="hint">
        <code>{request.request_id}</code> · {request.endpoint} · user <code>{request.user_id}</code>{" "}
        · key <code>{request.key_id}</code> · {request.attempts} attempt{request.attempts !== 1 && "s"}
        {request.end_user !== null && ` · end user ${request.end_user}`}
        {Object.entries(request.tags).map(([key, value]) => ` · ${key}=${value}`)}
        {request.model !== null && ` · answered by ${request.model}`}
        {request.first_content_ms !== null && ` · first content after ${request.first_content_ms} ms`}
      </p>
      <Failure error={error} />
      {data && <Body title="Request" body={data.request_body} />}
      {data && <Body title="Response" body={data.response_body} />}
    </>
  );
}

function Body({ title, body }: { title: string; body: LoggedBody | null }) {
  if (body === null) return null;
  return (
    <details open>
      <summary>
        {title}
        {body.truncated && " (truncated)"}
      </summary>
      <pre class="body" role="region" aria-label={`Body of the ${title.toLowerCase()}`} tabIndex={0}>
        {indented(body.content)}
      </pre>
    </details>
  );
}

/** Return JSON with indentation, and any other text as it is. */
function indented(content: string): string {
  try {
    return JSON.stringify(JSON.parse(content), null, 2);
  } catch {
    return content;
  }
}
