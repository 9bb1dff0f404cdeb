// A model in the document: what it is asked, its answer as it comes, and what becomes of that.
import { type Signal, signal } from "@preact/signals";
import type { EditorView } from "prosemirror-view";

import { assistWords } from "../../../words/documents/assist";
import type { OpenDocument } from "../document";
import type { Edits } from "../edits";
import type { Suggestions } from "../suggestions";
import { type Answer, type Source, ask } from "./asking";
import { partsOf } from "./parts";
import { citingEdits, suggestedEdits, textOf } from "./proposals";
import { type Target, nodesOf, targetOf } from "./target";
import { INSTRUCTED, type TaskName, WRITING, promptFor, withoutFence } from "./tasks";

const MODEL_KEY = "gateway.document-model";
const NOTHING: Answer = { text: "", sources: [] };

/**
 * How far a task is: what is wanted is being said, the model is being asked, it writes, its text is
 * being stored as a suggestion, is stored, or there is none.
 */
export type Phase = "saying" | "writing" | "storing" | "ready" | "failed";

export interface Shown {
  readonly task: TaskName;
  readonly target: Target;
  readonly phase: Phase;
  readonly instruction: string;
  /** The text that the model was asked about. */
  readonly before: string;
  readonly answer: Answer;
  /** Id of the suggestion that the document has. */
  readonly suggestionId: string;
  readonly isStopped: boolean;
  readonly error: unknown;
}

export class Assistant {
  readonly shown: Signal<Shown | undefined> = signal(undefined);
  readonly model = signal(sessionStorage.getItem(MODEL_KEY) ?? "");
  #controller: AbortController | undefined;

  constructor(
    readonly document: OpenDocument,
    readonly edits: Edits,
    readonly suggestions: Suggestions,
    readonly text: Signal<EditorView | undefined>,
    readonly title: () => string,
  ) {}

  choose(model: string): void {
    this.model.value = model;
    sessionStorage.setItem(MODEL_KEY, model);
  }

  /** Begin a task at the selection: at once, or by asking what is wanted. */
  async begin(task: TaskName): Promise<void> {
    const view = this.text.value;
    const target = view === undefined ? undefined : targetOf(view.state);
    if (target === undefined) return;
    await this.close();
    this.shown.value = {
      task,
      target,
      phase: "saying",
      ...{ instruction: "", before: "", answer: NOTHING, suggestionId: "" },
      ...{ isStopped: false, error: undefined },
    };
    if (!INSTRUCTED.includes(task)) await this.start("");
  }

