// Whether an element is near the part of the page that is seen.
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

const NEAR = "600px";
// With an element that comes near, those so far away are told, too: what they show changes the page once.
const AHEAD = "3000px";

const waiting = new Map<Element, () => void>();
const ahead = new Set<Element>();
let observers: readonly IntersectionObserver[] | undefined;

/** Return whether an element has come near since it was made. */
export function useNear(element: RefObject<Element | null>): boolean {
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    const target = element.current;
    if (target === null || isNear) return;
    observers ??= [
      new IntersectionObserver(lookAhead, { rootMargin: AHEAD }),
      new IntersectionObserver(tell, { rootMargin: NEAR }),
    ];
    waiting.set(target, () => setNear(true));
    for (const observer of observers) observer.observe(target);
    return () => {
      for (const observer of observers ?? []) observer.unobserve(target);
      waiting.delete(target);
      ahead.delete(target);
    };
  }, [isNear]);
  return isNear;
}

function lookAhead(entries: IntersectionObserverEntry[]): void {
  for (const { isIntersecting, target } of entries) {
    if (isIntersecting && waiting.has(target)) ahead.add(target);
    else ahead.delete(target);
  }
}

function tell(entries: IntersectionObserverEntry[]): void {
  const near = entries.filter(({ isIntersecting }) => isIntersecting).map(({ target }) => target);
  if (near.length === 0) return;
  for (const target of new Set([...near, ...ahead])) waiting.get(target)?.();
  ahead.clear();
}
