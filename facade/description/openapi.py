"""The OpenAPI document, made from the specs of the endpoints.

The document of a sequence of endpoints is built once per process; `facade.description.api_page`
shows it.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import orjson
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core.core_schema import WithDefaultSchema

from facade.areas import OPERATIONS, area_of, by_area
from facade.credentials import ApiFormat, KeyKind, Rules
from facade.dialects.error_schemas import ERRORS
from facade.dialects.json_schemas import STRING, JsonObject, NamedSchema, closed_object
from facade.endpoint import Answer, EndpointSpec, WireType, query_parameter
from services.common.version import VERSION

# Whether requests must have a version header, by their rules.
_VERSION_NEEDED = {
    "always": "Required, unless the client sends `anthropic-version`.",
    "with x-api-key": "Required with `x-api-key`, unless the client sends `anthropic-version`.",
    "never": "Optional.",
}
_SECURITY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    "googleKey": {"type": "apiKey", "in": "header", "name": "x-goog-api-key"},
    "adminKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "An admin key. If none is configured, these paths do not exist.",
    },
}
_MODULE = re.compile(r"facade\.dialects\.(\w+)\.\w+\.")
_NOT_IN_NAMES = re.compile(r"[^\w.-]")
# References to the schemas of models.
_Refs = Mapping[type[BaseModel], JsonObject]


class _Schemas(GenerateJsonSchema):
    """Schemas of models; types with the same name are named after their dialects."""

    def normalize_name(self, name: str) -> str:
        """Return a name of a schema, without the module that its type is in."""
        return _NOT_IN_NAMES.sub("_", _MODULE.sub(r"\1.", name))


class _SchemasWithoutNullDefaults(_Schemas):
    """Schemas in which null is no default: it is a value of its own, unlike an absent field."""

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        """Return the schema of a field with a default."""
        described = super().default_schema(schema)
        if described.get("default", ...) is None:
            del described["default"]
        return described


@cache
def document(endpoints: tuple[EndpointSpec, ...]) -> bytes:
    """Return the OpenAPI 3.1 document of the endpoints as JSON."""
    return orjson.dumps(_document(endpoints))


def described_endpoints(endpoints: Iterable[EndpointSpec]) -> Sequence[EndpointSpec]:
    """Return the endpoints of the API, without pages for people."""
    return [endpoint for endpoint in endpoints if endpoint.operation_id]


def _document(endpoints: Iterable[EndpointSpec]) -> JsonObject:
    described = described_endpoints(endpoints)
    refs, schemas = _model_schemas(described)
    named = [*_named_schemas(described), *ERRORS.values()]
    paths: defaultdict[str, JsonObject] = defaultdict(dict)
    for endpoint in described:
        operation = _operation(endpoint, refs)
        paths[endpoint.documented_path][endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Gateway",
            "version": VERSION,
            "description": "HTTP gateway to language-model providers. Every path under "
            "`/beta/v1` is also available under `/v1`.",
        },
        "paths": paths,
        "components": {
            "schemas": {**schemas, **{one.name: one.json_schema() for one in named}},
            "securitySchemes": _SECURITY_SCHEMES,
        },
        "security": [{"bearer": []}, {"apiKey": []}],
        "tags": [{"name": area.title} for area in by_area(described)],
    }


def _wire_types(endpoint: EndpointSpec) -> Sequence[WireType]:
    answers = [endpoint.answer, *endpoint.other_answers.values()]
    bodies = [] if endpoint.body is None else [endpoint.body.wire_type]
    return [*bodies, *(one for answer in answers for one in answer.wire_types)]


def _named_schemas(endpoints: Iterable[EndpointSpec]) -> Sequence[NamedSchema]:
    return [
        wire_type
        for endpoint in endpoints
        for wire_type in _wire_types(endpoint)
        if isinstance(wire_type, NamedSchema)
    ]


def _model_schemas(endpoints: Iterable[EndpointSpec]) -> tuple[_Refs, JsonObject]:
    """Return references to the schemas of the endpoints' models, and the schemas by name."""
    models: defaultdict[tuple[str, type[_Schemas]], list[type[BaseModel]]] = defaultdict(list)
    for endpoint in endpoints:
        is_envelope = endpoint.rules.api_format is ApiFormat.ENVELOPE
        generator = _SchemasWithoutNullDefaults if is_envelope else _Schemas
        models[endpoint.schema_prefix, generator] += [
            wire_type for wire_type in _wire_types(endpoint) if isinstance(wire_type, type)
        ]
    refs: dict[type[BaseModel], JsonObject] = {}
    schemas: JsonObject = {}
    for (prefix, generator), of_generator in models.items():
        unique = list(dict.fromkeys(of_generator))
        keys, definitions = models_json_schema(
            [(model, "validation") for model in unique],
            ref_template=f"#/components/schemas/{prefix}{{model}}",
            schema_generator=generator,
        )
        refs |= {model: keys[model, "validation"] for model in unique}
        schemas |= {prefix + name: schema for name, schema in definitions.get("$defs", {}).items()}
    return refs, schemas


