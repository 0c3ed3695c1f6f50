"""The OpenAPI document, made from the catalogue: what is declared is what is documented."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from steadmesh import __version__
from steadmesh.tools import Catalogue, Tool

Schema = dict[str, Any]

_TEXT = {"type": "string"}
_NAME = re.compile(r"\{([a-z_]+)\}")
_ERROR: Schema = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "description": "What callers act on."},
        "message": {"type": "string", "description": "What is wrong and what to do next."},
        "details": {"type": "object", "description": "More of the same, for programs."},
        "call_id": {"type": "string", "description": "Under which a fault stands in the log."},
    },
    "required": ["code", "message"],
}
_TOOL_ERROR: Schema = {
    "type": "object",
    "properties": {
        "error": {"type": "string", "description": "What callers act on."},
        "message": {"type": "string", "description": "What is wrong and what to do next."},
        "details": {"type": "object"},
    },
    "required": ["error", "message"],
}
_ERRORS = {
    "400": "Bad JSON, a body that is too large, a bad header, query value or argument.",
    "401": "No credential, or one that is none.",
    "403": "The caller may not do this, or a page of this origin may not call.",
    "404": "No such endpoint, tool or thing.",
    "405": "Another method is needed; the header `Allow` names it.",
    "409": "`fenced`: a missing or stale generation. `conflict`: somebody else's state wins.",
    "413": "The result is too large.",
    "415": "The body is not `application/json`.",
    "421": "The header `Host` names no host of this service.",
    "429": "Too many calls.",
    "500": "A fault of the service; `call_id` finds it in the log.",
    "503": "The database cannot be reached, or something is not configured. Try again shortly.",
}
_SCHEMES: dict[str, Schema] = {
    "seats": {
        "type": "http",
        "scheme": "bearer",
        "description": "A seat's identity token, `sms_…`.",
    },
    "operator": {
        "type": "http",
        "scheme": "bearer",
        "description": "The operator key, `smo_…`. Not needed over the Unix socket.",
    },
    "people": {
        "type": "http",
        "scheme": "bearer",
        "description": "A person's own token of the channel.",
    },
    "secret": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Relay-Secret",
        "description": "Where a secret is configured, for callers without a credential of their own.",
    },
}
_GENERATION: Schema = {
    "name": "X-Steadmesh-Generation",
    "in": "header",
    "description": "Generation of the seat's lease.",
    "schema": {"type": "integer"},
}
_EXECUTION: Schema = {
    "name": "X-Steadmesh-Execution",
    "in": "header",
    "description": "The execution this belongs to.",
    "schema": {"type": "string", "maxLength": 200},
}
_KEY: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same key again, within 10 minutes, gives the same answer and does nothing.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
}


def document(catalogue: Catalogue) -> Schema:
    """OpenAPI 3.1 of everything that this service answers."""
    paths: dict[str, Schema] = _own_paths()
    for tool in catalogue.tools.values():
        paths[f"/v1/tools/{tool.name}"] = {"post": _tool_call(tool)}
    for endpoint in catalogue.endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _endpoint_call(endpoint)
    families = set(catalogue.families) | {"secret"}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Steadmesh",
            "version": __version__,
            "description": "The service where agents work together.",
        },
        "servers": [{"url": "/"}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {"Error": _ERROR, "ToolError": _TOOL_ERROR},
            "responses": {code: _error_response(text) for code, text in _ERRORS.items()},
            "securitySchemes": {n: s for n, s in _SCHEMES.items() if n in families},
        },
    }


def _tool_call(tool: Tool) -> Schema:
    answer: Schema = {
        "type": "object",
        "properties": {
            "content": {
                "anyOf": [tool.output_schema(), {"$ref": "#/components/schemas/ToolError"}]
            },
            "is_error": {"type": "boolean", "description": "True where content is an error."},
        },
        "required": ["content"],
    }
    body = {
        "type": "object",
        "properties": {"arguments": tool.input_schema()},
        "required": ["arguments"] if "required" in tool.input_schema() else [],
    }
    return {
        "operationId": f"tool_{tool.mcp_name}",
        "tags": ["tools"],
        "summary": tool.name,
        "description": tool.description,
        "security": [{tool.family: []}] if tool.family in _SCHEMES else [],
        "parameters": _headers(tool),
        "requestBody": {"content": {"application/json": {"schema": body}}},
        "responses": {"200": _json("The result, or the error of the tool.", answer)} | _failures(),
    }


def _endpoint_call(endpoint: Tool) -> Schema:
    schema = endpoint.input_schema()
    named = _NAME.findall(endpoint.path)
    required = schema.get("required", [])
    parameters = [_parameter(name, "path", schema, required=True) for name in named]
    rest = {name: part for name, part in schema["properties"].items() if name not in named}
    call: Schema = {
        "operationId": _operation_id(endpoint),
        "tags": [endpoint.family],
        "summary": endpoint.description.split("\n", 1)[0],
        "description": endpoint.description,
        "security": [{endpoint.family: []}] if endpoint.family in _SCHEMES else [],
    }
    if endpoint.method == "GET":
        shown = [name for name in rest if not (endpoint.streams and name == "after")]
        parameters += [
            _parameter(name, "query", schema, required=name in required) for name in shown
        ]
    elif rest:
        call["requestBody"] = _body(rest, [name for name in required if name in rest])
    call["parameters"] = parameters + _headers(endpoint)
    call["responses"] = _success(endpoint) | _failures()
    return call


def _success(endpoint: Tool) -> Schema:
    if endpoint.streams:
        events = {"text/event-stream": {"schema": {"type": "string"}}}
        return {"200": {"description": "Server-sent events.", "content": events}}
    done = {"204": {"description": "Done, and nothing to tell."}}
    if endpoint.result is None:
        return done
    answer = _json("The result.", endpoint.output_schema())
    return {str(endpoint.status): answer} | (done if endpoint.waits else {})


def _headers(tool: Tool) -> list[Schema]:
    headers: list[Schema] = []
    if tool.family == "seats":
        headers += [_GENERATION | {"required": tool.fenced}, _EXECUTION]
    if tool.streams:
        headers.append(
            {
                "name": "Last-Event-ID",
                "in": "header",
                "description": "Go on behind this event.",
                "schema": {"type": "integer", "minimum": 0},
            }
        )
    return headers if tool.reads else [*headers, _KEY]


def _parameter(name: str, place: str, schema: Schema, *, required: bool) -> Schema:
    part = dict(schema["properties"].get(name, _TEXT))
    parameter: Schema = {"name": name, "in": place, "required": required}
    if "description" in part:
        parameter["description"] = part.pop("description")
    return parameter | {"schema": part}


def _body(properties: Mapping[str, Schema], required: list[str]) -> Schema:
    schema: Schema = {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
    }
    if "events" in properties:  # an array as the whole body is the events
        schema = {"anyOf": [schema, properties["events"]]}
    return {"required": bool(required), "content": {"application/json": {"schema": schema}}}


def _operation_id(endpoint: Tool) -> str:
    words = re.sub(r"[^a-z0-9]+", "_", endpoint.path.lower()).strip("_")
    return f"{endpoint.method.lower()}_{words}"


def _failures() -> Schema:
    return {code: {"$ref": f"#/components/responses/{code}"} for code in _ERRORS}


def _error_response(text: str) -> Schema:
    return _json(text, {"$ref": "#/components/schemas/Error"})


def _json(text: str, schema: Schema) -> Schema:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _own_paths() -> dict[str, Schema]:
    """What the service answers besides tools and endpoints."""
    status: Schema = {
        "type": "object",
        "properties": {"status": _TEXT, "version": _TEXT, "instance_id": _TEXT},
        "required": ["status"],
    }
    descriptor: Schema = {
        "type": "object",
        "properties": {
            "name": _TEXT,
            "description": _TEXT,
            "input_schema": {"type": "object"},
            "output_schema": {"type": "object"},
        },
        "required": ["name", "description", "input_schema"],
    }
    rpc: Schema = {"type": "object"}
    anybody: list[Schema] = []
    return {
        "/healthz": _get("healthz", "The process is up.", status, security=anybody, failures=()),
        "/v1/hello": _get(
            "hello",
            "Prove to whoever has the operator key that this is its service, before anything secret is sent.",
            {"type": "object", "properties": {"proof": _TEXT}, "required": ["proof"]},
            security=anybody,
            failures=("400",),
            parameters=[
                {
                    "name": "nonce",
                    "in": "query",
                    "required": True,
                    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{16,128}$"},
                }
            ],
        ),
        "/readyz": _get(
            "readyz", "Calls can be served.", status, security=anybody, failures=("503",)
        ),
        "/metrics": {
            "get": {
                "operationId": "metrics",
                "tags": ["machines"],
                "summary": "Metrics for Prometheus.",
                "security": [{}, {"secret": []}],
                "responses": {
                    "200": {
                        "description": "Text format 0.0.4.",
                        "content": {"text/plain": {"schema": _TEXT}},
                    }
                }
                | _failures(),
            }
        },
        "/openapi.json": _get("openapi", "This document.", {"type": "object"}, security=anybody),
        "/v1/tools": _get(
            "list_tools",
            "The tools that the caller sees.",
            {"type": "array", "items": descriptor},
            security=[{}, {"seats": []}],
        ),
        "/mcp": {
            "post": {
                "operationId": "mcp",
                "tags": ["mcp"],
                "summary": "One message of the Model Context Protocol, without sessions.",
                "security": [{}, {"seats": []}],
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": rpc}},
                },
                "responses": {
                    "200": {
                        "description": "The answer.",
                        "content": {
                            "application/json": {"schema": rpc},
                            "text/event-stream": {"schema": _TEXT},
                        },
                    },
                    "202": {"description": "A notification was taken."},
                    "406": {"description": "`Accept` names no type that is offered."},
                }
                | _failures()
                | {"400": _json("An error of JSON-RPC, or of the request as such.", rpc)},
            }
        },
        "/internal/v1/service": {
            "get": {
                "operationId": "about_service",
                "tags": ["operator"],
                "summary": "Which process serves which database, and what it had to leave undone.",
                "security": [{"operator": []}],
                "responses": {"200": _json("This service.", {"type": "object"})} | _failures(),
            }
        },
        "/internal/v1/service:stop": {
            "post": {
                "operationId": "stop_service",
                "tags": ["operator"],
                "summary": "Stop the service once what runs is done.",
                "security": [{"operator": []}],
                "responses": {"202": _json("It is stopping.", status)} | _failures(),
            }
        },
    }


def _get(
    name: str,
    summary: str,
    schema: Schema,
    *,
    security: list[Schema],
    failures: tuple[str, ...] | None = None,
    parameters: list[Schema] | None = None,
) -> Schema:
    known = _failures()
    responses = known if failures is None else {code: known[code] for code in (*failures, "405")}
    return {
        "get": {
            "operationId": name,
            "tags": ["machines"],
            "summary": summary,
            "security": security,
            "responses": {"200": _json(summary, schema)} | responses,
        }
        | ({"parameters": parameters} if parameters else {})
    }
