// The message that is written next.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import { DropArea, FileButton, UploadList, useUploads } from "../../parts/uploads";
import { chatWords } from "../../words/chat";
import { Attachments } from "./attachments";
import type { UserTurn } from "./conversation";
import { CopyCode } from "./copy_code";
import { keepPreview } from "./previews";
import { isRunning, stop } from "./run";
import { EMPTY, leaveEdit, message, setMessage, turnsBefore } from "./store";

const texts = chatWords.composer;

export function Composer({
  waitsFor,
  isBlocked,
  onSend,
  onEditLast,
}: {
  /** The text that comes first, such as results of tools; "" for none. */
  waitsFor: string;
  /** Whether another chat is about to be shown. */
  isBlocked: boolean;
  /** Sends the message; returns whether it was sent. */
  onSend: (turn: UserTurn) => boolean;
  /** Begins an edit of the last message. */
  onEditLast: () => void;
}) {
  const field = useRef<HTMLTextAreaElement>(null);
  const uploads = useUploads((stored, file) => {
    keepPreview(stored.id, file);
    const added = { fileId: stored.id, name: file.name, type: file.type };
    setMessage({ ...message.value, attachments: [...message.value.attachments, added] });
  });
  const { text, attachments, edited } = message.value;
  const isEditing = edited !== undefined;
  // Before the next key is handled, so that none is lost.
  useLayoutEffect(() => {
    if (isEditing) field.current?.focus();
  }, [edited]);
  useEscape();

  const isUploading = uploads.list.some(({ error }) => error === undefined);
  const isEmpty = text.trim() === "" && attachments.length === 0;
  const mayNotSend =
    isEmpty || isUploading || isBlocked || waitsFor !== "" || isRunning.value;
  const written: UserTurn = { role: "user", text, attachments };

  function submit(): void {
    if (mayNotSend || !onSend(written)) return;
    setMessage(EMPTY);
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) submit();
    else if (event.key === "ArrowUp" && isEmpty && !isEditing) onEditLast();
    else return;
    event.preventDefault();
  }

  return (
    <DropArea onFiles={uploads.add}>
      <form
        class="composer"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <label>
          <span class={isEditing ? "hint" : "visually-hidden"}>
            {isEditing ? texts.edited : texts.message}
          </span>
          <textarea
            ref={field}
            rows={1}
            placeholder={texts.hint}
            value={text}
            onInput={(event) => setMessage({ ...message.value, text: event.currentTarget.value })}
            onPaste={(event) => {
              const files = Array.from(event.clipboardData?.files ?? []);
              if (files.length > 0) uploads.add(files);
            }}
            onKeyDown={onKeyDown}
          />
        </label>
        <Attachments
          list={attachments}
          onRemove={({ fileId }) => {
            const left = attachments.filter((each) => each.fileId !== fileId);
            setMessage({ ...message.value, attachments: left });
          }}
        />
        <UploadList uploads={uploads} />
        <div class="actions">
          <FileButton label={texts.attach} onFiles={uploads.add} />
          <CopyCode turns={() => (isEmpty ? turnsBefore() : [...turnsBefore(), written])} />
          {isEditing && (
            <button type="button" class="quiet" onClick={leaveEdit}>
              {texts.cancelEdit}
            </button>
          )}
          <span class={waitsFor !== "" ? "hint keys-hint waiting" : "hint keys-hint"}>
            {waitsFor || texts.keys}
          </span>
          {isRunning.value ? (
            <button type="button" class="danger" onClick={stop}>
              {texts.stop}
            </button>
          ) : (
            <button disabled={mayNotSend}>{texts.send}</button>
          )}
        </div>
      </form>
    </DropArea>
  );
}

/** Escape stops an answer, else leaves an edit; in a dialog or a list it closes that. */
function useEscape(): void {
  useEffect(() => {
    function onKeyDown(event: KeyboardEvent): void {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      if (document.querySelector("dialog[open]") !== null) return;
      if (isRunning.value) stop();
      else if (message.value.edited !== undefined) leaveEdit();
    }
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, []);
}
