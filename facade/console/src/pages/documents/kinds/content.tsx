// A block as readers see it.
import type { JSX } from "preact";

import { blocksWords } from "../../../words/documents/blocks";
import { tablesWords } from "../../../words/documents/tables";
import { colours, length, look } from "../look";
import { useDocument } from "../context";
import { type Block, type BlockState, type Css, elementsOf, isObject, leavesOf } from "../types";
import { Figure } from "./figure";
import { Formula } from "./formula";
import { Leaves } from "./leaves";

// Below the heading of the page itself, the document's name.
export const LEVELS: Record<string, keyof JSX.IntrinsicElements & ("h2" | "h3" | "h4" | "h5" | "h6")> = {
  title: "h2",
  h1: "h3",
  h2: "h4",
  h3: "h5",
  h4: "h6",
  h5: "h6",
  h6: "h6",
};
export const ABSTRACT_NAMES: Record<string, string> = { en: "Abstract", zh: "摘要" };

export function Content({ state }: { state: BlockState }) {
  const { block, style } = state;
  const css = style.style;
  const dress = { class: `kind-${block.type}${colours(css)}`, style: look(css) };
  switch (block.type) {
    case "title":
    case "h1":
    case "h2":
    case "h3":
    case "h4":
    case "h5":
    case "h6": {
      const Heading = LEVELS[block.type]!;
      return (
        <Heading {...dress} id={identifier(block)}>
          <Text block={block} />
        </Heading>
      );
    }
    case "quote":
      return (
        <blockquote {...dress}>
          <Text block={block} />
        </blockquote>
      );
    case "abstract":
      return (
        <p {...dress}>
          {ABSTRACT_NAMES[String(style["language"])] && (
            <strong>{ABSTRACT_NAMES[String(style["language"])]} </strong>
          )}
          <Text block={block} />
        </p>
      );
    case "label":
      return <Label block={block} style={style} dress={dress} />;
    case "list":
      return <List block={block} order={String(style["orderType"] ?? "disc")} dress={dress} />;
    case "table":
      return <Table state={state} dress={dress} />;
    case "equation":
      return (
        <div
          {...dress}
          id={identifier(block)}
          class={`${dress.class}${style["serial"] ? " serial" : ""}`}
        >
          {block.equation?.trim() ? (
            <Formula tex={block.equation} isBlock />
          ) : (
            <span class="hint">{blocksWords.emptyFormula}</span>
          )}
        </div>
      );
    case "code":
      return (
        <div {...dress} id={identifier(block)}>
          {block.language && !style["isHideLanguage"] && <p class="hint">{block.language}</p>}
          <pre>
            <code>{block.code}</code>
          </pre>
        </div>
      );
    case "image":
      return (
        <div
          id={identifier(block)}
          class={`${dress.class}${style["serial"] ? " serial" : ""}`}
          data-name={blocksWords.names["image"]}
        >
          <Figure state={state} />
          <Caption block={block} />
        </div>
      );
    case "author":
      return <Authors state={state} dress={dress} />;
    default:
      return (
        <p {...dress} class={`${dress.class}${style["indent"] ? " indent" : ""}`}>
          <Text block={block} />
        </p>
      );
  }
}

interface Dress {
  class: string;
  style: Record<string, string>;
}

/** Where references to a block lead. */
function identifier(block: Block): string | undefined {
  return block.label === undefined ? undefined : `block-${block.label}`;
}

function Caption({ block }: { block: Block }) {
  const name = useDocument().document.labels.value[block.label ?? ""];
  if (block.caption === undefined && name === undefined) return null;
  return (
    <p class="caption">
      {name && <strong>{name.text}. </strong>}
      <Leaves leaves={block.caption ?? []} />
    </p>
  );
}

function Text({ block }: { block: Block }) {
  const leaves = leavesOf(block);
  if (leaves.every((leaf) => leaf.text === "" && leaf.cite === undefined && !isObject(leaf))) return <span class="hint">{blocksWords.empty}</span>;
  return <Leaves leaves={leaves} />;
}

