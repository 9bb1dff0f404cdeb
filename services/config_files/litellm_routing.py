"""Translation of LiteLLM's fallbacks, aliases and balancing. Pure."""

from services.config_files.litellm_models import ImportedModels
from services.config_files.litellm_values import Report, Section, named

_STRATEGIES = {
    "simple-shuffle": "weighted",
    "least-busy": "least_busy",
    "latency-based-routing": "fastest",
}


def add_aliases(models: ImportedModels, router: Section) -> None:
    """Add a model for each of `model_group_alias`."""
    aliases = router.section("model_group_alias")
    for alias, target in aliases.values.items():
        if isinstance(target, dict):
            options = Section(target, f"{aliases.path}.{alias}", router.report)
            name = options.text("model")
            if options.take("hidden"):
                options.unsupported("hidden", "all configured models are listed")
            options.list_unread({}, {})
        else:
            name = aliases.text(alias)
        model = models.models.get(name)
        if alias in models.models:
            aliases.unsupported(alias, "is a name of model_list itself")
        elif model is None:
            aliases.unsupported(alias, f"{name!r} is not in model_list")
        else:
            copied = {key: value for key, value in model.items() if key != "name"}
            if not copied.get("upstream") and not copied.get("deployments"):
                copied["upstream"] = model["name"]
            models.models[alias] = {"name": alias, **copied}


def add_fallbacks(
    models: ImportedModels, litellm: Section, router: Section, report: Report
) -> None:
    """Set the fallbacks of each model."""
    chains: dict[str, dict[str, str]] = {}
    for section in (litellm, router):
        for setting in ("fallbacks", "context_window_fallbacks"):
            _read_chains(section, setting, chains)
    defaults = chains.setdefault("*", {})
    for section in (litellm, router):
        path = f"{section.path}.default_fallbacks"
        defaults.update(dict.fromkeys(named(section.take("default_fallbacks")), path))
        _list_unusable(section, "default_fallbacks", path)
    for name, chain in chains.items():
        for follower, path in chain.items():
            if not models.serves(follower):
                report.unsupported.append(f"{path}: {name}: {follower!r} is not in model_list")
        if name != "*" and name not in models.models:
            for path in dict.fromkeys(chain.values()):
                report.unsupported.append(f"{path}: {name!r} is not in model_list")
    for name, model in models.models.items():
        following = chains.get(name) or defaults
        if usable := [one for one in following if one != name and models.serves(one)]:
            model["fallbacks"] = usable


def _read_chains(section: Section, setting: str, chains: dict[str, dict[str, str]]) -> None:
    """Add the fallbacks of a setting: of each model its followers, with the setting's path."""
    path = f"{section.path}.{setting}"
    for item in section.items(setting):
        if not isinstance(item, dict):
            section.unsupported(setting, "an item that is no mapping")
            continue
        for model, followers in item.items():
            chain = chains.setdefault(str(model), {})
            for follower in named(followers):
                chain.setdefault(follower, path)
            texts = followers if isinstance(followers, list) else [followers]
            if not all(isinstance(one, str) for one in texts):
                section.unsupported(setting, f"{model}: a fallback with a request of its own")


def _list_unusable(section: Section, name: str, path: str) -> None:
    value = section.values.get(name)
    values = value if isinstance(value, list) else [value] * (value is not None)
    if not all(isinstance(one, str) for one in values):
        section.unsupported(name, "a fallback that is no name")


def add_strategy(models: ImportedModels, router: Section) -> None:
    """Set how the deployments of models are balanced."""
    strategy = router.text("routing_strategy")
    if not strategy:
        return
    balance = _STRATEGIES.get(strategy)
    balanced = [model for model in models.models.values() if "deployments" in model]
    if balance is None:
        router.unsupported("routing_strategy", f"{strategy} (deployments are balanced by weight)")
    elif balance == "weighted" or not balanced:
        router.needless(
            "routing_strategy",
            f"{strategy}: no model has several deployments"
            if not balanced
            else f"{strategy} is the default",
        )
    else:
        for model in balanced:
            model["balance"] = balance
