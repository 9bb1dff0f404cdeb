// What a model is asked and has written, in the text, with what a person decides about it.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { ApiError } from "../../../api/client";
import { Failure } from "../../../parts/failure";
import { useLoaded } from "../../../parts/loading";
import { Markdown } from "../../../parts/markdown";
import { assistWords as text } from "../../../words/documents/assist";
import { ModelField, listModels } from "../../chat/models";
import { useDocument } from "../context";
import { DifferenceText } from "../difference";
import type { Assistant, Shown } from "./assistant";
import type { Source } from "./asking";
import { INSTRUCTED, WRITING } from "./tasks";

export function Panel() {
  const { assistant, text: view } = useDocument();
  const shown = assistant.shown.value;
  const section = useRef<HTMLElement>(null);
  useEffect(() => section.current?.scrollIntoView({ block: "nearest" }), []);
  if (shown === undefined) return null;
  return (
    <section
      ref={section}
      class="assistant"
      aria-label={text.title}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.defaultPrevented) return;
        event.preventDefault();
        if (assistant.stop()) return;
        if (shown.phase === "saying") void assistant.close();
        view.value?.focus();
      }}
    >
      <p class="hint" role="status">
        <strong>{text.tasks[shown.task].replace("…", "")}</strong> {stateOf(shown)}
      </p>
      {shown.phase === "saying" ? <Saying shown={shown} /> : <Answered shown={shown} />}
      {shown.error !== undefined && <Failure error={shown.error} />}
      {adviceFor(shown.error)}
      {shown.phase !== "saying" && <Deciding shown={shown} />}
    </section>
  );
}

function stateOf({ phase, isStopped, task }: Shown): string {
  if (phase === "ready" && task === "sources") return text.found;
  if (phase === "ready") return isStopped ? text.stopped : text.ready;
  return phase === "failed" && isStopped ? text.stoppedEarly : text.phases[phase];
}

/** Return what to do about an error; its own text says what it is. */
function adviceFor(error: unknown): ComponentChildren {
  if (error === undefined) return null;
  const isAboutSearch = error instanceof ApiError && error.message.includes("search");
  return <p class="hint">{isAboutSearch ? text.searchAdvice : text.advice}</p>;
}

function Saying({ shown }: { shown: Shown }) {
  const { assistant } = useDocument();
  const [instruction, setInstruction] = useState(shown.instruction);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  const isSaid = instruction.trim() !== "";
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isSaid) void assistant.start(instruction.trim());
      }}
    >
      <label>
        {text.instructions[shown.task === "change" ? "change" : "write"]}
        <textarea
          ref={field}
          rows={2}
          maxLength={4000}
          value={instruction}
          onInput={(event) => setInstruction(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            if (isSaid) void assistant.start(instruction.trim());
          }}
        />
      </label>
      <ModelChoice assistant={assistant} />
      <div class="actions">
        <button type="submit" disabled={!isSaid}>
          {text.ask}
        </button>
        <button type="button" class="quiet" onClick={() => void assistant.close()}>
          {text.cancel}
        </button>
      </div>
    </form>
  );
}

/** The model that is asked, or will be the next time. */
function ModelChoice({ assistant }: { assistant: Assistant }) {
  const { data, error } = useLoaded(listModels, []);
  return (
    <>
      <ModelField
        label={text.model}
        model={assistant.model.value}
        models={data ?? []}
        placeholder={text.firstModel}
        onChange={(model) => assistant.choose(model)}
      />
      <Failure error={error} />
    </>
  );
}

function Answered({ shown }: { shown: Shown }) {
  const { answer, before, task, phase } = shown;
  if (answer.text === "") return null;
  const isRewritten = task !== "sources" && !WRITING.includes(task);
  return (
    <div class="answered" aria-label={text.answer} role="group">
      {isRewritten && phase === "ready" ? (
        <DifferenceText before={before} after={answer.text} />
      ) : (
        <Markdown text={answer.text} isLive={phase === "writing"} />
      )}
    </div>
  );
}

function Deciding({ shown }: { shown: Shown }) {
  const { assistant } = useDocument();
  const { phase, task, answer, instruction } = shown;
  if (phase === "writing" || phase === "storing") {
    return (
      <div class="actions">
        <button type="button" disabled={phase === "storing"} onClick={() => assistant.stop()}>
          {text.stop}
        </button>
        <span class="hint">{text.stopHint}</span>
      </div>
    );
  }
  return (
    <>
      {phase === "ready" && task === "sources" && <Sources sources={answer.sources} />}
      <ModelChoice assistant={assistant} />
      <div class="actions">
        {shown.suggestionId !== "" && (
          <button type="button" onClick={() => void assistant.accept()}>
            {text.accept}
          </button>
        )}
        <button type="button" class="quiet" onClick={() => void assistant.close()}>
          {shown.suggestionId === "" ? text.close : text.reject}
        </button>
        <button type="button" class="quiet" onClick={() => void assistant.start(instruction)}>
          {text.again}
        </button>
        {INSTRUCTED.includes(task) && (
          <button type="button" class="quiet" onClick={() => assistant.rephrase()}>
            {text.rephrase}
          </button>
        )}
      </div>
    </>
  );
}

/** Pages that the model cites, and those that it found beside them, to choose from. */
function Sources({ sources }: { sources: readonly Source[] }) {
  const { assistant } = useDocument();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(
    () => new Set(sources.filter((one) => one.isCited).map((one) => one.url)),
  );
  if (sources.length === 0) return <p class="hint">{text.noSources}</p>;

  function toggle(url: string): void {
    const next = new Set(chosen);
    if (!next.delete(url)) next.add(url);
    setChosen(next);
  }

  return (
    <fieldset>
      <legend>{text.sources}</legend>
      <ul class="plain">
        {sources.map(({ url, title }) => (
          <li key={url}>
            <label class="check">
              <input type="checkbox" checked={chosen.has(url)} onChange={() => toggle(url)} />
              {title}
            </label>{" "}
            <a href={url} target="_blank" rel="noopener noreferrer">
              {new URL(url).hostname}
            </a>
          </li>
        ))}
      </ul>
      <button
        type="button"
        disabled={chosen.size === 0}
        onClick={() => void assistant.cite(sources.filter((one) => chosen.has(one.url)))}
      >
        {text.cite(chosen.size)}
      </button>
    </fieldset>
  );
}
