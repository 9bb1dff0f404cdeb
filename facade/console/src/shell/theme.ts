// Light or dark, as chosen in this browser; else as the system has it.
import { effect, signal } from "@preact/signals";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "gateway.theme";

export const theme = signal<Theme>(stored());

/** Apply the chosen theme, and every later choice. */
export function followTheme(): void {
  effect(() => {
    if (theme.value === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme.value;
  });
}

export function chooseTheme(chosen: Theme): void {
  theme.value = chosen;
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // A browser that stores nothing forgets the choice with the page.
  }
}

function stored(): Theme {
  try {
    const text = localStorage.getItem(KEY);
    return THEMES.find((one) => one === text) ?? "system";
  } catch {
    return "system";
  }
}
