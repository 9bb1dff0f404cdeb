import { useRoute } from "preact-iso";
import { useEffect, useMemo } from "preact/hooks";

import { Failure } from "../../parts/failure";
import { useLoaded } from "../../parts/loading";
import { editorWords } from "../../words/documents/editor";
import { documentsWords } from "../../words/documents/list";
import { listGroups } from "./articles";
import { OpenDocument } from "./document";
import { Editor } from "./editor";
import { DocumentList } from "./list";

export default function Documents() {
  const id = useRoute().params["id"] ?? "";
  return id === "" ? <DocumentList /> : <OneDocument key={id} id={id} />;
}

function OneDocument({ id }: { id: string }) {
  // Its text is read while its name is looked for.
  const document = useMemo(() => new OpenDocument(id), [id]);
  useEffect(() => {
    const controller = new AbortController();
    void document.follow(controller.signal);
    return () => controller.abort();
  }, [document]);
  const { data, error } = useLoaded(listGroups, []);
  const article = data?.flatMap((group) => group.articles).find((one) => one.outer_id === id);
  if (article !== undefined) return <Editor article={article} document={document} />;
  return (
    <>
      <h1>{documentsWords.title}</h1>
      <Failure error={error} />
      {data === undefined && error === undefined && <p role="status">{editorWords.opening}</p>}
      {data !== undefined && (
        <p>
          {documentsWords.unknown} <a href="/console/documents">{editorWords.all}</a>
        </p>
      )}
    </>
  );
}
