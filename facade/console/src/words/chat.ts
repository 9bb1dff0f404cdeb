// English texts of the chat.
import { exact } from "../parts/units";

export const chatWords = {
  title: "Chat",
  versions: {
    of: (name: string) => `Versions of ${name}`,
    place: (number: number, count: number) => `Version ${exact(number)} of ${exact(count)}`,
    previous: "Previous version",
    next: "Next version",
    message: "this message",
    answer: "this answer",
  },
  comparison: {
    title: "Answers beside one another",
    answer: (model: string) => `Answer of ${model}`,
    choose: "Continue with this answer",
    of: (model: string) => `of ${model}`,
    repeat: "Ask again",
    hint: "Choose the answer to continue with.",
    add: "Compare with another model",
    remove: "Remove",
    model: (number: number) => `Model ${exact(number)}`,
  },
  presets: {
    title: "Preset",
    none: "none",
    noneYet: "none yet",
    name: "Save these parameters as",
    save: "Save preset",
    remove: "Delete preset",
    tooMany: (count: number) => `There are ${exact(count)} presets already. Delete one first.`,
    noRoom: "This browser has no more room for presets.",
  },
  images: {
    alt: "Image of the model",
    save: "Save image",
    file: "image",
    elsewhere: "Image on another site",
    gone: "There was an image, which only the tab that received it had.",
  },
  tools: {
    calls: "Calls",
    called: "Called",
    result: "Result",
    resultOf: (name: string) => `Result of ${name}`,
    giveResult: "Return the result",
    waiting: "The model waits for the results of its calls.",
  },
} as const;