def _operation(endpoint: EndpointSpec, refs: _Refs) -> JsonObject:
    rules = endpoint.rules
    versions = [_version_parameter(rules)] if _has_version(rules) else []
    parameters = [*versions, *endpoint.all_parameters(), *_query_parameters(endpoint.query)]
    answers = {endpoint.answer_status: endpoint.answer, **endpoint.other_answers}
    operation: JsonObject = {
        "summary": endpoint.summary,
        "operationId": endpoint.operation_id,
        "tags": [(area_of(endpoint.documented_path) or OPERATIONS).title],
        **_security(rules),
        **({"parameters": parameters} if parameters else {}),
        "responses": {
            **{str(status): _answer(answer, rules, refs) for status, answer in answers.items()},
            **_errors(endpoint),
        },
    }
    body = endpoint.body
    if body is not None:
        content: JsonObject = {"schema": _schema(body.wire_type, refs)}
        if body.example is not None:
            content["example"] = body.example
        operation["requestBody"] = {
            "required": body.is_required,
            "content": {body.media_type: content},
        }
    return operation


def _has_version(rules: Rules) -> bool:
    return rules.key is KeyKind.CALLER and rules.api_format is not ApiFormat.ENVELOPE


def _version_parameter(rules: Rules) -> JsonObject:
    return {
        "name": "compat-version",
        "in": "header",
        "description": f"Version of the API. {_VERSION_NEEDED[rules.version]}",
        "schema": {"type": "string", "enum": ["2023-06-01"]},
    }


def _query_parameters(query: type[BaseModel] | None) -> Sequence[JsonObject]:
    if query is None:
        return []
    properties = query.model_json_schema().get("properties", {})
    return [query_parameter(name, _of_parameter(schema)) for name, schema in properties.items()]


def _of_parameter(schema: JsonObject) -> JsonObject:
    """Return the schema of a query parameter, without null: it is omitted instead."""
    schema = {key: value for key, value in schema.items() if key not in ("default", "title")}
    for choice in schema.pop("anyOf", []):
        if choice != {"type": "null"}:
            schema |= choice
    return schema


# Schemes by the header of the key.
_SCHEMES_OF_HEADERS = {"x-api-key": "apiKey", "x-goog-api-key": "googleKey"}


def _security(rules: Rules) -> JsonObject:
    if rules.key is KeyKind.NONE:
        return {"security": []}
    if rules.key is KeyKind.ADMIN:
        return {"security": [{"adminKey": []}]}
    if rules.key_headers == ("x-api-key",) and rules.takes_bearer:
        return {}
    schemes = ["bearer"] if rules.takes_bearer else []
    schemes += [_SCHEMES_OF_HEADERS[name] for name in rules.key_headers]
    return {"security": [{scheme: []} for scheme in schemes]}


def _answer(answer: Answer, rules: Rules, refs: _Refs) -> JsonObject:
    if not answer.wire_types:
        return {"description": answer.description}
    schemas = [_schema(wire_type, refs) for wire_type in answer.wire_types]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    examples = answer.examples
    if rules.api_format is ApiFormat.ENVELOPE:
        schema = closed_object({"code": {"const": 1}, "data": schema})
        examples = {name: {"code": 1, "data": data} for name, data in examples.items()}
    content: JsonObject = {"schema": schema}
    if "" in examples:
        content["example"] = examples[""]
    elif examples:
        content["examples"] = {name: {"value": value} for name, value in examples.items()}
    contents: JsonObject = {answer.media_type: content}
    if answer.is_streamed:
        contents["text/event-stream"] = {"schema": STRING}
    return {"description": answer.description, "content": contents}


def _errors(endpoint: EndpointSpec) -> JsonObject:
    """Return the error responses: in the format of the path, or in both that a key can select."""
    rules = endpoint.rules
    if rules.key is KeyKind.NONE and endpoint.body is None:
        return {}  # nothing in the request can be wrong
    selectable = [ApiFormat.OPENAI, ApiFormat.ANTHROPIC]
    if len(rules.key_headers) > 1:
        selectable.append(ApiFormat.GOOGLE)
    formats = selectable if rules.api_format is None else [rules.api_format]
    refs = [ERRORS[api_format].ref for api_format in formats]
    schema = refs[0] if len(refs) == 1 else {"anyOf": refs}
    content = {"application/json": {"schema": schema}}
    return {
        "4XX": {"description": "Client error", "content": content},
        "5XX": {"description": "Server error", "content": content},
    }


def _schema(wire_type: WireType, refs: _Refs) -> JsonObject:
    if isinstance(wire_type, NamedSchema):
        return wire_type.ref
    return wire_type if isinstance(wire_type, dict) else refs[wire_type]
