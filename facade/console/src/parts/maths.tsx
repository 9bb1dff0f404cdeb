// Mathematics, set by KaTeX, which is loaded when the first formula appears.
import { useEffect, useRef, useState } from "preact/hooks";

type Katex = typeof import("katex").default;

let loading: Promise<Katex> | undefined;

/** Return KaTeX, once its style sheet is there too: without it a formula would show twice. */
function load(): Promise<Katex> {
  loading ??= Promise.all([import("katex"), addStyles()]).then(([module]) => module.default);
  return loading;
}

function addStyles(): Promise<void> {
  const styles = document.createElement("link");
  styles.rel = "stylesheet";
  styles.href = MATHS_STYLES;
  return new Promise((resolve, reject) => {
    styles.onload = () => resolve();
    styles.onerror = () => reject(new Error("the style sheet of formulas cannot be loaded"));
    document.head.append(styles);
  });
}

/** Shows a formula in TeX; as it was written where it has an error or KaTeX cannot be loaded. */
export function Maths({ tex, isBlock = false }: { tex: string; isBlock?: boolean }) {
  const element = useRef<HTMLElement>(null);
  const [isSet, setIsSet] = useState(false);
  useEffect(() => {
    let isShown = true;
    load().then(
      (katex) => {
        if (!isShown || element.current === null) return;
        try {
          // Without trust no command makes links, loads images or sets HTML attributes; sizes and
          // macros are bounded.
          katex.render(tex, element.current, {
            displayMode: isBlock,
            throwOnError: true,
            trust: false,
            strict: "ignore",
            maxSize: 20,
            maxExpand: 200,
          });
          setIsSet(true);
        } catch {
          setIsSet(false);
          element.current.textContent = tex;
        }
      },
      () => undefined,
    );
    return () => {
      isShown = false;
    };
  }, [tex, isBlock]);
  const Tag = isBlock ? "div" : "span";
  // KaTeX writes into an element that Preact never writes into.
  return (
    <Tag class={isBlock ? "maths block" : "maths"}>
      {!isSet && <code>{tex}</code>}
      <span ref={element} />
    </Tag>
  );
}