function Label({
  block,
  style,
  dress,
}: {
  block: Block;
  style: Record<string, unknown>;
  dress: Dress;
}) {
  const items = elementsOf(block);
  if (items.length === 0) {
    return (
      <p {...dress}>
        <Text block={block} />
      </p>
    );
  }
  const width = style["nameWidth"] === undefined ? {} : { "--names": length(style["nameWidth"]) };
  return (
    <dl {...dress} style={{ ...dress.style, ...width }}>
      {items.map((item) => (
        <div key={item.id}>
          <dt>{item.name}</dt>
          <dd>
            <Leaves leaves={leavesOf(item)} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function List({ block, order, dress }: { block: Block; order: string; dress?: Dress }) {
  const Tag = order === "disc" ? "ul" : "ol";
  const marks = { listStyleType: order };
  return (
    <Tag
      class={dress?.class}
      style={{ ...dress?.style, ...marks }}
      {...(Tag === "ol" ? { start: block.start } : {})}
    >
      {elementsOf(block).map((item) => (
        <li key={item.id}>
          <Leaves leaves={leavesOf(item)} />
          {elementsOf(item).map((nested) => (
            <List
              key={nested.id}
              block={nested}
              order={String(nested.style?.["orderType"] ?? "disc")}
            />
          ))}
        </li>
      ))}
    </Tag>
  );
}

function Table({ state, dress }: { state: BlockState; dress: Dress }) {
  const { block, style } = state;
  const cell: Record<string, string> = {};
  if (style["textAlign"] !== undefined) cell["textAlign"] = String(style["textAlign"]);
  if (style["verticalAlign"] !== undefined) {
    cell["verticalAlign"] = VERTICAL[String(style["verticalAlign"])] ?? "";
  }
  if (style["padding"] !== undefined) cell["padding"] = length(style["padding"]);
  const columns = alignments(block);
  return (
    <div class="scroll" id={identifier(block)} tabIndex={0} role="region" aria-label={tablesWords.table}>
      <table
        {...dress}
        class={`${dress.class}${style["firstColBold"] ? " first-column" : ""}`}
      >
        <tbody>
          {elementsOf(block).map((row, place) => (
            <tr key={row.id}>
              {elementsOf(row).map((one) => {
                const Cell = place === 0 ? "th" : "td";
                const align = columns.get(one.id);
                return (
                  <Cell
                    key={one.id}
                    colSpan={one.colSpan}
                    rowSpan={one.rowSpan}
                    style={{
                      ...cell,
                      ...(align ? { textAlign: align } : {}),
                      ...look(one.style?.style as Css | undefined),
                    }}
                  >
                    <Leaves leaves={leavesOf(one)} />
                  </Cell>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      <Caption block={block} />
    </div>
  );
}

/** The alignment of each cell, by its id. */
function alignments(block: Block): ReadonlyMap<string, string> {
  const made = new Map<string, string>();
  if (block.align === undefined) return made;
  const taken: number[] = [];
  elementsOf(block).forEach((row, y) => {
    let x = 0;
    for (const one of elementsOf(row)) {
      while ((taken[x] ?? 0) > y) x += 1;
      const align = block.align?.[x];
      if (align) made.set(one.id, align);
      for (let column = 0; column < (one.colSpan ?? 1); column += 1) {
        taken[x + column] = y + (one.rowSpan ?? 1);
      }
      x += one.colSpan ?? 1;
    }
  });
  return made;
}

const VERTICAL: Record<string, string> = {
  top: "top",
  start: "top",
  middle: "middle",
  center: "middle",
  bottom: "bottom",
  end: "bottom",
};

function Authors({ state, dress }: { state: BlockState; dress: Dress }) {
  const { author = [], institution = [] } = state.block;
  const numbers = new Map(institution.map((one, place) => [one.id ?? place + 1, place + 1]));
  const names = state.style["authorStyle"] as Css | undefined;
  const places = state.style["institutionStyle"] as Css | undefined;
  return (
    <div {...dress}>
      <p class={`names${colours(names)}`} style={look(names)}>
        {author.length === 0 && <span class="hint">{blocksWords.noAuthors}</span>}
        {author.map((one, place) => (
          <span key={place}>
            {one.name}
            <sup>
              {(one.institutionIds ?? [one.institutionId ?? 0])
                .map((id) => numbers.get(id))
                .filter((number) => number !== undefined)
                .join(",")}
              {one.isStar && "*"}
            </sup>
            {one.orcid && <small> {one.orcid}</small>}
            {one.email && <small> {one.email}</small>}
          </span>
        ))}
      </p>
      {institution.map((one, place) => (
        <p key={place} class={`institution${colours(places)}`} style={look(places)}>
          <sup>{place + 1}</sup> {one.name}
        </p>
      ))}
    </div>
  );
}
