// One turn of a conversation.
import { memo } from "preact/compat";

import { CopyButton } from "../../parts/copy";
import { Markdown } from "../../parts/markdown";
import { Attachments } from "./attachments";
import type { AssistantTurn, Block, Turn, UserTurn } from "./conversation";
import { FactLine, FaultView } from "./facts";
import { ToolCallView } from "./tool_call";

interface Actions {
  onEdit: () => void;
  onRegenerate: () => void;
  onResult: (callId: string, result: string) => void;
}

export const TurnView = memo(
  function TurnView(props: { turn: Turn; isLast: boolean; isBusy: boolean } & Actions) {
    return props.turn.role === "user" ? (
      <UserView turn={props.turn} isBusy={props.isBusy} onEdit={props.onEdit} />
    ) : (
      <AnswerView {...props} turn={props.turn} />
    );
  },
  // What the actions do depends on the place of the turn alone.
  (before, now) =>
    before.turn === now.turn && before.isLast === now.isLast && before.isBusy === now.isBusy,
);

function UserView({
  turn,
  isBusy,
  onEdit,
}: {
  turn: UserTurn;
  isBusy: boolean;
  onEdit: () => void;
}) {
  return (
    <article class="turn user" aria-label="You">
      <p class="said">{turn.text}</p>
      <Attachments list={turn.attachments} />
      <div class="turn-actions">
        <button type="button" class="quiet small" disabled={isBusy} onClick={onEdit}>
          Edit
        </button>
      </div>
    </article>
  );
}

function AnswerView({
  turn,
  isLast,
  isBusy,
  onRegenerate,
  onResult,
}: { turn: AssistantTurn; isLast: boolean; isBusy: boolean } & Omit<Actions, "onEdit">) {
  const isLive = turn.state === "streaming";
  const text = turn.blocks
    .map((block) => (block.type === "text" ? block.text : ""))
    .filter(Boolean)
    .join("\n\n");
  return (
    <article class="turn" aria-label="Answer" aria-busy={isLive}>
      {turn.blocks.map((block, index) => (
        <BlockView
          key={index}
          block={block}
          isLive={isLive}
          onResult={isLast && turn.state === "done" ? onResult : undefined}
        />
      ))}
      {isLive && turn.blocks.length === 0 && <p class="hint">Waiting for the first token…</p>}
      {turn.state === "stopped" && <p class="hint">You stopped this answer.</p>}
      {turn.state === "cut" && (
        <p class="hint">This answer was cut off when the page was left.</p>
      )}
      {turn.fault && <FaultView fault={turn.fault} />}
      <FactLine facts={turn.facts} />
      {!isLive && (
        <div class="turn-actions">
          {text && <CopyButton text={text} label="Copy" name="the answer" />}
          {isLast && !isBusy && (
            <button type="button" class="quiet small" onClick={onRegenerate}>
              Regenerate
            </button>
          )}
        </div>
      )}
    </article>
  );
}

function BlockView({
  block,
  isLive,
  onResult,
}: {
  block: Block;
  isLive: boolean;
  onResult?: (callId: string, result: string) => void;
}) {
  switch (block.type) {
    case "text":
      return <Markdown text={block.text} isLive={isLive} />;
    case "thinking":
      return (
        <details class="thinking">
          <summary>Thinking</summary>
          <p class="said">{block.text}</p>
        </details>
      );
    case "call":
      return <ToolCallView call={block} onResult={onResult} />;
    case "other":
      return <OtherBlock json={block.json} />;
  }
}

function OtherBlock({ json }: { json: Record<string, unknown> }) {
  const name = typeof json["name"] === "string" ? json["name"] : String(json["type"]);
  return (
    <details class="thinking">
      <summary>{name.replaceAll("_", " ")}</summary>
      <pre tabIndex={0}>{JSON.stringify(json, null, 2)}</pre>
    </details>
  );
}
