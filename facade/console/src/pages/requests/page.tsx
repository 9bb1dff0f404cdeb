// The log of requests: everyone their own, administrators all; and one request by its id.
import { useLocation, useRoute } from "preact-iso";
import { useEffect, useState } from "preact/hooks";

import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { useLoaded } from "../../parts/loading";
import { Pager, usePages } from "../../parts/pager";
import { Segments } from "../../parts/segments";
import { useTitle } from "../../parts/title";
import { words } from "../../words/common";
import { requestsWords } from "../../words/requests";
import type { Scope } from "../../admin/scope";
import { administersAll, mayAdministerAll } from "../../shell/session";
import { AdminSignIn } from "../../admin/sign_in";
import { listUsers } from "../people/accounts";
import { RequestPage } from "./details";
import { Filters, toQuery, useFilters } from "./filters";
import { listRequests } from "./log";
import { RequestTable } from "./table";

const TAIL_MS = 2000;
const text = requestsWords;

export default function Requests() {
  const { params } = useRoute();
  const { query } = useLocation();
  const scope: Scope = query["scope"] === "everyone" ? "everyone" : "mine";
  const id = params["id"] ?? "";
  if (scope === "everyone" && !administersAll.value) {
    return (
      <>
        <Head scope={scope} />
        <AdminSignIn />
      </>
    );
  }
  return id === "" ? <Log key={scope} scope={scope} /> : <RequestPage scope={scope} id={id} />;
}

function Head({ scope }: { scope: Scope }) {
  useTitle(text.title);
  const { path, route } = useLocation();
  return (
    <div class="page-head">
      <h1>{text.title}</h1>
      {mayAdministerAll.value && (
        <Segments
          label={words.scope.label}
          choices={words.scope.choices}
          value={scope}
          onChange={(now) => route(now === "mine" ? path : `${path}?scope=${now}`)}
        />
      )}
    </div>
  );
}

function Log({ scope }: { scope: Scope }) {
  const { values, isFiltered } = useFilters();
  const [isTailed, setTailed] = useState(false);
  const users = useUsers(scope);
  const pages = usePages(
    (cursor, signal) => listRequests(scope, toQuery(values, Date.now()), cursor, signal),
    [scope, values],
  );
  const isFirst = pages.number === 1;
  const { reload } = pages;
  useEffect(() => {
    if (!isTailed || !isFirst) return;
    const timer = setInterval(() => {
      if (!document.hidden) reload();
    }, TAIL_MS);
    return () => clearInterval(timer);
  }, [isTailed, isFirst]);
  return (
    <>
      <Head scope={scope} />
      <Filters scope={scope} users={users} />
      <div class="actions list-head">
        <label class="check">
          <input
            type="checkbox"
            checked={isTailed && isFirst}
            disabled={!isFirst}
            onChange={(event) => setTailed(event.currentTarget.checked)}
          />
          {text.tail}
        </label>
        <button type="button" class="quiet small" onClick={reload}>
          {words.refresh}
        </button>
      </div>
      <Failure error={pages.error} />
      {pages.isLoaded && pages.items.length === 0 && (
        <Nothing isFiltered={isFiltered} isMore={pages.forward !== undefined} />
      )}
      {pages.items.length > 0 && (
        <RequestTable requests={pages.items} users={users} scope={scope} />
      )}
      <Pager pages={pages} label={text.pages} />
    </>
  );
}

function Nothing({ isFiltered, isMore }: { isFiltered: boolean; isMore: boolean }) {
  if (isMore) return <Empty title={text.noneYet}><p>{text.noneYetHint}</p></Empty>;
  if (isFiltered) return <Empty title={text.noneFound}><p>{text.noneFoundHint}</p></Empty>;
  return (
    <Empty title={text.none}>
      <p>
        {text.noneHint[0]} <a href="/console">{text.noneHint[1]}</a>
        {text.noneHint[2]} <code>request_log.enabled</code>.
      </p>
    </Empty>
  );
}

/** Return the names of users by their ids, as far as the first page of their list has them. */
function useUsers(scope: Scope): ReadonlyMap<string, string> {
  const { data } = useLoaded(
    async (signal) => {
      if (scope === "mine") return new Map<string, string>();
      const { items } = await listUsers({ limit: "1000" }, "", signal);
      return new Map(items.map(({ id, name }) => [id, name] as const));
    },
    [scope],
  );
  return data ?? new Map<string, string>();
}
