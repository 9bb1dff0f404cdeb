// One request: what became of it, attempt by attempt, with headers and bodies.
import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";
import type { ComponentChildren } from "preact";

import { CopyButton } from "../../parts/copy";
import { Failure } from "../../parts/failure";
import { count, duration, money, when } from "../../parts/formats";
import { useLoaded } from "../../parts/loading";
import { Status } from "../../parts/status";
import { Tiles } from "../../parts/tiles";
import { useTitle } from "../../parts/title";
import { words } from "../../words/common";
import { requestsWords } from "../../words/requests";
import type { Scope } from "../../admin/scope";
import { type LoggedBody, type RequestDetails, getRequest } from "./log";
import { openInChat, readChat } from "./open_in_chat";
import { toneOf } from "./table";
import { Timeline } from "./timeline";
import { ToolCalls } from "./tool_calls";

const text = requestsWords;

export function RequestPage({ scope, id }: { scope: Scope; id: string }) {
  useTitle(text.one);
  const { data, error } = useLoaded((signal) => getRequest(scope, id, signal), [scope, id]);
  return (
    <>
      <p class="way">
        <a href={scope === "mine" ? "/console/requests" : "/console/requests?scope=everyone"}>
          {text.title}
        </a>
      </p>
      {data === undefined && <h1>{text.one}</h1>}
      <Failure error={error} />
      {data && <Shown request={data} scope={scope} />}
    </>
  );
}

function Shown({ request, scope }: { request: RequestDetails; scope: Scope }) {
  const headers = Object.entries(request.headers);
  return (
    <>
      <div class="page-head">
        <h1>
          {request.requested_model ?? request.endpoint}{" "}
          <Status tone={toneOf(request.status, request.error_code)}>{request.status}</Status>
        </h1>
        <OpenInChat request={request} />
      </div>
      <Tiles label={text.one} tiles={tiles(request)} />
      <Section title={text.timeline}>
        <Timeline request={request} />
        <ToolCalls body={request.response_body} />
      </Section>
      <Section title={text.facts}>
        <Facts request={request} scope={scope} />
      </Section>
      {headers.length > 0 && (
        <Section title={text.headers}>
          <p class="hint">{text.headersHint}</p>
          <dl class="pairs">
            {headers.map(([name, value]) => (
              <div key={name}>
                <dt>
                  <code>{name}</code>
                </dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        </Section>
      )}
      <Section title={text.bodies}>
        {request.request_body === null && request.response_body === null ? (
          <p class="hint">
            {text.noBodies} <code>request_log.bodies</code>.
          </p>
        ) : (
          <>
            <Body title={text.requestBody} body={request.request_body} />
            <Body title={text.responseBody} body={request.response_body} />
          </>
        )}
      </Section>
    </>
  );
}

function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

function tiles(request: RequestDetails) {
  const { first_content_ms: first, cost } = request;
  return [
    { name: text.columns.duration, value: duration(request.duration_ms) },
    ...(first === null ? [] : [{ name: text.first, value: duration(first) }]),
    {
      name: text.columns.tokens,
      value: `${count(request.input_tokens)} + ${count(request.output_tokens)}`,
      hint: text.inAndOut,
    },
    { name: text.columns.cost, value: cost === null ? text.unknown : money(Number(cost)) },
  ];
}

function Facts({ request, scope }: { request: RequestDetails; scope: Scope }) {
  const search = (name: string, value: string): string =>
    `/console/requests?${new URLSearchParams({
      ...(scope === "everyone" ? { scope } : {}),
      [name]: value,
    })}`;
  const pairs: [string, ComponentChildren][] = [
    [
      text.requestId,
      <>
        <code>{request.request_id}</code>{" "}
        <CopyButton text={request.request_id} label={words.copy} name={text.requestId} />
      </>,
    ],
    [text.ended, when(request.ended_at)],
    [text.endpoint, <code>{request.endpoint}</code>],
    ...(request.error_code === null
      ? []
      : [[text.error, <code>{request.error_code}</code>] as [string, ComponentChildren]]),
    [text.answeredBy, request.model === null ? text.nobody : `${request.model} · ${request.provider ?? ""}`],
    ...(scope === "everyone"
      ? [[text.columns.user, <a href={search("user_id", request.user_id)}>{request.user_id}</a>] as [string, ComponentChildren]]
      : []),
    [text.key, <a href={search("key_id", request.key_id)}>{request.key_id}</a>],
    ...(request.end_user === null ? [] : [[text.endUser, request.end_user] as [string, ComponentChildren]]),
    ...Object.entries(request.tags).map(
      ([name, value]): [string, ComponentChildren] => [
        name,
        <a href={search("tag", `${name}=${value}`)}>{value}</a>,
      ],
    ),
  ];
  return (
    <dl class="pairs">
      {pairs.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function OpenInChat({ request }: { request: RequestDetails }) {
  const { route } = useLocation();
  const [isBusy, setBusy] = useState(false);
  const chat = readChat(request);
  if (chat === undefined) return null;
  return (
    <div class="actions">
      {chat.leftOut > 0 && <span class="hint">{text.leftOut(chat.leftOut)}</span>}
      <button
        type="button"
        disabled={isBusy}
        onClick={() => {
          setBusy(true);
          void openInChat(chat).then(() => route("/console"));
        }}
      >
        {text.openInChat}
      </button>
    </div>
  );
}

function Body({ title, body }: { title: string; body: LoggedBody | null }) {
  if (body === null) return null;
  return (
    <details open>
      <summary>
        {title}
        {body.truncated && ` (${text.truncated})`}
      </summary>
      <CopyButton text={body.content} label={words.copy} name={title} />
      <pre class="body" role="region" aria-label={title} tabIndex={0}>
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
