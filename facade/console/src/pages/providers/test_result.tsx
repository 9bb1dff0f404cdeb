// The outcome of a test of a provider.
import { Status, type Tone } from "../../parts/status";
import { duration } from "../../parts/formats";
import { providersWords } from "../../words/providers";
import type { ProviderTest } from "./stored";

const TONES: Record<ProviderTest["outcome"], Tone> = {
  valid: "good",
  key_rejected: "bad",
  no_list: "warning",
  unreachable: "bad",
  not_allowed: "bad",
  failed: "warning",
};
const text = providersWords.test;

/** The outcome of a test; screen readers read it when it comes. */
export function TestResult({ test }: { test: ProviderTest | undefined }) {
  return (
    <div role="status">
      {test && (
        <p>
          <Status tone={TONES[test.outcome]}>{text.outcomes[test.outcome]}</Status>{" "}
          <span class="hint">
            {test.outcome === "valid" && `${text.models(test.models.length)} · `}
            {test.status !== null && test.status !== 200 && `${text.status(test.status)} · `}
            {duration(test.duration_ms)}
          </span>
        </p>
      )}
    </div>
  );
}
