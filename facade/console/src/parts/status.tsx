// A state in one word, told apart by its mark, too.
import type { ComponentChildren } from "preact";

export type Tone = "good" | "warning" | "bad" | "quiet";

const MARKS: Record<Tone, string> = { good: "●", warning: "◐", bad: "○", quiet: "–" };

export function Status({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return (
    <span class={`badge ${tone}`}>
      <span aria-hidden="true">{MARKS[tone]}</span> {children}
    </span>
  );
}
