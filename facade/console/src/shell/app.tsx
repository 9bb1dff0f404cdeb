import { ErrorBoundary, LocationProvider, Route, Router, lazy } from "preact-iso";

import { Navigation } from "./navigation";
import { apiKey } from "./session";
import { SignIn } from "./sign_in";

const Playground = lazy(() => import("../pages/playground/page"));
const Files = lazy(() => import("../pages/files/page"));
const Memory = lazy(() => import("../pages/memory/page"));
const Documents = lazy(() => import("../pages/documents/page"));
const Usage = lazy(() => import("../pages/usage/page"));
const Operations = lazy(() => import("../pages/operations/page"));

export function App() {
  if (apiKey.value === "") return <SignIn />;
  return (
    <LocationProvider scope="/console">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <Navigation />
      <main id="main" tabIndex={-1}>
        <ErrorBoundary>
          <Router>
            <Route path="/console" component={Playground} />
            <Route path="/console/files" component={Files} />
            <Route path="/console/memory" component={Memory} />
            <Route path="/console/documents/:id?" component={Documents} />
            <Route path="/console/usage" component={Usage} />
            <Route path="/console/operations" component={Operations} />
            <Route default component={NotFound} />
          </Router>
        </ErrorBoundary>
      </main>
    </LocationProvider>
  );
}

function NotFound() {
  return (
    <>
      <h1>There is no such page</h1>
      <p>
        <a href="/console">Go to the playground</a>
      </p>
    </>
  );
}
