// Styles of documents as styles of elements.
import type { Css } from "./types";

const PLAIN_NUMBERS = new Set(["fontWeight", "lineHeight"]);
// What may be taken over as it is. Colours go through the style sheet, which keeps them legible on
// dark pages.
const TAKEN = [
  "fontFamily",
  "fontSize",
  "fontWeight",
  "lineHeight",
  "letterSpacing",
  "justifyContent",
  "marginTop",
  "marginBottom",
  "width",
  "borderStyle",
  "borderWidth",
  "borderRadius",
  "borderColor",
  "columnGap",
  "rowGap",
  "gap",
  "alignItems",
];

export type Look = Record<string, string>;

/** Return the style of an element that CSS of a document asks for. */
export function look(css: Css | undefined): Look {
  const made: Look = {};
  for (const key of TAKEN) {
    const value = css?.[key];
    if (value !== undefined && value !== null) made[key] = length(value, key);
  }
  if (css?.["color"] !== undefined) made["--ink"] = String(css["color"]);
  if (css?.["backgroundColor"] !== undefined) made["--fill"] = String(css["backgroundColor"]);
  return made;
}

/** Return the classes that go with a style's colours. */
export function colours(css: Css | undefined): string {
  const ink = css?.["color"] === undefined ? "" : " inked";
  return css?.["backgroundColor"] === undefined ? ink : `${ink} filled`;
}

/** Return a value as CSS has it: a number is one of pixels, where the property has a unit. */
export function length(value: unknown, key = "width"): string {
  return typeof value === "number" && !PLAIN_NUMBERS.has(key) ? `${value}px` : String(value);
}
