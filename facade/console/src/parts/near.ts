// Whether an element is near the part of the page, or of an element that scrolls, that is seen.
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

/**
 * Return whether an element is near.
 *
 * @param element The element.
 * @param root Selects the element around it that scrolls; the page does for "".
 */
export function useIsNear(element: RefObject<Element | null>, root = ""): boolean {
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    const target = element.current!;
    const observer = new IntersectionObserver(
      (entries) => setNear(entries.some(({ isIntersecting }) => isIntersecting)),
      { root: root ? target.closest(root) : null, rootMargin: "800px" },
    );
    observer.observe(target);
    return () => observer.disconnect();
  }, []);
  return isNear;
}
