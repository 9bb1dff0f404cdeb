/** The moment at which the page is left, or loaded again. */

let isLeft = false;
const callbacks: (() => void)[] = [];
// A page that stays, as of a link to a file, keeps what comes again after this time.
const STAYS_MS = 10_000;

/** Call a function when the page is left, to store what would be lost. */
export function onLeave(callback: () => void): void {
  callbacks.push(callback);
}

/** Return whether the page is being left: the browser ends its requests then. */
export function isLeaving(): boolean {
  return isLeft;
}

function leave(): void {
  isLeft = false;
  for (const callback of callbacks) callback();
  isLeft = true;
}

// Firefox ends requests between the two events.
window.addEventListener("beforeunload", () => {
  leave();
  window.setTimeout(stay, STAYS_MS);
});
window.addEventListener("pagehide", () => {
  if (!isLeft) leave();
});
window.addEventListener("pageshow", stay);

function stay(): void {
  isLeft = false;
}
