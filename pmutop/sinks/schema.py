"""The JSON Schema (draft 2020-12) of the JSON lines: `pmutop log --schema` prints it."""

from __future__ import annotations

from pmutop.events import TIERS
from pmutop.moment import QUALITIES, RESOURCES
from pmutop.sinks.log import SCHEMA_VERSION

NUMBER = {"type": "number"}
NUMBER_OR_NULL = {"type": ["number", "null"]}
TEXT = {"type": "string"}
WHOLE = {"type": "integer"}


def record(properties: dict, optional: tuple[str, ...] = (), more: bool = False) -> dict:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": more}


RESOURCE = record(
    {"verdict": {"type": ["boolean", "null"]}, "factor": NUMBER_OR_NULL, "margin": NUMBER_OR_NULL}
)
ANTAGONIST = record({"pid": WHOLE, "comm": TEXT, "resource": {"enum": list(RESOURCES)}, "score": NUMBER})
LABEL = record(
    {
        "label": {"type": "string", "pattern": "^(P_|N_).+|^unknown$"},
        "kind": TEXT,
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "tier": {"enum": list(TIERS)},
        "model": TEXT,
    }
)
EVENT = record({"name": TEXT, "share": NUMBER, "value": NUMBER_OR_NULL, "normal": NUMBER_OR_NULL})

HEADER = record(
    {
        "pmutop": TEXT,
        "schema": {"const": SCHEMA_VERSION},
        "host": TEXT,
        "boot": TEXT,
        "machine": {"type": "object"},
        "tiers": {"type": "array", "items": {"enum": list(TIERS)}},
        "source": {"enum": ["system", "attach", "simulated"]},
        "replayed": {"type": "boolean"},
        "events": {"type": "array", "items": record({"name": TEXT, "unit": TEXT, "trust": TEXT})},
        "models": {"type": "array", "items": TEXT},
    }
)
PROCESS = record(
    {
        "slice": {**WHOLE, "description": "number of the time slice"},
        "time": {**NUMBER, "description": "Unix seconds at the end of the slice"},
        "seconds": {**NUMBER, "description": "true length of the slice"},
        "late": {**NUMBER, "description": "seconds behind the deadline"},
        "pid": WHOLE,
        "tid": {**WHOLE, "description": "with --threads only"},
        "ppid": WHOLE,
        "start": {**NUMBER, "description": "Unix seconds; with pid it names a process for good"},
        "comm": TEXT,
        "user": TEXT,
        "cgroup": TEXT,
        "state": {"type": "string", "minLength": 1, "maxLength": 1},
        "threads": WHOLE,
        "exited": {"type": "boolean"},
        "cpu": {**NUMBER_OR_NULL, "description": "% of one CPU"},
        "wait": {
            **NUMBER_OR_NULL,
            "description": "% of the slice runnable but not running, summed over threads",
        },
        "ipc": NUMBER_OR_NULL,
        "counts": {"type": "object", "additionalProperties": NUMBER_OR_NULL},
        "quality": {"type": "object", "additionalProperties": {"enum": list(QUALITIES)}},
        "labels": {
            "type": "array",
            "items": LABEL,
            "description": "strongest first; [] where nothing may be said",
        },
        "interference": {
            "anyOf": [
                {"type": "null"},
                record(
                    {name: RESOURCE for name in RESOURCES}
                    | {"antagonist": {"anyOf": [{"type": "null"}, ANTAGONIST]}},
                    optional=("progress",),
                ),
            ]
        },
        "events": {
            "type": "array",
            "maxItems": 3,
            "items": EVENT,
            "description": "evidence of the first label",
        },
    },
    optional=("tid",),
)
MACHINE = record(
    {
        "machine": record(
            {
                "slice": WHOLE,
                "late": NUMBER,
                "lost": WHOLE,
                "own_cpu": NUMBER_OR_NULL,
                "own_rss": {"type": ["integer", "null"]},
                "switches": {"type": ["integer", "null"]},
            },
            more=True,
        )
    }
)
RANK = record(
    {
        "rank": record(
            {
                "slice": {**WHOLE, "description": "in which the ranking was there"},
                "pid": WHOLE,
                "tid": {**WHOLE, "description": "with --threads only"},
                "comm": TEXT,
                "target": {
                    **TEXT,
                    "description": "the performance figure that is explained: IPC or an event",
                },
                "slices": {**WHOLE, "description": "learnt from and judged on"},
                "events": {
                    "type": "array",
                    "minItems": 1,
                    "items": record({"name": TEXT, "importance": {**NUMBER, "description": "% of all"}}),
                    "description": "the most important first",
                },
                "error": {**NUMBER_OR_NULL, "description": "share, on slices that the model has not seen"},
                "median_error": {**NUMBER_OR_NULL, "description": "the same for always saying the median"},
            },
            optional=("tid",),
        )
    }
)

HOT = record(
    {
        "hot": record(
            {
                "pid": WHOLE,
                "comm": TEXT,
                "label": TEXT,
                "slices": WHOLE,
                "samples": WHOLE,
                "functions": {"type": "array", "items": record({"name": TEXT, "share": NUMBER})},
            }
        )
    }
)

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "pmutop log, one JSON object per line",
    "anyOf": [HEADER, PROCESS, MACHINE, RANK, HOT],
}
