// The user's documents, by groups.
import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";

import { ConfirmButton } from "../../parts/confirm";
import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { useLoaded } from "../../parts/loading";
import { useTitle } from "../../parts/title";
import { loadDocuments } from "../../shell/recent_documents";
import { words } from "../../words/common";
import { documentsWords as text } from "../../words/documents/list";
import { createArticle, deleteArticle, listGroups } from "./articles";
import type { Article, ArticleGroup } from "./types";

export function DocumentList() {
  useTitle(text.title);
  const groups = useLoaded(listGroups, []);
  const { data, error } = groups;
  const isEmpty = data?.every((group) => group.articles.length === 0);
  return (
    <>
      <h1>{text.title}</h1>
      <NewDocument groups={data ?? []} />
      <Failure error={error} />
      {data === undefined && error === undefined && <p role="status">{words.loading}</p>}
      {isEmpty && (
        <Empty title={text.none}>
          <p>{text.noneHint}</p>
        </Empty>
      )}
      {data?.map(
        (group) =>
          group.articles.length > 0 && (
            <section key={group.group_id} aria-label={group.name}>
              {data.length > 1 && <h2>{group.name}</h2>}
              <ul class="cards">
                {group.articles.map((article) => (
                  <li key={article.outer_id}>
                    <Card article={article} onDeleted={groups.reload} />
                  </li>
                ))}
              </ul>
            </section>
          ),
      )}
    </>
  );
}

function NewDocument({ groups }: { groups: ArticleGroup[] }) {
  const { route } = useLocation();
  const [error, setError] = useState<unknown>();

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const entered = new FormData(event.currentTarget as HTMLFormElement);
    setError(undefined);
    try {
      const name = String(entered.get("name") ?? "").trim();
      const article = await createArticle(name, Number(entered.get("group") ?? 0));
      void loadDocuments();
      route(`/console/documents/${article.outer_id}`);
    } catch (failure) {
      setError(failure);
    }
  }

  return (
    <>
      <form class="actions" aria-label={text.form} onSubmit={(event) => void submit(event)}>
        <label>
          {text.name}
          <input name="name" maxLength={200} placeholder={text.untitled} />
        </label>
        {groups.length > 1 && (
          <label>
            {text.group}
            <select name="group">
              {groups.map((group) => (
                <option key={group.group_id} value={String(group.group_id)}>
                  {group.name}
                </option>
              ))}
            </select>
          </label>
        )}
        <button type="submit">{text.create}</button>
      </form>
      <Failure error={error} />
    </>
  );
}

function Card({ article, onDeleted }: { article: Article; onDeleted: () => void }) {
  return (
    <article aria-label={article.name}>
      <h2>
        <a href={`/console/documents/${encodeURIComponent(article.outer_id)}`}>{article.name}</a>
      </h2>
      <p class="hint">
        {when(article.time_create)} · <code>{article.outer_id}</code>
      </p>
      <ConfirmButton
        label={text.remove}
        name={article.name}
        question={text.removeQuestion(article.name)}
        onConfirm={async () => {
          await deleteArticle(article.outer_id);
          void loadDocuments();
          onDeleted();
        }}
      />
    </article>
  );
}
