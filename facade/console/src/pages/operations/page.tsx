import { useTitle } from "../../parts/title";
import { adminKey, forgetAdminKey } from "../../shell/session";
import { ActivityCharts } from "./activity";
import { AdminSignIn } from "./admin_sign_in";
import { Keys } from "./keys";
import { ProviderHealth } from "./providers";
import { Requests } from "./requests";
import { SubjectLimits } from "./subjects";
import { Tags } from "./tags";

export default function Operations() {
  useTitle("Operations");
  return (
    <>
      <h1>Operations</h1>
      {adminKey.value === "" ? (
        <AdminSignIn />
      ) : (
        <>
          <p class="actions">
            <button type="button" class="quiet" onClick={() => forgetAdminKey()}>
              Forget the admin key
            </button>
          </p>
          <ProviderHealth />
          <ActivityCharts />
          <Tags />
          <Requests />
          <SubjectLimits />
          <Keys />
        </>
      )}
    </>
  );
}
