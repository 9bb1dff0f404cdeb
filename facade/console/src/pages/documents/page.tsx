import { useRoute } from "preact-iso";

import { Failure } from "../../parts/failure";
import { useLoaded } from "../../parts/loading";
import { listGroups } from "./articles";
import { Editor } from "./editor";
import { DocumentList } from "./list";

export default function Documents() {
  const id = useRoute().params["id"] ?? "";
  const groups = useLoaded(listGroups, [id]);
  if (id === "") return <DocumentList groups={groups} />;
  const articles = groups.data?.flatMap((group) => group.articles);
  const article = articles?.find((one) => one.outer_id === id);
  if (article !== undefined) return <Editor key={id} docId={id} name={article.name} />;
  return (
    <>
      <h1>Documents</h1>
      <Failure error={groups.error} />
      {groups.isLoading && <p role="status">Opening…</p>}
      {articles !== undefined && !groups.isLoading && (
        <p>
          There is no such document. <a href="/console/documents">All documents</a>
        </p>
      )}
    </>
  );
}
