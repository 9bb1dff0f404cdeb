// Lists of the page: cards, what is shown where there are none, and a button for more.
import type { ComponentChildren } from "preact";

import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { MoreButton } from "../../parts/more_button";
import type { Paged } from "../../parts/paged";

interface Properties<T> {
  list: Paged<T>;
  /** Of an action on the whole list. */
  error?: unknown;
  title: string;
  more: string;
  none: string;
  noneHint?: string | undefined;
  /** Between the failure and the cards. */
  search?: ComponentChildren;
  children: (item: T) => ComponentChildren;
}

export function CardList<T extends { id: string }>(properties: Properties<T>) {
  const { list, error, title, more, none, noneHint, search, children } = properties;
  return (
    <>
      <Failure error={error ?? list.error} />
      {search}
      {list.isLoaded && list.items.length === 0 && (
        <Empty title={none}>{noneHint !== undefined && <p>{noneHint}</p>}</Empty>
      )}
      <ul class="cards" aria-label={title}>
        {list.items.map((item) => (
          <li key={item.id}>{children(item)}</li>
        ))}
      </ul>
      <MoreButton list={list} label={more} />
    </>
  );
}

/** A button of a card that opens and closes a part of it. */
export function Toggle({
  label,
  name,
  isOpen,
  onClick,
}: {
  label: string;
  name: string;
  isOpen: boolean;
  onClick: () => void;
}) {
  return (
    <button type="button" class="quiet" aria-expanded={isOpen} onClick={onClick}>
      {label}
      <span class="visually-hidden"> {name}</span>
    </button>
  );
}