  /** Ask the model, also once more: what it wrote before is rejected. */
  async start(instruction: string): Promise<void> {
    this.#controller?.abort();
    const controller = new AbortController();
    this.#controller = controller;
    await this.#reject();
    this.#set({ phase: "writing", instruction, answer: NOTHING, isStopped: false, error: undefined });
    try {
      await this.#write(controller);
      if (this.#controller === controller) await this.#propose();
    } catch (error) {
      if (this.#controller !== controller) return;
      if (controller.signal.aborted) await this.#stopped();
      else this.#set({ phase: "failed", error });
    }
  }

  /** Say once more what is wanted, in place of what was. */
  rephrase(): void {
    void this.#reject();
    this.#set({ phase: "saying", answer: NOTHING, error: undefined });
  }

  /** Stop the model; what it has written so far is suggested. */
  stop(): boolean {
    if (this.shown.value?.phase !== "writing") return false;
    this.#controller?.abort();
    return true;
  }

  /** Make the suggestion part of the document. */
  async accept(): Promise<void> {
    const { suggestionId } = this.shown.value ?? {};
    if (!suggestionId) return;
    try {
      await this.suggestions.accept(suggestionId);
    } catch (error) {
      this.#set({ error });
      return;
    }
    this.shown.value = undefined;
    this.text.value?.focus();
  }

  /** Add sources to the references of the document, and cite them. */
  async cite(sources: readonly Source[]): Promise<void> {
    const { target } = this.shown.value ?? {};
    if (target === undefined) return;
    const edits = () => citingEdits(this.document, this.#doc(), target, this.edits.nameOf, sources);
    try {
      await this.edits.apply(edits, assistWords.citing);
      this.shown.value = undefined;
      this.text.value?.focus();
    } catch (error) {
      this.#set({ error });
    }
  }

  /** Take everything back: the model is stopped, and its suggestion rejected. */
  async close(): Promise<void> {
    this.leave();
    await this.#reject();
    this.shown.value = undefined;
  }

  /** Stop for good, as the page is left; a suggestion stays with the document. */
  leave(): void {
    const controller = this.#controller;
    this.#controller = undefined;
    controller?.abort();
  }

  async #write(controller: AbortController): Promise<void> {
    const { task, target, instruction } = this.shown.value!;
    if (this.model.value === "") this.model.value = await firstModel();
    // What the model is told is what has been saved.
    await this.edits.before();
    const text = textOf(this.document, target, this.edits.nameOf);
    const { before, after } = this.#around(target);
    const prompt = promptFor(task, { title: this.title(), before, after, text, instruction });
    this.#set({ before: text });
    const show = (answer: Answer) => {
      if (this.#controller === controller) this.#set({ answer });
    };
    await ask(this.model.value, prompt, task === "sources", show, controller.signal);
  }

  async #stopped(): Promise<void> {
    this.#set({ isStopped: true });
    if (this.shown.value?.answer.text.trim()) await this.#propose();
    else this.#set({ phase: "failed" });
  }

  /** Store what the model has written as a suggestion. */
  async #propose(): Promise<void> {
    const { task, target, answer } = this.shown.value!;
    if (task === "sources") {
      this.#set({ phase: "ready" });
      return;
    }
    const text = withoutFence(answer.text);
    this.#set({ phase: "storing", answer: { ...answer, text } });
    try {
      if (text === "") throw new Error(assistWords.nothing);
      const isWritten = WRITING.includes(task);
      const parts = isWritten ? undefined : await partsOf(text);
      const { nameOf } = this.edits;
      const edits = () =>
        suggestedEdits(this.document, this.#doc(), target, nameOf, isWritten, text, parts);
      const suggestionId = await this.edits.suggest(edits);
      if (this.shown.value?.phase === "storing") this.#set({ phase: "ready", suggestionId });
      // The panel was closed meanwhile.
      else await this.suggestions.reject(suggestionId);
    } catch (error) {
      this.#set({ phase: "failed", error });
    }
  }

  async #reject(): Promise<void> {
    const { suggestionId } = this.shown.value ?? {};
    if (!suggestionId) return;
    this.#set({ suggestionId: "" });
    // What cannot be rejected now is shown in the text.
    await this.suggestions.reject(suggestionId).catch(() => undefined);
  }

  /** Return the Markdown in front of a target and behind it. */
  #around(target: Target): { before: string; after: string } {
    const ids = this.document.order.value;
    const places = target.blockIds.map((id) => ids.indexOf(this.edits.nameOf(id)));
    const markdown = (part: readonly string[]) =>
      part.map((id) => this.document.entry(id).state.value?.text ?? "").filter(Boolean).join("\n\n");
    return {
      before: markdown(ids.slice(0, Math.max(0, places[0]!))),
      after: markdown(ids.slice(places.at(-1)! + 1)),
    };
  }

  #doc() {
    const doc = this.text.value?.state.doc;
    const { target } = this.shown.value ?? {};
    const isThere = doc && target && nodesOf(doc, target, this.edits.nameOf) !== undefined;
    if (!isThere) throw new Error(assistWords.gone);
    return doc;
  }

  #set(part: Partial<Shown>): void {
    if (this.shown.value !== undefined) this.shown.value = { ...this.shown.value, ...part };
  }
}

async function firstModel(): Promise<string> {
  const { firstChoice, listModels } = await import("../../chat/models");
  const model = firstChoice(await listModels(new AbortController().signal));
  if (model === undefined) throw new Error(assistWords.noModel);
  return model.id;
}
