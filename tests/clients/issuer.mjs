// An OpenID Connect issuer for tests, of oidc-provider: prints its address, and serves until its input
// ends. Its argument is JSON: the redirect URI of the gateway, the audience of access tokens, and the
// claims of each account. Any password signs in.
import { createServer } from "node:http";

import Provider from "oidc-provider";

const { redirectUri, audience, accounts } = JSON.parse(process.argv[2]);
const server = createServer();
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://localhost:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "gateway",
      client_secret: "secret of the gateway",
      redirect_uris: [redirectUri],
    },
    ...["robot", "reader"].map((name) => ({
      client_id: name,
      client_secret: "secret of a robot",
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
    })),
  ],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["groups", "team"] },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...accounts[id] }) }),
  extraTokenClaims: (_, token) => accounts[token.clientId],
  pkce: { required: () => true },
  cookies: { keys: ["key of the issuer's cookies"] },
  features: {
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => audience,
      useGrantedResource: () => false,
      getResourceServerInfo: (_, resource) => ({
        scope: "",
        audience: resource,
        accessTokenFormat: "jwt",
        accessTokenTTL: 600,
        jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
});
server.on("request", provider.callback());
console.log(issuer);
process.stdin.on("end", () => process.exit()).resume();
