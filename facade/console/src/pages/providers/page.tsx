// Providers, their keys and health, and the models that they offer.
import { useLocation } from "preact-iso";

import { Segments } from "../../parts/segments";
import { useTitle } from "../../parts/title";
import { administersAll } from "../../shell/session";
import { providersWords } from "../../words/providers";
import { AdminSignIn } from "../../admin/sign_in";
import { ModelTable } from "./model_table";
import { ProviderList } from "./provider_list";

const TABS = { providers: ProviderList, models: ModelTable };
type Tab = keyof typeof TABS;
const text = providersWords;

export default function Providers() {
  useTitle(text.title);
  const { query, path, route } = useLocation();
  const tab: Tab = query["tab"] === "models" ? "models" : "providers";
  const Shown = TABS[tab];
  return (
    <>
      <div class="page-head">
        <h1>{text.title}</h1>
        {administersAll.value && (
          <Segments
            label={text.tabs.label}
            choices={text.tabs.choices}
            value={tab}
            onChange={(now) => route(now === "providers" ? path : `${path}?tab=${now}`)}
          />
        )}
      </div>
      {administersAll.value ? <Shown /> : <AdminSignIn />}
    </>
  );
}
