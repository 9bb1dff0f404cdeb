"""The names, abilities and lifecycles of models, learnt from their providers."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from yarl import URL

from services.common.http import Client
from services.common.settings import Provider
from services.inference.facts.catalogue import Inputs
from services.inference.facts.lifecycle import ModelLifecycles
from services.inference.models import abilities, discovery
from services.inference.providers.credentials.authorizers import Authorizers

log = logging.getLogger(__name__)


class LearntModels:
    """The models of providers that list them.

    Args:
        client: sends the requests.
        authorizers: authorize requests to clouds.
        environ: the environment, with the keys of providers.
        configured: returns the providers of the settings and of the database.

    Attributes:
        names: the models of each provider that listed them.
        abilities: the inputs of models of local servers, by provider and model.
        lifecycles: when models end, by provider and model.
        answering_urls: the right base URLs for wrong ones.
    """

    def __init__(
        self,
        client: Client,
        authorizers: Authorizers,
        environ: Mapping[str, str],
        configured: Callable[[], Mapping[str, Provider]],
    ) -> None:
        self._client = client
        self._authorizers = authorizers
        self._environ = environ
        self._configured = configured
        self.names: dict[str, list[str]] = {}
        self.abilities: dict[tuple[str, str], Inputs] = {}
        self.lifecycles: ModelLifecycles = {}
        self.answering_urls: dict[str, str] = {}
        self._shown: set[tuple[str, str]] = set()  # models whose abilities were queried
        self._checked_urls: set[str] = set()

    async def query(self, asked: Mapping[str, Provider]) -> tuple[bool, Iterable[str]]:
        """Query providers for their models.

        A local server that does not respond is removed; the models of any other provider are kept.

        Returns:
            Whether anything is new, and the names of those that did not list their models.
        """
        ends: ModelLifecycles = {}
        listed = await discovery.learn(self._client, asked, self._authorizers, ends)
        kept = {name: self.names[name] for name in self._configured() if name in self.names}
        inputs = await self._abilities_of(asked, listed)
        ends = {at: one for at, one in self.lifecycles.items() if at[0] not in listed} | ends
        before = self.names, self.abilities, self.lifecycles
        self.names, self.abilities, self.lifecycles = kept | listed, inputs, ends
        is_new = (self.names, self.abilities, self.lifecycles) != before
        if is_new:
            log.info("models learnt", extra={"providers": sorted(self.names)})
        return is_new, asked.keys() - listed.keys()

    async def check_base_urls(self, names: Iterable[str]) -> None:
        """Look for the right base URL of each provider that never listed its models, once."""
        configured = self._configured()
        for name in sorted(names):
            provider = configured.get(name)
            if provider is None or name in self.names or provider.base_url in self._checked_urls:
                continue
            self._checked_urls.add(provider.base_url)
            authorize = self._authorizers.of(name, provider, provider.key(self._environ))
            if url := await discovery.answering_base_url(
                self._client, provider, self._environ, authorize
            ):
                self.answering_urls[provider.base_url] = url
                shown = URL(url).with_user(None)
                log.warning(
                    "settings",
                    extra={
                        "problem": f"providers.{name}.base_url: no API answers there, but one "
                        f"answers at {shown}: correct base_url"
                    },
                )

    async def _abilities_of(
        self, asked: Mapping[str, Provider], listed: Mapping[str, Sequence[str]]
    ) -> dict[tuple[str, str], Inputs]:
        """Return the abilities of local models; only new models are queried.

        When a server reappears, all of its models are queried again.
        """
        gone = asked.keys() - listed.keys()
        self._shown = {one for one in self._shown if one[0] not in gone}
        new = {
            provider: [name for name in names if (provider, name) not in self._shown]
            for provider, names in listed.items()
        }
        inputs = await abilities.learn(self._client, asked, new)
        self._shown.update((provider, name) for provider in new for name in new[provider])
        kept = {one: reads for one, reads in self.abilities.items() if one in self._shown}
        return kept | inputs
