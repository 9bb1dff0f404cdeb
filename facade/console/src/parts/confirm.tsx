// A question before something that cannot be undone.
import { useRef, useState } from "preact/hooks";

import { words } from "../words/common";
import { Failure } from "./failure";

/** A button that asks before it acts; the dialog stays open with the reason where that fails. */
export function ConfirmButton({
  label,
  name,
  question,
  onConfirm,
}: {
  label: string;
  /** What it acts on, for screen readers. */
  name?: string;
  question: string;
  onConfirm: () => Promise<void>;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();

  async function confirm(): Promise<void> {
    setBusy(true);
    setError(undefined);
    try {
      await onConfirm();
      dialog.current?.close();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  }

  return (
    <>
      <button type="button" class="danger" onClick={() => dialog.current?.showModal()}>
        {label}
        {name && <span class="visually-hidden"> {name}</span>}
      </button>
      <dialog ref={dialog} aria-label={question} onClose={() => setError(undefined)}>
        <p>{question}</p>
        <Failure error={error} />
        <div class="actions">
          <button type="button" class="quiet" onClick={() => dialog.current?.close()}>
            {words.keep}
          </button>
          <button type="button" class="danger" disabled={isBusy} onClick={confirm}>
            {label}
          </button>
        </div>
      </dialog>
    </>
  );
}
