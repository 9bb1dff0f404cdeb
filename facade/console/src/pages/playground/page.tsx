// The playground: a conversation with any model.
import { useState } from "preact/hooks";

import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { Composer } from "./composer";
import { type Turn, type UserTurn, isWaiting } from "./conversation";
import { useFollowing } from "./following";
import { ModelChoice } from "./models";
import { dropPreviews } from "./previews";
import { isRunning, run } from "./run";
import { SettingError } from "./settings";
import { SettingsForm } from "./settings_form";
import { setLast, setTurns, settings, turns } from "./store";
import { TurnView } from "./turn_view";

const NOTHING: UserTurn = { role: "user", text: "", attachments: [] };

export default function Playground() {
  const [draft, setDraft] = useState(NOTHING);
  // Index of the turn that is edited; what follows it goes when the edit is sent.
  const [edited, setEdited] = useState<number>();
  const [problem, setProblem] = useState<unknown>();
  useFollowing(turns.value);
  const conversation = edited === undefined ? turns.value : turns.value.slice(0, edited);

  /** Send a conversation; return whether it was sent. */
  function answer(now: readonly Turn[]): boolean {
    setProblem(undefined);
    if (settings.value.model === "") {
      setProblem(new SettingError("Choose a model first."));
      return false;
    }
    // It fails before its first pause where a setting cannot be sent.
    const before = turns.value;
    run(now).catch((error: unknown) => {
      if (!(error instanceof SettingError)) throw error;
      setProblem(error);
    });
    return turns.value !== before;
  }

  function stopEditing(): void {
    setEdited(undefined);
    setDraft({ ...NOTHING });
  }

  function send(turn: UserTurn): boolean {
    const isSent = answer([...conversation, turn]);
    if (isSent) stopEditing();
    return isSent;
  }

  function giveResult(callId: string, result: string): void {
    const last = turns.value.at(-1);
    if (last?.role !== "assistant") return;
    const blocks = last.blocks.map((block) =>
      block.type === "call" && block.id === callId ? { ...block, result } : block,
    );
    setLast({ ...last, blocks });
    if (!isWaiting(turns.value)) answer(turns.value);
  }

  return (
    <div class="playground">
      <h1>Playground</h1>
      <ModelChoice />
      <SettingsForm />
      <section class="conversation" aria-label="Conversation">
        {turns.value.length === 0 && (
          <Empty title="Nothing has been said yet">
            <p>Choose a model and write a message. The conversation stays in this tab.</p>
          </Empty>
        )}
        {turns.value.map((turn, index) => (
          <TurnView
            key={index}
            turn={turn}
            isLast={index === turns.value.length - 1}
            isBusy={isRunning.value}
            onEdit={() => {
              if (turn.role !== "user") return;
              setDraft({ ...turn });
              setEdited(index);
            }}
            onRegenerate={() => answer(turns.value.slice(0, index))}
            onResult={giveResult}
          />
        ))}
      </section>
      <p class="visually-hidden" role="status">
        {isRunning.value ? "The model answers." : turns.value.length > 0 ? "The answer is complete." : ""}
      </p>
      <Failure error={problem} />
      <Composer
        draft={draft}
        isEditing={edited !== undefined}
        isWaiting={edited === undefined && isWaiting(turns.value)}
        hasTurns={turns.value.length > 0}
        conversation={conversation}
        onSend={send}
        onCancel={stopEditing}
        onClear={() => {
          setTurns([]);
          dropPreviews();
          stopEditing();
        }}
      />
    </div>
  );
}
