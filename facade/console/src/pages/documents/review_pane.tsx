// Comments on the document, and its pending suggestions.
import { useEffect, useState } from "preact/hooks";

import { ConfirmButton } from "../../parts/confirm";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { useLoaded } from "../../parts/loading";
import { reviewsWords as words } from "../../words/documents/reviews";
import { useDocument } from "./context";
import { type Comment, type Thread, authorName, readThreads } from "./reviews";
import { SuggestionCard } from "./suggestion_card";
import { holds } from "./types";

const EVERY_MS = 5000;

type Run = (path: string, body: object) => Promise<boolean>;

export function ReviewPane() {
  const { document: opened, suggestions } = useDocument();
  const [hasResolved, setResolved] = useState(false);
  const [error, setError] = useState<unknown>();
  const comments = useLoaded(
    (signal) => readThreads(opened.session, hasResolved, signal),
    [opened, hasResolved],
  );
  const { reload } = comments;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) reload();
    }, EVERY_MS);
    return () => clearInterval(timer);
  }, [reload]);

  /** Send a call about a comment, and return whether it was answered. */
  async function run(path: string, body: object): Promise<boolean> {
    setError(undefined);
    try {
      await opened.session.call(path, () => body);
      return true;
    } catch (failure) {
      setError(failure);
      return false;
    } finally {
      reload();
    }
  }

  const threads = comments.data ?? [];
  const pending = suggestions.pending.value;
  return (
    <section aria-labelledby="reviews" class="review-pane">
      <h2 id="reviews">{words.title}</h2>
      <NewComment run={run} />
      <Failure error={error ?? comments.error ?? suggestions.problem.value} />
      {pending.map((one) => (
        <SuggestionCard key={one.id} suggestion={one} />
      ))}
      {suggestions.hasMore.value && <p class="hint">{words.moreSuggestions}</p>}
      {threads.map((thread) => (
        <ThreadCard key={thread.id} thread={thread} run={run} />
      ))}
      {comments.data !== undefined && threads.length + pending.length === 0 && (
        <p class="hint">{words.none}</p>
      )}
      <label class="check">
        <input
          type="checkbox"
          checked={hasResolved}
          onChange={(event) => setResolved(event.currentTarget.checked)}
        />
        {words.showResolved}
      </label>
    </section>
  );
}

/** Return the selected block, and the words that were marked in it last. */
function useTarget(): { blockId: string; quote: string } {
  const { document: opened } = useDocument();
  const [marked, setMarked] = useState({ blockId: "", quote: "" });
  useEffect(() => {
    function look(): void {
      const selection = getSelection();
      const frame = selection?.anchorNode?.parentElement?.closest<HTMLElement>("[data-block]");
      const quote = selection?.toString().trim() ?? "";
      // A click into the form takes the selection away, but not what it is about.
      if (frame) setMarked({ blockId: frame.dataset["block"] ?? "", quote });
    }
    document.addEventListener("selectionchange", look);
    return () => document.removeEventListener("selectionchange", look);
  }, []);
  const blockId = opened.order.value.find((id) => opened.entry(id).isSelected.value) ?? "";
  return { blockId, quote: marked.blockId === blockId ? marked.quote : "" };
}

function NewComment({ run }: { run: Run }) {
  const { blockId, quote } = useTarget();
  const [text, setText] = useState("");
  if (blockId === "") {
    return <p class="hint">{words.selectFirst}</p>;
  }
  return (
    <form
      aria-label={words.form}
      onSubmit={async (event) => {
        event.preventDefault();
        const body = quote === "" ? { blockId, text } : { blockId, text, quote };
        if (await run("comment/add", body)) setText("");
      }}
    >
      <label>
        {quote === "" ? words.onBlock : words.onQuote(shortened(quote))}
        <textarea
          rows={2}
          maxLength={5000}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <button type="submit" disabled={text.trim() === ""}>
        {words.comment}
      </button>
    </form>
  );
}

function ThreadCard({ thread, run }: { thread: Thread; run: Run }) {
  const { document: opened } = useDocument();
  const [reply, setReply] = useState("");
  const commentId = thread.id;
  const holder = opened.order.value.find((id) =>
    holds(opened.entry(id).state.value?.block, thread.blockId),
  );
  return (
    <article class="review" aria-label={words.commentOf(authorName(thread))}>
      {thread.quote !== undefined && <blockquote>{shortened(thread.quote)}</blockquote>}
      {thread.orphaned && <p class="hint">{words.orphaned}</p>}
      {[thread, ...thread.replies].map((comment) => (
        <CommentText key={comment.id} comment={comment} />
      ))}
      <div class="actions">
        {holder !== undefined && (
          <button
            type="button"
            class="quiet"
            onClick={() => {
              opened.wanted.value = holder;
            }}
          >
            {words.show}
          </button>
        )}
        <button
          type="button"
          class="quiet"
          onClick={() => void run("comment/resolve", { commentId, resolved: !thread.resolved })}
        >
          {thread.resolved ? words.openAgain : words.resolve}
        </button>
        {thread.own && (
          <ConfirmButton
            label={words.remove}
            name={words.commentToRemove}
            question={words.removeQuestion}
            onConfirm={async () => {
              await run("comment/delete", { commentId });
            }}
          />
        )}
      </div>
      <form
        class="actions"
        aria-label={words.reply}
        onSubmit={async (event) => {
          event.preventDefault();
          if (await run("comment/reply", { commentId, text: reply })) setReply("");
        }}
      >
        <input
          aria-label={words.replyText}
          placeholder={words.reply}
          maxLength={5000}
          value={reply}
          onInput={(event) => setReply(event.currentTarget.value)}
        />
        <button type="submit" class="quiet" disabled={reply.trim() === ""}>
          {words.reply}
        </button>
      </form>
    </article>
  );
}

function CommentText({ comment }: { comment: Comment }) {
  return (
    <>
      <p class="hint">
        {authorName(comment)} · {when(comment.time / 1000)}
      </p>
      <p class="said">{comment.text || words.erased}</p>
    </>
  );
}

function shortened(text: string): string {
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}
