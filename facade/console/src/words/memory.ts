// English texts of the page of memory.
import { exact, hundredths } from "../parts/formats";
import { plural } from "./plural";

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

// What a fact says, by its topic and sub-topic, or by its topic alone.
const FACTS: Readonly<Record<string, (value: string, sub: string) => string>> = {
  "name/name": (value) => `Your name is ${value}.`,
  "name/preferred name": (value) => `You like to be called ${value}.`,
  "name/pronouns": (value) => `Your pronouns are ${value}.`,
  "age/age": (value) => `Your age is ${value}.`,
  "birthday/date": (value) => `Your birthday is ${value}.`,
  "birthday/year": (value) => `You were born in ${value}.`,
  "home/birthplace": (value) => `You were born in ${value}.`,
  "home/place": (value) => `You live in ${value}.`,
  "home/origin": (value) => `You come from ${value}.`,
  "work/employer": (value) => `You work for ${value}.`,
  "work/place": (value) => `You work in ${value}.`,
  "work/role": (value) => `Your work: ${value}.`,
  "work/studies": (value) => `You study ${value}.`,
  "family/status": (value) => `You are ${value}.`,
  "diet/diet": (value) => `Your diet: ${value}.`,
  family: (value, sub) => `Your ${sub}: ${value}.`,
  pets: (value, sub) => `Your ${sub}: ${value}.`,
  allergies: (value, sub) =>
    value === "allergic" ? `You are allergic to ${sub}.` : `Your allergy, ${sub}: ${value}.`,
  projects: (value, sub) => `Your project ${sub}: ${value}.`,
};
const VERBS: Readonly<Record<string, string>> = {
  likes: "You like",
  prefers: "You prefer",
  dislikes: "You dislike",
  speaks: "You speak",
  learning: "You are learning",
};

function factSentence(topic: string, sub: string, value: string): string {
  const verb = topic === "preferences" || topic === "languages" ? VERBS[value] : undefined;
  if (verb !== undefined) return `${verb} ${sub}.`;
  const said = FACTS[`${topic}/${sub}`] ?? FACTS[topic];
  if (said !== undefined) return said(value, sub);
  return topic === sub ? `${capital(topic)}: ${value}.` : `${capital(topic)}, ${sub}: ${value}.`;
}

export const memoryWords = {
  title: "Memory",
  conversations: "Conversations",
  all: "All conversations",
  none: "Nothing is remembered yet",
  noneHint:
    "Name a memory in the parameters of a chat, or send requests with a memory_id from your program: the gateway keeps the conversation under it.",
  more: "More conversations",
  turnsUsed: (turns: number, at: string) => `${plural(turns, "turn", "turns")} · used ${at}`,
  turnsSince: (turns: number, at: string) => `${plural(turns, "turn", "turns")} since ${at}`,
  states: { idle: "saved", writing: "being written", summarising: "being summarised" },
  pending: (turns: number) => `${plural(turns, "turn waits", "turns wait")} to be processed`,
  degraded: "the last summary was made without a model",
  continue: "Continue in chat",
  remove: "Delete conversation",
  removeQuestion: (name: string) => `Delete the conversation ${name}, with its turns and its summary?`,
  summary: "Summary",
  noSummary: "There is none: all turns are still sent as they were.",
  newestFirst: "Turns, newest first",
  turns: "Turns",
  earlier: "Earlier turns",
  turn: (number: number) => `Turn ${exact(number)}`,
  open: "not ended",
  who: { user: "User", assistant: "Assistant" },
  call: (name: string) => `Call of ${name}`,
  toolError: "Error of a tool",
  toolResult: "Result of a tool",
  search: {
    title: "Search",
    label: "Search in earlier turns",
    none: "Nothing of the earlier turns matches.",
    results: "Results",
    of: (turn: number, at: string, score: number) =>
      `Turn ${exact(turn)} · ${at} · score ${hundredths(score)}`,
  },
  profile: {
    title: "What is known about you",
    facts: "Facts",
    none: "Nothing is known about you yet",
    noneHint: "Facts appear here once you have told some in a remembered conversation.",
    sentence: factSentence,
    about: (topic: string, sub: string) => (topic === sub ? capital(topic) : `${capital(topic)}, ${sub}`),
    since: (at: string) => `since ${at}`,
    source: (name: string, turn: number) => `${name}, turn ${exact(turn)}`,
    edit: "Correct",
    save: "Save",
    cancel: "Cancel",
    remove: "Forget",
    removeQuestion: (sentence: string) => `Forget this? “${sentence}”`,
    removeAll: "Forget everything",
    removeAllQuestion: "Forget all facts about you? Conversations stay.",
  },
} as const;
