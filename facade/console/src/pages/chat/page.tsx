// The chat: a conversation with any model.
import { useLocation } from "preact-iso";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { currentChat, currentRoot, latestChats, rootOf, titleOf } from "../../chats/chats";
import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { useTitle } from "../../parts/title";
import { chatWords } from "../../words/chat";
import { type Branch, ownerOf, versionsOf } from "./branches";
import {
  askAgain,
  askedModels,
  compare,
  keepAnswers,
  leave,
  mustChoose,
  shownComparison,
} from "./comparison";
import { ComparisonView } from "./comparison_view";
import { Composer } from "./composer";
import { type Turn, isWaiting } from "./conversation";
import { useFollowing } from "./following";
import { isApart, openChat, saveProblem, settled, store, switchTo } from "./history";
import { ModelChoice } from "./models";
import { ended, isRunning, resume, run } from "./run";
import { SettingError } from "./settings";
import { SettingsForm } from "./settings_form";
import {
  branches,
  leaveEdit,
  loadedBranches,
  message,
  setLast,
  setMessage,
  settings,
  showBranches,
  showNewChat,
  shownBranch,
  turns,
  turnsBefore,
} from "./store";
import { TurnView, type Versions } from "./turn_view";

/** A conversation that was put away by a new one. */
interface Cleared {
  turns: readonly Turn[];
  branches: readonly Branch[];
  shown: string;
}

