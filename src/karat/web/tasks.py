"""The work of a worker process: a call and a body in, a reply and a body out. Each task is registered by its name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import msgspec

from karat.web.messages import Call, Reply
from karat.web.problems import Refused, reply_to

Answer = tuple[Reply, bytes]
Progress = Callable[[int, int], None]
"""Called with the work done and the work in all."""
Task = Callable[[Call, bytes, Progress], Answer]
TASKS: dict[str, Task] = {}
"""Every task by its name, from the modules below."""
_MODULES = ("api.evaluating", "api.verdicts", "api.listings", "futureagi.evaluations")
JOB = "_job"
"""The end of the name of a task that is done as a job."""
LATER = "later"
"""The argument of a call that may take long; without it, one that calls a language model is answered with 425."""
TOO_EARLY = 425


def task(name: str) -> Callable[[Task], Task]:
    """Register a function as a task."""

    def register(function: Task) -> Task:
        TASKS[name] = function
        return function

    return register


def load_tasks() -> None:
    """Import every module with tasks."""
    for module in _MODULES:
        import_module(f"karat.web.{module}")


def do(call: Call, body: bytes, progress: Progress) -> Answer:
    """The answer to a call; an error is an answer, too."""
    try:
        return TASKS[call.task](call, body, progress)
    except RecursionError:
        return reply_to(Refused(400, "the body is nested too deeply"), call.task, call.accept, call.request)
    except Exception as error:  # noqa: BLE001 (a worker outlives any request)
        return reply_to(error, call.task, call.accept, call.request)


def read_json(body: bytes, kind: Any = Any) -> Any:
    """The JSON of a body, of one kind."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise Refused(400, f"the body cannot be read: {error}") from error
    except msgspec.DecodeError as error:
        raise Refused(400, f"the body is not JSON: {error}") from error
    except UnicodeDecodeError as error:
        raise Refused(400, "the body is not UTF-8") from error
    except RecursionError as error:
        raise Refused(400, "the body is nested too deeply") from error


def json_answer(value: Any, status: int = 200) -> Answer:
    """An answer in JSON; what is not a number is null."""
    return Reply(status), msgspec.json.encode(value)
