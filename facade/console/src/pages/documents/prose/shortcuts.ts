// Markdown that becomes what it means while it is typed.
import { InputRule, inputRules } from "prosemirror-inputrules";
import type { MarkType } from "prosemirror-model";

import { withKind } from "./commands";
import { schema } from "./schema";

const { prose, formula } = schema.nodes;
const { marks } = schema;

/** Return a rule by which signs at the start of a paragraph change what it is. */
function begins(pattern: RegExp, kindOf: (match: RegExpMatchArray) => [string, string?]): InputRule {
  return new InputRule(pattern, (state, match, start, end) => {
    const { $from } = state.selection;
    if ($from.parent.type !== prose) return null;
    return withKind(state.tr.delete(start, end), ...kindOf(match)) ?? null;
  });
}

/** Return a rule by which signs around a text become a mark of it. */
function wraps(pattern: RegExp, type: MarkType): InputRule {
  return new InputRule(pattern, (state, match, start, end) => {
    const [all, text] = [match[0], match[1]!];
    const from = start + all.indexOf(text);
    const to = from + text.length;
    const { tr } = state;
    if (to < end) tr.delete(to, end);
    if (from > start) tr.delete(start, from);
    tr.addMark(start, start + text.length, type.create());
    return tr.removeStoredMark(type);
  });
}

// As in Pandoc, a dollar in front of or behind a space is one.
const FORMULA = /\$([^\s$](?:[^$]*[^\s$])?)\$$/;

export const INLINE_RULES = [
  wraps(/(?:\*\*)([^*\s](?:[^*]*[^*\s])?)\*\*$/, marks["strong"]!),
  wraps(/(?<![*\w])\*([^*\s](?:[^*]*[^*\s])?)\*$/, marks["em"]!),
  wraps(/~~([^~\s](?:[^~]*[^~\s])?)~~$/, marks["strike"]!),
  wraps(/`([^`]+)`$/, marks["code"]!),
  new InputRule(FORMULA, (state, match, start, end) =>
    // Of what is no text there is but one sign for each.
    match[1]!.includes("\ufffc")
      ? null
      : state.tr.replaceWith(start, end, formula!.create({ tex: match[1] })),
  ),
];

export const shortcuts = inputRules({
  rules: [
    begins(/^(#{1,6}) $/, (match) => [`h${match[1]!.length}`]),
    begins(/^> $/, () => ["quote"]),
    begins(/^[-*] $/, () => ["list"]),
    begins(/^1[.)] $/, () => ["list", "decimal"]),
    ...INLINE_RULES,
  ],
});

export const inlineShortcuts = inputRules({ rules: INLINE_RULES });
