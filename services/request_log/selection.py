"""Which requests are logged. Pure."""

from services.common.settings import RequestLog


class Selection:
    """Selects requests by their keys and models.

    Args:
        settings: the keys and models whose requests are logged.
    """

    def __init__(self, settings: RequestLog) -> None:
        self._key_ids = frozenset(settings.key_ids)
        self._names = frozenset(name for name in settings.models if not name.endswith("*"))
        self._prefixes = tuple(name[:-1] for name in settings.models if name.endswith("*"))
        self._has_models = bool(settings.models)

    def has(self, key_id: str, model: str) -> bool:
        """Return whether requests with a key for a model are logged; "" is no model."""
        if self._key_ids and key_id not in self._key_ids:
            return False
        if not self._has_models:
            return True
        return model != "" and (model in self._names or model.startswith(self._prefixes))
