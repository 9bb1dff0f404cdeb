import { useTitle } from "../../parts/title";
import { administersAll } from "../../shell/session";
import { AdminSignIn } from "../operations/admin_sign_in";
import { ProviderHealth } from "../operations/providers";

export default function Providers() {
  useTitle("Providers");
  return (
    <>
      <h1>Providers</h1>
      {administersAll.value ? <ProviderHealth /> : <AdminSignIn />}
    </>
  );
}
