// The steps to a first answer, for the administrator of a gateway that is not set up. They are shown
// until all are done, or hidden for this browser.
import { signal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { useEffect, useState } from "preact/hooks";

import { json } from "../api/client";
import { chats } from "../chats/chats";
import { setupWords } from "../words/setup";
import { administersAll } from "./session";

const DONE = "gateway.setup.done";
// Whether the steps have been shown: the last one alone is no reason to begin.
const BEGUN = "gateway.setup.begun";
// Providers that a gateway has by itself.
const OWN: readonly string[] = ["sandbox", "embedded"];
// The user of the key that a first start makes.
const DEVELOPMENT_USER = "dev";
const text = setupWords;

const changes = signal(0);

/** Read the steps again, after a change that may complete one. */
export function setupChanged(): void {
  changes.value += 1;
}

interface Steps {
  provider: boolean;
  key: boolean;
}

export function Setup() {
  const { path } = useLocation();
  const [steps, setSteps] = useState<Steps>();
  const [isDone, setDone] = useState(localStorage.getItem(DONE) !== null);
  const isOpen = administersAll.value && !isDone;
  const hasChat = (chats.value?.length ?? 0) > 0;

  useEffect(() => {
    if (!isOpen) return;
    const controller = new AbortController();
    // Where they cannot be read, nothing is shown: the pages tell what is wrong.
    readSteps(controller.signal).then(setSteps, () => undefined);
    return () => controller.abort();
  }, [isOpen, path, hasChat, changes.value]);

  if (!isOpen || steps === undefined || chats.value === undefined) return null;
  const isSetUp = steps.provider && steps.key;
  if (!isSetUp) localStorage.setItem(BEGUN, "");
  if (isSetUp && (hasChat || localStorage.getItem(BEGUN) === null)) return null;

  function hide(): void {
    localStorage.setItem(DONE, "");
    setDone(true);
  }

  return (
    <section class="setup" aria-labelledby="setup">
      <div class="page-head">
        <h2 id="setup">{text.title}</h2>
        <button type="button" class="quiet small" onClick={hide}>
          {text.hide}
        </button>
      </div>
      <ol>
        <Step label={text.provider} to="/console/providers" isDone={steps.provider} />
        <Step label={text.key} to="/console/people" isDone={steps.key} />
        <Step label={text.chat} to="/console" isDone={hasChat} />
      </ol>
    </section>
  );
}

function Step({ label, to, isDone }: { label: string; to: string; isDone: boolean }) {
  return (
    <li class={isDone ? "done" : undefined}>
      <span aria-hidden="true">{isDone ? "✓" : "○"}</span>{" "}
      {isDone ? label : <a href={to}>{label}</a>}
      {isDone && <span class="visually-hidden"> ({text.done})</span>}
    </li>
  );
}

async function readSteps(signal: AbortSignal): Promise<Steps> {
  const [providers, keys] = await Promise.all([
    json<{ data: { id: string; kind: string }[] }>("/admin/v1/providers", { signal }),
    json<{ data: { user: string; prefix: string }[] }>("/admin/v1/keys?limit=20", { signal }),
  ]);
  return {
    provider: providers.data.some(({ kind }) => !OWN.includes(kind)),
    key: keys.data.some(({ user, prefix }) => user !== DEVELOPMENT_USER && prefix !== "(sign-in)"),
  };
}
