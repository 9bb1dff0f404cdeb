// Icons of the pages, drawn in a square of 24.
const PATHS = {
  chat: "M4 5h16v11H10l-5 4v-4H4z",
  history: "M5 6h14M5 12h14M5 18h9",
  document: "M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6",
  file: "M3 6h6l2 2h10v11H3z",
  memory: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4l3 2",
  usage: "M5 19V11M12 19V5M19 19v-6",
  requests: "M4 6h3M10 6h10M4 12h3M10 12h10M4 18h3M10 18h7",
  people: "M9 5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM3 20a6 6 0 0 1 12 0M15.5 5.5a3.3 3.3 0 0 1 0 6.3M17 14.5a6 6 0 0 1 4 5.5",
  operations: "M3 12h4l3-7 4 14 3-7h4",
  menu: "M4 7h16M4 12h16M4 17h16",
  plus: "M12 5v14M5 12h14",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
