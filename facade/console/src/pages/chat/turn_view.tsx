// One turn of a conversation.
import { memo } from "preact/compat";

import { CopyButton } from "../../parts/copy";
import { safeAddress } from "../../parts/links";
import { Markdown } from "../../parts/markdown";
import { chatWords } from "../../words/chat";
import { words } from "../../words/common";
import { Attachments } from "./attachments";
import type { AssistantTurn, Block, Turn, UserTurn } from "./conversation";
import { FactLine, FaultView } from "./facts";
import { ToolCallView } from "./tool_call";
import { VersionSwitch } from "./version_switch";

const texts = chatWords.turn;

/** Which of the versions of a turn is shown. */
export interface Versions {
  /** From 1 on. */
  number: number;
  count: number;
}

interface Actions {
  onEdit: () => void;
  onRegenerate: () => void;
  onResult: (callId: string, result: string) => void;
  onVersion: (number: number) => void;
}

interface Shown {
  versions: Versions;
  isLast: boolean;
  isBusy: boolean;
}

export const TurnView = memo(
  function TurnView(props: { turn: Turn } & Shown & Actions) {
    return props.turn.role === "user" ? (
      <UserView {...props} turn={props.turn} />
    ) : (
      <AnswerView {...props} turn={props.turn} />
    );
  },
  // What the actions do depends on the place of the turn alone.
  (before, now) =>
    before.turn === now.turn &&
    before.isLast === now.isLast &&
    before.isBusy === now.isBusy &&
    before.versions.number === now.versions.number &&
    before.versions.count === now.versions.count,
);

function UserView({
  turn,
  versions,
  isBusy,
  onEdit,
  onVersion,
}: { turn: UserTurn } & Shown & Actions) {
  return (
    <article class="turn user" aria-label={texts.you}>
      <p class="said">{turn.text}</p>
      <Attachments list={turn.attachments} />
      <div class="turn-actions">
        <Switch
          name={chatWords.versions.message}
          versions={versions}
          isBusy={isBusy}
          onVersion={onVersion}
        />
        <button type="button" class="quiet small" disabled={isBusy} onClick={onEdit}>
          {texts.edit}
        </button>
      </div>
    </article>
  );
}

function AnswerView({
  turn,
  versions,
  isLast,
  isBusy,
  onRegenerate,
  onResult,
  onVersion,
}: { turn: AssistantTurn } & Shown & Actions) {
  const isLive = turn.state === "streaming";
  const text = textOf(turn);
  return (
    <article class="turn" aria-label={texts.answer} aria-busy={isLive}>
      <AnswerBody turn={turn} onResult={isLast && turn.state === "done" ? onResult : undefined} />
      {!isLive && (
        <div class="turn-actions">
          <Switch
            name={chatWords.versions.answer}
            versions={versions}
            isBusy={isBusy}
            onVersion={onVersion}
          />
          {text && <CopyButton text={text} label={words.copy} name={texts.theAnswer} />}
          {isLast && !isBusy && (
            <button type="button" class="quiet small" onClick={onRegenerate}>
              {texts.regenerate}
            </button>
          )}
        </div>
      )}
    </article>
  );
}

function Switch({
  name,
  versions: { number, count },
  isBusy,
  onVersion,
}: { name: string; versions: Versions } & Pick<Shown, "isBusy"> & Pick<Actions, "onVersion">) {
  if (count < 2) return null;
  return <VersionSwitch name={name} number={number} count={count} isBusy={isBusy} onShow={onVersion} />;
}

function textOf(turn: AssistantTurn): string {
  return turn.blocks
    .map((block) => (block.type === "text" ? block.text : ""))
    .filter(Boolean)
    .join("\n\n");
}

/** The parts of an answer, with its models, times and costs. */
export function AnswerBody({
  turn,
  onResult,
}: {
  turn: AssistantTurn;
  onResult?: Actions["onResult"];
}) {
  const isLive = turn.state === "streaming";
  return (
    <>
      {turn.blocks.map((block, index) => (
        <BlockView key={index} block={block} isLive={isLive} onResult={onResult} />
      ))}
      {isLive && turn.blocks.length === 0 && <p class="hint">{texts.waiting}</p>}
      {turn.state === "stopped" && <p class="hint">{texts.stopped}</p>}
      {turn.state === "cut" && (
        <p class="hint">{texts.cut}</p>
      )}
      {turn.fault && <FaultView fault={turn.fault} />}
      <FactLine facts={turn.facts} />
    </>
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
          <summary>{texts.thinking}</summary>
          <p class="said">{block.text}</p>
        </details>
      );
    case "call":
      return <ToolCallView call={block} onResult={onResult} />;
    case "image":
      return <ImageView address={block.address} />;
    case "other":
      return <OtherBlock json={block.json} />;
  }
}

/** Shows an image that came with the answer; others are links, as loading them tells their sites. */
function ImageView({ address }: { address: string }) {
  const text = chatWords.images;
  if (address === "") return <p class="hint">{text.gone}</p>;
  if (!/^data:image\/(png|jpeg|gif|webp);base64,/.test(address)) {
    const href = safeAddress(address);
    return href === undefined ? null : (
      <a href={href} target="_blank" rel="noopener noreferrer">
        {text.elsewhere}
      </a>
    );
  }
  return (
    <figure class="made-image">
      <img src={address} alt={text.alt} />
      <a href={address} download={text.file}>
        {text.save}
      </a>
    </figure>
  );
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
