// Branches of a chat: each edit of an earlier message, and each further answer to one, begins a branch
// and leaves the others as they are.
import type { Turn } from "./conversation";

export interface Branch {
  /** Of this tab alone. */
  key: string;
  /** Id of the conversation that it is stored as; "" before. */
  conversation: string;
  /** Id of the conversation that the chat began with; "" before it is stored. */
  root: string;
  /** Key of the branch that it left; "" for the first one. */
  parent: string;
  /** How many turns it shares with that branch. */
  at: number;
  /** The model that was asked last. */
  model: string;
  /** Undefined until they have been loaded; those of the branch that is shown are elsewhere. */
  turns?: readonly Turn[];
}

export const FIRST: Branch = {
  key: "first",
  conversation: "",
  root: "",
  parent: "",
  at: 0,
  model: "",
};

export function branchOf(branches: readonly Branch[], key: string): Branch | undefined {
  return branches.find((branch) => branch.key === key);
}

/** Return the branch that a turn of a branch belongs to: itself, or one that it has left later. */
export function ownerOf(branches: readonly Branch[], key: string, index: number): Branch {
  let branch = branchOf(branches, key) ?? FIRST;
  // Branches of a chat that another program has written may name one another.
  for (let left = branches.length; left > 0 && index < branch.at; left -= 1) {
    branch = branchOf(branches, branch.parent) ?? FIRST;
  }
  return branch;
}

/** Return the branch that a new one leaves, of a turn of a branch that it replaces. */
export function parentOf(branches: readonly Branch[], key: string, index: number): Branch {
  const owner = ownerOf(branches, key, index);
  // A third version of a turn leaves what the second one left.
  return owner.at === index ? (branchOf(branches, owner.parent) ?? owner) : owner;
}

/** Return the branches with other versions of a turn, itself included, the oldest first. */
export function versionsOf(branches: readonly Branch[], key: string, index: number): Branch[] {
  const parent = parentOf(branches, key, index);
  return [
    parent,
    ...branches.filter((branch) => branch.parent === parent.key && branch.at === index),
  ];
}
