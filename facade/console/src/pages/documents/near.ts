// Whether an element is near the part of the page that is seen.
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

const waiting = new WeakMap<Element, () => void>();
let observer: IntersectionObserver | undefined;

/** Return whether an element has come near since it was made. */
export function useNear(element: RefObject<Element | null>): boolean {
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    const target = element.current;
    if (target === null || isNear) return;
    observer ??= new IntersectionObserver(tell, { rootMargin: "600px" });
    waiting.set(target, () => setNear(true));
    observer.observe(target);
    return () => observer?.unobserve(target);
  }, [isNear]);
  return isNear;
}

function tell(found: IntersectionObserverEntry[]): void {
  for (const { isIntersecting, target } of found) {
    if (!isIntersecting) continue;
    observer?.unobserve(target);
    waiting.get(target)?.();
  }
}