export default function Chat() {
  const [problem, setProblem] = useState<unknown>();
  const [cleared, setCleared] = useState<Cleared>();
  // Until another chat is shown nothing is sent, so that nothing goes to the wrong one.
  const [isLeaving, setLeaving] = useState(false);
  const opening = useOpening(startNew);
  const comparison = shownComparison();
  useFollowing(comparison ?? turns.value);
  useEffect(() => {
    void resume();
    if (!isRunning.value) keepAnswers();
  }, []);
  const { edited } = message.value;
  useFocusAfterEdit(edited);
  const chat = latestChats.value?.find((one) => rootOf(one) === currentRoot.value);
  useTitle(chat === undefined ? chatWords.title : titleOf(chat));

  /** Send a conversation; return whether it was sent. */
  function answer(now: readonly Turn[]): boolean {
    setProblem(undefined);
    if (settings.value.model === "") {
      setProblem(new SettingError(chatWords.chooseModel));
      return false;
    }
    const models = askedModels();
    // It fails before its first pause where a setting cannot be sent.
    const before = turns.value;
    const sending = models.length > 1 ? compare(now, models) : run(now);
    sending.catch((error: unknown) => {
      if (!(error instanceof SettingError)) throw error;
      setProblem(error);
    });
    const isSent = turns.value !== before;
    if (isSent) {
      setCleared(undefined);
      if (models.length === 1) leave();
    }
    return isSent;
  }

  async function startNew(): Promise<void> {
    setLeaving(true);
    await ended();
    await settled();
    setLeaving(false);
    if (turns.value.length === 0) return;
    setCleared({ turns: turns.value, branches: loadedBranches(), shown: shownBranch.value });
    showNewChat();
    isApart.value = false;
    if (message.value.edited !== undefined) setMessage({ ...message.value, edited: undefined });
  }

  function undo(): void {
    if (cleared === undefined) return;
    showBranches(cleared.branches, cleared.shown, cleared.turns);
    setCleared(undefined);
  }

  function edit(index: number): void {
    const turn = turns.value[index];
    if (turn?.role !== "user") return;
    const { text, attachments, before } = message.value;
    const kept = before ?? { role: "user", text, attachments };
    setMessage({
      role: "user",
      text: turn.text,
      attachments: turn.attachments,
      edited: index,
      before: kept,
    });
  }

  function giveResult(callId: string, result: string): void {
    const last = turns.value.at(-1);
    if (last?.role !== "assistant") return;
    const blocks = last.blocks.map((block) =>
      block.type === "call" && block.id === callId ? { ...block, result } : block,
    );
    setLast({ ...last, blocks });
    if (isWaiting(turns.value)) store();
    else answer(turns.value);
  }

  function versions(index: number): Versions {
    const all = versionsOf(branches.value, shownBranch.value, index);
    const owner = ownerOf(branches.value, shownBranch.value, index);
    return { number: all.findIndex(({ key }) => key === owner.key) + 1, count: all.length };
  }

  function showVersion(index: number, number: number): void {
    const branch = versionsOf(branches.value, shownBranch.value, index)[number - 1];
    if (branch === undefined) return;
    if (edited !== undefined) leaveEdit();
    setProblem(undefined);
    switchTo(branch.key).catch(setProblem);
  }

  function waitsFor(): string {
    if (edited !== undefined) return "";
    if (mustChoose()) return chatWords.comparison.hint;
    return isWaiting(turns.value) ? chatWords.tools.waiting : "";
  }

  const shownTurns = turns.value.slice(0, comparison?.at);
  // A message is edited where it is.
  const isInPlace = edited !== undefined && edited < shownTurns.length;
  const composer = (
    <Composer
      waitsFor={waitsFor()}
      isBlocked={isLeaving || opening.isLoading}
      onSend={(turn) => answer([...turnsBefore(), turn])}
      onEditLast={() => {
        if (!isRunning.value) edit(turns.value.findLastIndex(({ role }) => role === "user"));
      }}
    />
  );

  return (
    <div class="chat-page">
      <div class="page-head">
        <h1>{chatWords.title}</h1>
        {turns.value.length > 0 && (
          <button
            type="button"
            class="quiet"
            disabled={isRunning.value}
            onClick={() => void startNew()}
          >
            {chatWords.newConversation}
          </button>
        )}
      </div>
      <div class="chat-bar">
        <ModelChoice />
        <SettingsForm />
      </div>
      <section class="conversation" aria-label={chatWords.conversation}>
        {turns.value.length === 0 && (
          <Empty title={opening.isLoading ? chatWords.opening : chatWords.nothing}>
            {cleared === undefined ? (
              <p>{chatWords.start}</p>
            ) : (
              <p>
                {chatWords.fresh}{" "}
                <button type="button" class="quiet small" onClick={undo}>
                  {chatWords.undo}
                </button>
              </p>
            )}
          </Empty>
        )}
        {shownTurns.map((turn, index) =>
          isInPlace && index === edited ? (
            <div key="edit" class="turn-edit">
              {composer}
            </div>
          ) : (
            <TurnView
              key={index}
              turn={turn}
              versions={versions(index)}
              isLast={index === turns.value.length - 1}
              isBusy={isRunning.value}
              onEdit={() => edit(index)}
              onRegenerate={() => answer(turns.value.slice(0, index))}
              onResult={giveResult}
              onVersion={(number) => showVersion(index, number)}
            />
          ),
        )}
        {comparison && (
          <ComparisonView
            comparison={comparison}
            isBusy={isRunning.value}
            onRepeat={() => answer(turns.value.slice(0, comparison.at))}
            onAskAgain={(column) => {
              setProblem(undefined);
              askAgain(column).catch(setProblem);
            }}
          />
        )}
      </section>
      {opening.isLoading && isRunning.value && (
        <p class="hint">{chatWords.opensLater}</p>
      )}
      <p class="visually-hidden" role="status">
        {isRunning.value ? chatWords.answering : turns.value.length > 0 && chatWords.answered}
      </p>
      <div class="composer-place">
        <Failure error={problem ?? opening.error} />
        {saveProblem.value !== undefined && (
          <p class="hint" role="status">
            {chatWords.notStored(String((saveProblem.value as Error).message))}
          </p>
        )}
        {isApart.value && (
          <p class="hint" role="status">
            {chatWords.apart}
          </p>
        )}
        {!isInPlace && composer}
      </div>
    </div>
  );
}

/** After an edit, go on in the field at the foot. */
function useFocusAfterEdit(edited: number | undefined): void {
  const wasEditing = useRef(false);
  useLayoutEffect(() => {
    if (wasEditing.current && edited === undefined) {
      document.querySelector<HTMLElement>(".composer-place textarea")?.focus();
    }
    wasEditing.current = edited !== undefined;
  }, [edited]);
}

/** Show the chat that the address names: `?chat=ID`, or `?chat=new` for a new one. */
function useOpening(startNew: () => Promise<void>): { isLoading: boolean; error: unknown } {
  const { query, route } = useLocation();
  const [state, setState] = useState<{ isLoading: boolean; error: unknown }>({
    isLoading: false,
    error: undefined,
  });
  const id = query["chat"];
  useEffect(() => {
    if (id === undefined || id === currentChat.value) return;
    if (id === "new") {
      void startNew().then(() => route("/console", true));
      return;
    }
    const controller = new AbortController();
    setState({ isLoading: true, error: undefined });
    openChat(id, controller.signal).then(
      () => setState({ isLoading: false, error: undefined }),
      (error: unknown) => {
        if (!controller.signal.aborted) setState({ isLoading: false, error });
      },
    );
    return () => {
      controller.abort();
      setState({ isLoading: false, error: undefined });
    };
  }, [id]);
  return state;
}
