"""Translation of LiteLLM's `model_list`: models and their deployments. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from services.common.settings.providers import MAX_DEPLOYMENTS
from services.config_files.litellm_entries import EntryPlace, EntryReader
from services.config_files.litellm_providers import ImportedProviders, Refusal
from services.config_files.litellm_values import Report


class ImportedModels:
    """The models of all entries, by their names.

    Attributes:
        models: sections of the settings, by name.
        providers: the providers that they name.
        wildcards: names with `*`, with or without a section.
    """

    def __init__(self, report: Report, providers: ImportedProviders) -> None:
        """Begin without models."""
        self.models: dict[str, dict[str, Any]] = {}
        self.wildcards: list[str] = []
        self.providers = providers
        self._report = report
        self._groups: dict[str, dict[str, None]] = {}

    def add(self, entries: Sequence[Any], credentials: Mapping[str, Mapping[str, Any]]) -> None:
        """Add the entries of `model_list`.

        Args:
            entries: the list.
            credentials: those of `credential_list`, by name.
        """
        places: dict[str, list[EntryPlace]] = {}
        for index, values in enumerate(entries):
            path = f"model_list[{index}]"
            name = values.get("model_name") if isinstance(values, dict) else None
            name = self.providers.resolved(name.strip()) if isinstance(name, str) else ""
            if not name:
                self._report.unsupported.append(
                    f"{path}: has no model_name, or one in a variable that is not set"
                )
                continue
            reader = EntryReader(self._report, self.providers, credentials)
            try:
                place = reader.read(f"{path} ({name})", name, values)
            except Refusal as error:
                self._report.unsupported.append(f"{path} ({name}): {error}")
                continue
            for group in reader.groups:
                self._groups.setdefault(group, {})[name] = None
            if place is not None:
                places.setdefault(name, []).append(place)
            elif name.endswith("*"):
                self.wildcards.append(name)
        for name, places_of_model in places.items():
            if name.endswith("*"):
                self.wildcards.append(name)
            self.models[name] = self._model(name, places_of_model)
        self._report.end_entries()
        for group, names in self._groups.items():
            options = " ".join(f"--model '{name}'" for name in names)
            self._report.steps.append(
                f"model_list[].model_info.access_groups: gateway model-groups set {group} {options}"
            )

    def serves(self, name: str) -> bool:
        """Return whether a name is that of a model, or one that a wildcard matches."""
        return name in self.models or any(
            name.startswith(wildcard.removesuffix("*")) for wildcard in self.wildcards
        )

    def _model(self, name: str, places: Sequence[EntryPlace]) -> dict[str, Any]:
        """Return the section of all entries with one name."""
        distinct: list[EntryPlace] = []
        for place in places:
            at = (place.provider, place.upstream)
            if at in ((one.provider, one.upstream) for one in distinct):
                self._report.unsupported.append(
                    f"{place.path}: a second deployment at {at[0]} ({at[1] or 'any model'})"
                )
            elif len(distinct) == MAX_DEPLOYMENTS:
                self._report.unsupported.append(
                    f"{place.path}: a model here has at most {MAX_DEPLOYMENTS} deployments"
                )
            else:
                distinct.append(place)
        properties: dict[str, Any] = {}
        for place in distinct:
            for key, (value, path) in place.properties.items():
                if properties.setdefault(key, value) != value:
                    self._report.of_entry(
                        name,
                        path,
                        "differs from that of an entry before it, which is used",
                        is_needless=False,
                    )
        if len(distinct) == 1:
            (only,) = distinct
            if only.weight is not None or only.order != 1:
                key = "weight" if only.weight is not None else "order"
                self._report.needless.append(
                    f"{only.path}: litellm_params.{key} of a single deployment"
                )
            if only.limits:
                return {"name": name, "deployments": self._deployments(distinct), **properties}
            upstream = {"upstream": only.upstream} if only.upstream not in ("", name) else {}
            return {"name": name, "provider": only.provider, **upstream, **properties}
        return {"name": name, "deployments": self._deployments(distinct), **properties}

    def _deployments(self, places: Sequence[EntryPlace]) -> list[dict[str, Any]]:
        """Return the deployments of several entries; only those of the lowest order have weight."""
        first = min(place.order for place in places)
        spares = {place.order for place in places} - {first}
        weights = [place.weight if place.order == first else 0 for place in places]
        if len(spares) > 1:
            self._report.unsupported += [
                f"{place.path}: litellm_params.order {place.order}; those above the lowest are "
                "spares alike"
                for place in places
                if place.order != first
            ]
        if not any(weight is None or weight for weight in weights):
            weights = [None if place.order == first else 0 for place in places]
        return [
            {
                "provider": place.provider,
                **({"upstream": place.upstream} if place.upstream else {}),
                **({} if weight is None else {"weight": weight}),
                **({"limits": place.limits} if place.limits else {}),
            }
            for place, weight in zip(places, weights, strict=True)
        ]
