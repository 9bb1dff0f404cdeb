import { useRef } from "preact/hooks";

import { Maths } from "../../../parts/maths";
import { useNear } from "../near";

/** A formula, set as soon as it comes near: a long document has thousands. */
export function Formula({ tex, isBlock = false }: { tex: string; isBlock?: boolean }) {
  const element = useRef<HTMLSpanElement>(null);
  const isNear = useNear(element);
  return (
    <span ref={element} class={isBlock ? "formula" : undefined}>
      {isNear ? <Maths tex={tex} isBlock={isBlock} /> : <code>{tex}</code>}
    </span>
  );
}
