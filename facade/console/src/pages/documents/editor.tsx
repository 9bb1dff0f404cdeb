// An open document: its blocks, the Markdown beside them, and its references.
import { signal } from "@preact/signals";
import type { EditorView } from "prosemirror-view";
import type { ComponentChildren } from "preact";
import { useLocation } from "preact-iso";
import { useEffect, useMemo, useState } from "preact/hooks";

import { useActions } from "../../parts/actions";
import { Failure } from "../../parts/failure";
import { useTitle } from "../../parts/title";
import { editorWords as text } from "../../words/documents/editor";
import { isFinal } from "./articles";
import { Assistant } from "./assist/assistant";
import { BlockTools } from "./block_tools";
import { CITATION_STYLES } from "./citations";
import { ShareDocument, useDocument } from "./context";
import type { OpenDocument } from "./document";
import { Edits } from "./edits";
import { FindBar } from "./find_bar";
import { HistoryPane } from "./history_pane";
import { InsertMenu, insertBelow } from "./insert_menu";
import { MarkdownPane } from "./markdown_pane";
import { DocumentProperties } from "./properties";
import { Sheet } from "./prose/sheet";
import { SaveState } from "./prose/save_state";
import { Sync } from "./prose/sync";
import { References } from "./references";
import { ReviewPane } from "./review_pane";
import { ShareButton } from "./share";
import { Presence } from "./presence";
import { Suggestions } from "./suggestions";
import { ExportMenu, ImportButton, LostList } from "./transfers";
import type { Article, Lost } from "./types";

const CITATIONS_KEY = "gateway.citations";
const WIDE = "(min-width: 70rem)";

// What can be shown beside the document.
const PANES = ["markdown", "comments", "history"] as const;
type PaneName = (typeof PANES)[number];

export function Editor({ article, document }: { article: Article; document: OpenDocument }) {
  const [current, setCurrent] = useState(article);
  useTitle(current.name);
  const shared = useMemo(() => {
    const chosen = CITATION_STYLES[sessionStorage.getItem(CITATIONS_KEY) ?? ""];
    const citations = signal(chosen ?? CITATION_STYLES["numbers"]!);
    const edits = new Edits(document);
    const written = signal<EditorView | undefined>(undefined);
    const focused = signal<EditorView | undefined>(undefined);
    const sync = new Sync(document, edits);
    const suggestions = new Suggestions(edits);
    const assistant = new Assistant(document, edits, suggestions, written, () => article.name);
    const lost = signal<readonly Lost[]>([]);
    const changes = signal(0);
    const shown = { citations, text: written, focused, lost, changes };
    return { document, edits, sync, suggestions, assistant, ...shown };
  }, [document]);
  const [panes, setPanes] = useState<ReadonlySet<PaneName>>(
    () => new Set(matchMedia(WIDE).matches ? ["markdown"] : []),
  );
  useEffect(() => () => shared.assistant.leave(), [shared]);
  useEffect(() => shared.suggestions.follow(), [shared]);
  return (
    <ShareDocument value={shared}>
      <h1>{current.name}</h1>
      <Presence />
      <Bar
        panes={panes}
        onPane={(name) => {
          const shown = new Set(panes);
          if (!shown.delete(name)) shown.add(name);
          setPanes(shown);
        }}
      >
        <ShareButton article={current} onChanged={setCurrent} />
      </Bar>
      <Panes panes={panes} />
    </ShareDocument>
  );
}

function Bar({
  panes,
  onPane,
  children,
}: {
  panes: ReadonlySet<PaneName>;
  onPane: (name: PaneName) => void;
  children: ComponentChildren;
}) {
  const shared = useDocument();
  const { document, edits } = shared;
  const { route } = useLocation();
  const { error, run } = useActions();
  const [hasProperties, setProperties] = useState(false);
  const [hasFind, setFind] = useState(false);
  const setLost = (lost: readonly Lost[]) => {
    shared.lost.value = lost;
  };

  const problem = document.problem.value;
  return (
    <>
      <div class="actions document-bar" role="toolbar" aria-label={text.bar}>
        <a href="/console/documents">{text.all}</a>
        <SaveState />
        <InsertMenu
          label={text.addAtEnd}
          isBusy={!document.isOpen.value}
          onChoose={(block) =>
            run(() => insertBelow(shared, document.order.value.at(-1) ?? "", block))
          }
        />
        <button
          type="button"
          class="quiet"
          disabled={edits.undoable.value === ""}
          title={edits.undoable.value && text.undoOf(edits.undoable.value)}
          onClick={() => void edits.attempt(() => edits.undo())}
        >
          {text.undo}
        </button>
        <button
          type="button"
          class="quiet"
          disabled={edits.redoable.value === ""}
          title={edits.redoable.value && text.redoOf(edits.redoable.value)}
          onClick={() => void edits.attempt(() => edits.redo())}
        >
          {text.redo}
        </button>
        <button type="button" class="quiet" aria-pressed={hasFind} onClick={() => setFind(!hasFind)}>
          {text.find}
        </button>
        <ExportMenu onLost={setLost} onRun={run} />
        <ImportButton onLost={setLost} onRun={run} />
        <button
          type="button"
          class="quiet"
          aria-expanded={hasProperties}
          onClick={() => setProperties(!hasProperties)}
        >
          {text.style}
        </button>
        {PANES.map((name) => (
          <button
            key={name}
            type="button"
            class="quiet"
            aria-pressed={panes.has(name)}
            onClick={() => onPane(name)}
          >
            {text.panes[name]}
          </button>
        ))}
        {children}
        <button
          type="button"
          class="quiet"
          onClick={() =>
            void run(async () => {
              await edits.before();
              await document.session.end();
              route("/console/documents");
            })
          }
        >
          {text.close}
        </button>
      </div>
      {hasFind && <FindBar onClose={() => setFind(false)} />}
      <Failure error={error} />
      <Failure error={edits.failure.value} />
      <Failure error={problem} />
      {problem !== undefined && !isFinal(problem) && (
        <p class="hint" role="status">
          {text.retrying}
        </p>
      )}
      <LostList lost={shared.lost.value} onClose={() => setLost([])} />
      {hasProperties && <DocumentProperties />}
    </>
  );
}

function Panes({ panes }: { panes: ReadonlySet<PaneName> }) {
  const { document, citations } = useDocument();
  const style = Object.keys(CITATION_STYLES).find(
    (key) => CITATION_STYLES[key] === citations.value,
  );
  if (!document.isOpen.value) {
    return document.problem.value === undefined ? <p role="status">{text.opening}</p> : null;
  }
  return (
    <div class={panes.size > 0 ? "panes" : undefined}>
      <div>
        <Sheet />
        <BlockTools />
        <References
          style={style ?? "numbers"}
          onStyle={(chosen) => {
            sessionStorage.setItem(CITATIONS_KEY, chosen);
            citations.value = CITATION_STYLES[chosen] ?? citations.value;
          }}
        />
      </div>
      {panes.size > 0 && (
        <div class="beside">
          {panes.has("history") && <HistoryPane />}
          {panes.has("comments") && <ReviewPane />}
          {panes.has("markdown") && <MarkdownPane />}
        </div>
      )}
    </div>
  );
}
