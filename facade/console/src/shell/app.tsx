import { ErrorBoundary, LocationProvider, Route, Router, lazy } from "preact-iso";

import { useTitle } from "../parts/title";
import { shellWords } from "../words/shell";
import { BottomBar } from "./bottom_bar";
import { KeyHelp, useKeys } from "./keys";
import { Palette } from "./palette";
import { InvitationPage } from "./invitation";
import { invitation, userId } from "./session";
import { Setup } from "./setup";
import { Sidebar, useSidebarData } from "./sidebar";
import { SignIn, SignInAgain, SignedIn as SignedInNote } from "./sign_in";

const Chat = lazy(() => import("../pages/chat/page"));
const Chats = lazy(() => import("../pages/chats/page"));
const Files = lazy(() => import("../pages/files/page"));
const Memory = lazy(() => import("../pages/memory/page"));
const Documents = lazy(() => import("../pages/documents/page"));
const Overview = lazy(() => import("../pages/overview/page"));
const Requests = lazy(() => import("../pages/requests/page"));
const People = lazy(() => import("../pages/people/page"));
const Providers = lazy(() => import("../pages/providers/page"));

export function App() {
  if (invitation.value !== "") return <InvitationPage />;
  if (userId.value === "") return <SignIn />;
  if (location.pathname === "/console/signed-in") return <SignedInNote />;
  return <SignedIn key={userId.value} />;
}

// Addresses that people may try for the page of the chat, which is the first one.
const CHAT_ADDRESSES: readonly string[] = ["/console/chat", "/console/playground"];

function SignedIn() {
  if (CHAT_ADDRESSES.includes(location.pathname)) {
    history.replaceState(history.state, "", `/console${location.search}`);
  }
  useSidebarData();
  useKeys();
  return (
    <LocationProvider scope="/console">
      <a class="skip" href="#main">
        {shellWords.skip}
      </a>
      <Sidebar />
      <main id="main" tabIndex={-1}>
        <ErrorBoundary>
          <Setup />
          <Router>
            <Route path="/console" component={Chat} />
            <Route path="/console/chats" component={Chats} />
            <Route path="/console/files" component={Files} />
            <Route path="/console/memory" component={Memory} />
            <Route path="/console/documents/:id?" component={Documents} />
            <Route path="/console/overview" component={Overview} />
            <Route path="/console/requests/:id?" component={Requests} />
            <Route path="/console/people" component={People} />
            <Route path="/console/providers" component={Providers} />
            <Route default component={NotFound} />
          </Router>
        </ErrorBoundary>
      </main>
      <BottomBar />
      <Palette />
      <KeyHelp />
      <SignInAgain />
    </LocationProvider>
  );
}

function NotFound() {
  useTitle(shellWords.noPageTitle);
  return (
    <>
      <h1>{shellWords.noPage}</h1>
      <p>
        <a href="/console">{shellWords.toChat}</a>
      </p>
    </>
  );
}
