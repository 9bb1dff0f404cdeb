import { useTitle } from "../../parts/title";
import { isAdministrator } from "../../shell/session";
import { AdminSignIn } from "../operations/admin_sign_in";
import { ProviderHealth } from "../operations/providers";

export default function Providers() {
  useTitle("Providers");
  return (
    <>
      <h1>Providers</h1>
      {isAdministrator.value ? <ProviderHealth /> : <AdminSignIn />}
    </>
  );
}
