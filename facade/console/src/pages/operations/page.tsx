import { useTitle } from "../../parts/title";
import { isAdministrator } from "../../shell/session";
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
      {!isAdministrator.value ? (
        <AdminSignIn />
      ) : (
        <>
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
